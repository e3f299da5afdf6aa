// The circuit breaker of one server, as a pure state machine: after so many faults in a row calls are refused for a
// while, then one is tried. connection/in-flight.ts tells it of faults, breaker-trial.ts tries the one call.
//
//   closed ──so many faults in a row──▶ open ──time, and a call──▶ half-open ──the trial succeeds──▶ closed
//                                        ▲                            │
//                                        └──────the trial fails───────┘   given back: open, and due at once
//
// A call that ran out of time says nothing of a server that answers a ping asked then: the tool is slow. So many of them
// in a row count all the same where they are of more than one tool, and nothing was answered between.

import type { Supervision } from "../../contracts/server-spec.js";
import { Fault, type FaultCode } from "../../protocol/errors.js";

export type Circuit = "closed" | "open" | "half-open";

/** How a trial ended. `unknown`: it was cancelled, or failed for a reason that says nothing of the server. */
export type BreakerOutcome = "answered" | "fault" | "unknown";

/**
 * These speak of the way to a server or of its protocol; what it answers, and what we refuse, says nothing of its
 * health.
 */
const COUNTED: ReadonlySet<FaultCode> = new Set<FaultCode>(["unavailable", "outcome-unknown", "timeout", "protocol"]);

export function countsAsFault(code: FaultCode): boolean {
  return COUNTED.has(code);
}

/** A call's time is over. Whether that is the server's fault is known when it was pinged: late() or faulted() tells. */
export class OverdueFault extends Fault {
  constructor(message: string) {
    super("timeout", message);
  }
}

/** A call of an agent whose time was over. */
export interface LateCall {
  /** The tool, or the method of what is no call of a tool. */
  readonly tool: string;
  readonly startedMs: number;
}

/** Told when it opens after being closed, and when it closes: what lies between is one story. */
type BreakerTurned = (circuit: "open" | "closed", text: string) => void;

export class Breaker {
  readonly #rules: Supervision["breaker"];
  readonly #onTurn: BreakerTurned | undefined;
  /** Counts faults in a row. */
  faults = 0;
  /** Counts calls in a row that ran out of time though the server was well. */
  #late = 0;
  #lateTool: string | undefined;
  #hasLateTools = false;
  #lastLateMs = Number.NEGATIVE_INFINITY;
  #circuit: Circuit = "closed";
  #lastFaultMs = Number.NEGATIVE_INFINITY;
  #dueMs = 0;
  /** Counts trials, so that the outcome of a trial is told from that of an earlier one. */
  #trial = 0;

  constructor(rules: Supervision["breaker"], onTurn?: BreakerTurned) {
    this.#rules = rules;
    this.#onTurn = onTurn;
  }

  get circuit(): Circuit {
    return this.#circuit;
  }

  /** The hot path looks at this: while it is false, an answer is nothing to tell. */
  get hasMarks(): boolean {
    return this.faults > 0 || this.#late > 0;
  }

  /** How long until the next call is tried; undefined while closed, and while one is being tried. */
  nextTryInMs(nowMs: number): number | undefined {
    return this.#circuit === "open" ? Math.max(0, this.#dueMs - nowMs) : undefined;
  }

  /**
   * For a circuit that is not closed: the number of the trial that this call is, or undefined where it is refused. Its
   * outcome must be told, once, by tried().
   */
  admit(nowMs: number): number | undefined {
    if (this.#circuit !== "open" || nowMs < this.#dueMs) return undefined;
    this.#circuit = "half-open";
    return ++this.#trial;
  }

  /** The trial has ended. */
  tried(trial: number, outcome: BreakerOutcome, nowMs: number): void {
    if (this.#circuit !== "half-open" || trial !== this.#trial) return;
    if (outcome === "answered") {
      this.#circuit = "closed";
      this.#clear();
      this.#onTurn?.("closed", "the breaker is closed: it answers again");
    } else if (outcome === "fault") {
      this.faults++;
      this.#open(nowMs);
    } else {
      this.#circuit = "open";
      this.#dueMs = nowMs;
    }
  }

  /** There is reason to think that it works again: the next call is the trial. */
  tryNow(nowMs: number): void {
    if (this.#circuit === "open") this.#dueMs = Math.min(this.#dueMs, nowMs);
  }

  /** A call was answered, with a result or an error. While the circuit is not closed, only the trial counts. */
  answered(): void {
    if (this.#circuit === "closed") this.#clear();
  }

  /**
   * A call that began at `sinceMs` ended by a fault. Calls that were under way when the last fault arose fell to the
   * same: one crash, one strike.
   */
  faulted(sinceMs: number, nowMs: number): void {
    if (this.#circuit !== "closed" || sinceMs < this.#lastFaultMs) return;
    this.#lastFaultMs = nowMs;
    this.faults++;
    this.#judge(nowMs);
  }

  /**
   * A call that began at `startedMs` ran out of time, and the server answered a ping since. As with faults, calls that
   * were under way together count once.
   */
  late({ tool, startedMs }: LateCall, nowMs: number): void {
    if (this.#circuit !== "closed") return;
    this.#lateTool ??= tool;
    if (tool !== this.#lateTool) this.#hasLateTools = true;
    if (startedMs >= this.#lastLateMs) {
      this.#lastLateMs = nowMs;
      this.#late++;
    }
    this.#judge(nowMs);
  }

  /** One slow tool is that tool's alone, however often it is called. */
  #judge(nowMs: number): void {
    const faults = this.faults + (this.#hasLateTools ? this.#late : 0);
    if (faults < this.#rules.failures) return;
    this.faults = faults;
    this.#open(nowMs);
  }

  #clear(): void {
    this.faults = 0;
    this.#late = 0;
    this.#lateTool = undefined;
    this.#hasLateTools = false;
  }

  #open(nowMs: number): void {
    const wasClosed = this.#circuit === "closed";
    this.#circuit = "open";
    this.#lastFaultMs = nowMs;
    this.#dueMs = nowMs + this.#rules.openMs;
    const why = `${this.faults} calls in a row found something wrong with it`;
    if (wasClosed) this.#onTurn?.("open", `the breaker is open: ${why}, and none is sent for ${this.#rules.openMs} ms`);
  }
}
