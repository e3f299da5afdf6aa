// The life of one connection to a server, as a pure state machine: when to start it, when to wait, when to give it up.
// It does no I/O, has no clock and no timers; a driver does what its methods return, and reports what happened.
//
//   idle ──wanted──▶ starting ──started──▶ ready
//    ▲                  │ failed             │ closed: after a steady time ▶ idle, else ▶ backoff
//    └──wake, unwanted──┴──▶ backoff ◀───────┘        restarts used up: ▶ ejected, from either
//                              └──wake, wanted ▶ starting
//                            ejected ──wake, where it is probed──▶ starting: started forgives, failed ejects again
//                                                                 stop: ▶ stopped, from anywhere, for good
//
// Its driver is driver.ts. Calls that a driver keeps queued over a failed start say so by wanted(), once each: an
// attempt is only made when somebody wants it, but for the probe of an ejected server. Events of a link that is no
// longer the current one must not be reported. A server whose entry changes, or that an operator reloads, gets a
// supervisor of its own.

import type { Supervision } from "../../contracts/server-spec.js";
import { fullJitter } from "../../runtime/backoff.js";

export type SupervisorState = "idle" | "starting" | "ready" | "backoff" | "ejected" | "stopped";

export type CallVerdict = "send" | "start" | "wait" | "refused";

/** A server that was ready this long did not die of its start: the next wait is a first one again. */
const STEADY_MS = 10_000;

export type RestartRules = Pick<Supervision, "restarts" | "backoff" | "ejectedProbeMs">;

type Phase =
  | { readonly kind: "idle" }
  /** `probes`: the one attempt that an ejected server gets. */
  | { readonly kind: "starting"; readonly probes: boolean }
  | { readonly kind: "ready"; readonly sinceMs: number }
  | { readonly kind: "backoff"; readonly dueMs: number; wanted: boolean }
  | { readonly kind: "ejected"; readonly dueMs: number | undefined }
  | { readonly kind: "stopped" };

const IDLE: Phase = { kind: "idle" };
const STOPPED: Phase = { kind: "stopped" };

export class Supervisor {
  readonly #rules: RestartRules;
  /** Gives numbers in [0, 1), as Math.random. */
  readonly #random: () => number;
  #phase: Phase = IDLE;
  /** Counts failed starts and early deaths in a row. */
  #failedStarts = 0;
  #restarts = 0;
  /** The times of the latest restarts, oldest first: at most as many as the budget has. */
  #recent: number[] = [];
  /** True where the next start follows a death or a failed start. */
  #broken = false;
  /** The same of the start that is under way. */
  #isAgain = false;
  /** When it was last there, or first was not; undefined while nothing went wrong. */
  #awayMs: number | undefined;

  constructor(rules: RestartRules, random: () => number) {
    this.#rules = rules;
    this.#random = random;
  }

  get state(): SupervisorState {
    return this.#phase.kind;
  }

  /** Since when it is ready, is not though it was wanted, or is stopped. Undefined where nobody has wanted it. */
  get sinceMs(): number | undefined {
    return this.#phase.kind === "ready" ? this.#phase.sinceMs : this.#awayMs;
  }

  /** When wake() is to be called; undefined while there is nothing to wait for. */
  get nextWakeMs(): number | undefined {
    const phase = this.#phase;
    return phase.kind === "backoff" || phase.kind === "ejected" ? phase.dueMs : undefined;
  }

  /** Starts that followed a death or a failed start. One crash is one restart, however many calls it took along. */
  get restarts(): number {
    return this.#restarts;
  }

  /** What is started now, or next, follows a death or a failed start. */
  get isRestart(): boolean {
    return this.#broken || (this.#phase.kind === "starting" && this.#isAgain);
  }

  /** Failed starts and early deaths since it was last steady. */
  get failedStarts(): number {
    return this.#failedStarts;
  }

  /** A call wants the server. "start" is said once; until that attempt ends, all others wait. */
  wanted(nowMs: number): CallVerdict {
    const phase = this.#phase;
    switch (phase.kind) {
      case "ready":
        return "send";
      case "starting":
        return "wait";
      case "stopped":
        return "refused";
      case "ejected":
        if (phase.dueMs === undefined || nowMs < phase.dueMs) return "refused";
        return this.#start(nowMs, true);
      case "idle":
        return this.#start(nowMs, false);
      case "backoff":
        if (nowMs >= phase.dueMs) return this.#start(nowMs, false);
        phase.wanted = true;
        return "wait";
    }
  }

  /** The attempt succeeded: connected, and the handshake is done. */
  started(nowMs: number): void {
    const phase = this.#phase;
    if (phase.kind !== "starting") return;
    if (phase.probes) {
      this.#failedStarts = 0;
      this.#recent = [];
    }
    this.#awayMs = undefined;
    this.#phase = { kind: "ready", sinceMs: nowMs };
  }

  /** The attempt failed, or was given up. */
  failed(nowMs: number): void {
    if (this.#phase.kind !== "starting") return;
    this.#awayMs ??= nowMs;
    this.#fall(nowMs, this.#phase.probes);
  }

  /** The link of a ready server has ended, or was closed because the server hung. */
  closed(nowMs: number): void {
    const phase = this.#phase;
    if (phase.kind !== "ready") return;
    this.#awayMs = nowMs;
    const wasSteady = nowMs - phase.sinceMs >= STEADY_MS;
    if (wasSteady) this.#failedStarts = 0;
    if (!wasSteady || this.#spent(nowMs)) {
      this.#fall(nowMs, false);
      return;
    }
    this.#broken = true;
    this.#phase = IDLE;
  }

  /** A ready server's link was closed because nobody needs it now: no failure, and the next call starts it. */
  rested(): void {
    if (this.#phase.kind === "ready") this.#phase = IDLE;
  }

  /** The time of nextWakeMs has come. */
  wake(nowMs: number): "none" | "start" {
    const phase = this.#phase;
    if (phase.kind === "ejected" && phase.dueMs !== undefined && nowMs >= phase.dueMs) return this.#start(nowMs, true);
    if (phase.kind !== "backoff" || nowMs < phase.dueMs) return "none";
    if (phase.wanted) return this.#start(nowMs, false);
    this.#phase = IDLE;
    return "none";
  }

  /** Stops it for good: nothing starts after it. */
  stop(nowMs: number): "none" | "close" {
    const { kind } = this.#phase;
    if (kind !== "stopped") this.#awayMs = nowMs;
    this.#phase = STOPPED;
    return kind === "starting" || kind === "ready" ? "close" : "none";
  }

  /** A probe does not count against the budget: it has its own interval. */
  #start(nowMs: number, probes: boolean): "start" {
    if (this.#broken) {
      this.#restarts++;
      if (!probes) this.#recent.push(nowMs);
    }
    this.#isAgain = this.#broken;
    this.#broken = false;
    this.#phase = { kind: "starting", probes };
    return "start";
  }

  #fall(nowMs: number, wasProbe: boolean): void {
    const { backoff, ejectedProbeMs } = this.#rules;
    this.#broken = true;
    if (wasProbe || this.#spent(nowMs)) {
      this.#failedStarts++;
      const dueMs = ejectedProbeMs === undefined ? undefined : nowMs + ejectedProbeMs;
      this.#phase = { kind: "ejected", dueMs };
      return;
    }
    const waitMs = fullJitter(this.#failedStarts, this.#random(), backoff);
    this.#failedStarts++;
    this.#phase = { kind: "backoff", dueMs: nowMs + waitMs, wanted: false };
  }

  /** Whether the budget allows no further restart. */
  #spent(nowMs: number): boolean {
    const { max, windowMs } = this.#rules.restarts;
    while (this.#recent[0] !== undefined && this.#recent[0] <= nowMs - windowMs) this.#recent.shift();
    return this.#recent.length >= max;
  }
}
