// The circuit breaker of one server, as a pure state machine: after so many faults in a row calls are refused for a
// while, then one is tried. connection/in-flight.ts tells it of faults, breaker-trial.ts tries the one call.
//
//   closed ──so many faults in a row──▶ open ──time, and a call──▶ half-open ──the trial succeeds──▶ closed
//                                        ▲                            │
//                                        └──────the trial fails───────┘   given back: open, and due at once
//
// A write that is kept for its server is tried earlier, ever more seldom: there is nobody else to find out that it is back.
//
// A call that ran out of time says nothing of a server that answers a ping asked then: the tool is slow. So many of them
// in a row count all the same where they are of more than one tool, and nothing was answered between.

import type { Supervision } from "../../contracts/server-spec.js";
import type { EarlyTrial } from "../../contracts/upstream.js";
import { Fault, type FaultCode } from "../../protocol/errors.js";

export type Circuit = "closed" | "open" | "half-open";

/**
 * How a trial ended. `unreached`: a fault, and nothing of it reached the server. `unknown`: it was cancelled, or failed for a
 * reason that says nothing of the server.
 */
export type BreakerOutcome = "answered" | "fault" | "unreached" | "unknown";

/** How long after the breaker opened a kept write is tried; it doubles with each trial, up to the breaker's own time. */
const EARLY_TRIAL_MS = 1_000;

/**
 * These speak of the way to a server or of its protocol; what it answers, and what we refuse, says nothing of its
 * health.
 */
const COUNTED: ReadonlySet<FaultCode> = new Set<FaultCode>(["unavailable", "outcome-unknown", "timeout", "protocol"]);

export function countsAsFault(code: FaultCode): boolean {
  return COUNTED.has(code);
}

/** No byte of the call reached the server: there was no connection to send it on. */
export function isUnreached({ code, wire }: Fault): boolean {
  return code === "unavailable" && wire?.status === undefined && wire?.left !== true;
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

interface BreakerEvents {
  readonly onTurn?: BreakerTurned | undefined;
  /** Told of the first answer to a call after faults, whether it had opened or not. */
  readonly onAnswers?: (() => void) | undefined;
}

export class Breaker {
  readonly #rules: Supervision["breaker"];
  readonly #events: BreakerEvents;
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
  /** The same for kept writes, and how long they wait after a trial that fails. */
  #earlyDueMs = 0;
  #earlyWaitMs = 0;
  /** The trial under way is made before its time. */
  #isEarly = false;
  /** Nothing of the call that failed last reached the server. */
  #isUnreached = false;
  /** Counts trials, so that the outcome of a trial is told from that of an earlier one. */
  #trial = 0;

  constructor(rules: Supervision["breaker"], events: BreakerEvents = {}) {
    this.#rules = rules;
    this.#events = events;
  }

  get circuit(): Circuit {
    return this.#circuit;
  }

  /** The hot path looks at this: while it is false, an answer is nothing to tell. */
  get hasMarks(): boolean {
    return this.faults > 0 || this.#late > 0;
  }

  /** How long until the next call is tried, or one that may be early; undefined while closed, and while one is being tried. */
  nextTryInMs(nowMs: number, early?: EarlyTrial): number | undefined {
    return this.#circuit === "open" ? Math.max(0, this.#dueFor(early) - nowMs) : undefined;
  }

  /**
   * For a circuit that is not closed: the number of the trial that this call is, or undefined where it is refused. Its
   * outcome must be told, once, by tried().
   */
  admit(nowMs: number, early?: EarlyTrial): number | undefined {
    if (this.#circuit !== "open" || nowMs < this.#dueFor(early)) return undefined;
    this.#circuit = "half-open";
    this.#isEarly = nowMs < this.#dueMs;
    return ++this.#trial;
  }

  /** The trial has ended. */
  tried(trial: number, outcome: BreakerOutcome, nowMs: number): void {
    if (this.#circuit !== "half-open" || trial !== this.#trial) return;
    if (outcome === "answered") {
      this.#circuit = "closed";
      this.#clear();
      this.#events.onTurn?.("closed", "the breaker is closed: it answers again");
      this.#events.onAnswers?.();
    } else if (outcome === "unknown") {
      this.#circuit = "open";
      this.#earlyDueMs = nowMs;
      if (!this.#isEarly) this.#dueMs = nowMs;
    } else {
      this.faults++;
      this.#isUnreached = outcome === "unreached";
      // One before its time leaves that of the others as it is: what it fails for may be its own.
      const dueMs = this.#dueMs;
      this.#open(nowMs);
      if (this.#isEarly) this.#dueMs = dueMs;
    }
  }

  /** There is reason to think that it works again: the next call is the trial. */
  tryNow(nowMs: number): void {
    if (this.#circuit === "open") this.#dueMs = Math.min(this.#dueMs, nowMs);
  }

  #dueFor(early: EarlyTrial | undefined): number {
    const mayBeEarly = early === "always" || (early === "unreached" && this.#isUnreached);
    return mayBeEarly ? Math.min(this.#earlyDueMs, this.#dueMs) : this.#dueMs;
  }

  /** A call was answered, with a result or an error. While the circuit is not closed, only the trial counts. */
  answered(): void {
    if (this.#circuit !== "closed") return;
    const hadMarks = this.hasMarks;
    this.#clear();
    if (hadMarks) this.#events.onAnswers?.();
  }

  /**
   * A call that began at `sinceMs` ended by a fault. Calls that were under way when the last fault arose fell to the
   * same: one crash, one strike. `isUnreached`: nothing of it reached the server.
   */
  faulted(sinceMs: number, nowMs: number, isUnreached = false): void {
    if (this.#circuit !== "closed" || sinceMs < this.#lastFaultMs) return;
    this.#lastFaultMs = nowMs;
    this.#isUnreached = isUnreached;
    this.faults++;
    this.#judge(nowMs);
  }

  /**
   * A call that began at `startedMs` ran out of time, and the server answered a ping since. As with faults, calls that
   * were under way together count once.
   */
  late({ tool, startedMs }: LateCall, nowMs: number): void {
    if (this.#circuit !== "closed") return;
    this.#isUnreached = false;
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
    this.#earlyWaitMs = Math.min(wasClosed ? EARLY_TRIAL_MS : 2 * this.#earlyWaitMs, this.#rules.openMs);
    this.#earlyDueMs = nowMs + this.#earlyWaitMs;
    const why = `${this.faults} calls in a row found something wrong with it`;
    if (!wasClosed) return;
    this.#events.onTurn?.("open", `the breaker is open: ${why}, and none is sent for ${this.#rules.openMs} ms`);
  }
}
