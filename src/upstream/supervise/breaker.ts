// The circuit breaker of one server, as a pure state machine: after so many faults in a row calls are refused for a
// while, then one is tried. connection/in-flight.ts tells it of faults, breaker-probe.ts tries the one call.
//
//   closed ──so many faults in a row──▶ open ──time, and a call──▶ half-open ──the probe succeeds──▶ closed
//                                        ▲                            │
//                                        └──────the probe fails───────┘   given back: open, and due at once

import type { Supervision } from "../../contracts/server-spec.js";
import type { FaultCode } from "../../protocol/errors.js";

export type Circuit = "closed" | "open" | "half-open";

/** How a probe ended. `unknown`: it was cancelled, or failed for a reason that says nothing of the server. */
export type BreakerOutcome = "answered" | "fault" | "unknown";

/**
 * These speak of the way to a server or of its protocol; what it answers, and what we refuse, says nothing of its
 * health.
 */
const COUNTED: ReadonlySet<FaultCode> = new Set<FaultCode>(["unavailable", "outcome-unknown", "timeout", "protocol"]);

export function countsAsFault(code: FaultCode): boolean {
  return COUNTED.has(code);
}

export class Breaker {
  readonly #rules: Supervision["breaker"];
  /** Counts faults in a row. The hot path looks at this one field: while it is 0, there is nothing to do. */
  strikes = 0;
  #circuit: Circuit = "closed";
  #lastFaultMs = Number.NEGATIVE_INFINITY;
  #dueMs = 0;
  /** Counts probes, so that the outcome of a probe is told from that of an earlier one. */
  #probe = 0;

  constructor(rules: Supervision["breaker"]) {
    this.#rules = rules;
  }

  get circuit(): Circuit {
    return this.#circuit;
  }

  /** How long until the next call is tried; undefined while closed, and while one is being tried. */
  nextTryInMs(nowMs: number): number | undefined {
    return this.#circuit === "open" ? Math.max(0, this.#dueMs - nowMs) : undefined;
  }

  /**
   * For a circuit that is not closed: the number of the probe that this call is, or undefined where it is refused. Its
   * outcome must be told, once, by probed().
   */
  admit(nowMs: number): number | undefined {
    if (this.#circuit !== "open" || nowMs < this.#dueMs) return undefined;
    this.#circuit = "half-open";
    return ++this.#probe;
  }

  /** The probe has ended. */
  probed(probe: number, outcome: BreakerOutcome, nowMs: number): void {
    if (this.#circuit !== "half-open" || probe !== this.#probe) return;
    if (outcome === "answered") {
      this.#circuit = "closed";
      this.strikes = 0;
    } else if (outcome === "fault") {
      this.strikes++;
      this.#open(nowMs);
    } else {
      this.#circuit = "open";
      this.#dueMs = nowMs;
    }
  }

  /** There is reason to think that it works again: the next call is the probe. */
  hasten(nowMs: number): void {
    if (this.#circuit === "open") this.#dueMs = Math.min(this.#dueMs, nowMs);
  }

  /** A call was answered, with a result or an error. While the circuit is not closed, only the probe counts. */
  answered(): void {
    if (this.#circuit === "closed") this.strikes = 0;
  }

  /**
   * A call that began at `sinceMs` ended by a fault. Calls that were under way when the last fault arose fell to the
   * same: one crash, one strike.
   */
  faulted(sinceMs: number, nowMs: number): void {
    if (this.#circuit !== "closed" || sinceMs < this.#lastFaultMs) return;
    this.#lastFaultMs = nowMs;
    if (++this.strikes >= this.#rules.failures) this.#open(nowMs);
  }

  #open(nowMs: number): void {
    this.#circuit = "open";
    this.#lastFaultMs = nowMs;
    this.#dueMs = nowMs + this.#rules.openMs;
  }
}
