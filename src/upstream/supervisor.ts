// The life of one connection to a server, as a pure state machine: when to start it, when to wait, when to send.
// It does no I/O, has no clock and no timers; a driver does what its methods return, and reports what happened.
//
//   idle ──wanted──▶ starting ──started──▶ ready
//    ▲                  │ failed             │ closed: after a steady time ▶ idle, else ▶ backoff
//    └──wake, unwanted──┴──▶ backoff ◀───────┘
//                              └──wake, wanted ▶ starting            stop: ▶ stopped, from anywhere, for good
//
// A driver, whole:
//
//   call(c) {
//     switch (supervisor.wanted(clock.now())) {
//       case "send":    link.send(c); break;
//       case "start":   queue.push(c); start(); break;
//       case "wait":    queue.push(c); setTimer(); break;    // an attempt is under way, or due at nextWakeMs
//       case "refused": c.reply(closing); break;             // stopped
//     }
//   }
//   start() {                                                // exactly one attempt is alive at any time
//     open().then(
//       () => { supervisor.started(clock.now()); sendAll(queue); },
//       (fault) => { failAll(queue, fault); perform(supervisor.failed(clock.now())); });
//   }
//   onClosed()  { failInFlight(); perform(supervisor.closed(clock.now())); }
//   onTimer()   { perform(supervisor.wake(clock.now())); }   // early and late wakes do no harm
//   onReload()  { perform(supervisor.reload(clock.now())); }
//   onStop()    { perform(supervisor.stop()); }
//   perform(action) {
//     if (action === "start") start();
//     if (action === "close") closeLinkOrAbortStart();       // then report closed(), or failed() if it was starting
//     setTimer();                                            // at supervisor.nextWakeMs, if there is one
//   }
//
// Calls that a driver keeps queued over a failed start say so by wanted(), once each: an attempt is only made
// when somebody wants it. Events of a link that is no longer the current one must not be reported.

import { type BackoffLimits, fullJitter } from "../runtime/backoff.js";

export type SupervisorState = "idle" | "starting" | "ready" | "backoff" | "stopped";

export type Verdict = "send" | "start" | "wait" | "refused";

export type Action = "none" | "start" | "close";

/** 100 ms is unnoticed by an agent and enough to keep a crash loop cheap; 5 s is as long as a call likes to wait. */
const BACKOFF: BackoffLimits = { baseMs: 100, maxMs: 5_000 };

/** A server that was ready this long did not die of its start: the next crash is a first one again. */
const STEADY_MS = 10_000;

export interface SupervisorOptions {
  /** In [0, 1), as Math.random. */
  readonly random: () => number;
  readonly backoff?: BackoffLimits;
  readonly steadyMs?: number;
}

type Phase =
  | { readonly kind: "idle" }
  | { readonly kind: "starting" }
  | { readonly kind: "ready"; readonly sinceMs: number }
  | { readonly kind: "backoff"; readonly dueMs: number; wanted: boolean }
  /** The link or the attempt is being closed, to be started anew. */
  | { readonly kind: "reloading" }
  | { readonly kind: "stopped" };

const IDLE: Phase = { kind: "idle" };
const STARTING: Phase = { kind: "starting" };
const RELOADING: Phase = { kind: "reloading" };
const STOPPED: Phase = { kind: "stopped" };

export class Supervisor {
  readonly #random: () => number;
  readonly #backoff: BackoffLimits;
  readonly #steadyMs: number;
  #phase: Phase = IDLE;
  /** Failed starts and early deaths in a row. */
  #failures = 0;
  #restarts = 0;
  /** The next start makes good for a death or a failed start. */
  #broken = false;

  constructor(options: SupervisorOptions) {
    this.#random = options.random;
    this.#backoff = options.backoff ?? BACKOFF;
    this.#steadyMs = options.steadyMs ?? STEADY_MS;
  }

  get state(): SupervisorState {
    return this.#phase.kind === "reloading" ? "starting" : this.#phase.kind;
  }

  /** When wake() is to be called; undefined while there is nothing to wait for. */
  get nextWakeMs(): number | undefined {
    return this.#phase.kind === "backoff" ? this.#phase.dueMs : undefined;
  }

  /** Starts that followed a death or a failed start. One crash is one restart, however many calls it took along. */
  get restarts(): number {
    return this.#restarts;
  }

  /** Failed starts and early deaths since it was last steady. */
  get failures(): number {
    return this.#failures;
  }

  /** A call wants the server. "start" is said once; until that attempt ends, all others wait. */
  wanted(nowMs: number): Verdict {
    const phase = this.#phase;
    switch (phase.kind) {
      case "ready":
        return "send";
      case "starting":
      case "reloading":
        return "wait";
      case "stopped":
        return "refused";
      case "idle":
        this.#start();
        return "start";
      case "backoff":
        if (nowMs >= phase.dueMs) {
          this.#start();
          return "start";
        }
        phase.wanted = true;
        return "wait";
    }
  }

  /** The attempt succeeded: connected, and the handshake is done. */
  started(nowMs: number): void {
    if (this.#phase.kind === "starting") this.#phase = { kind: "ready", sinceMs: nowMs };
  }

  /** The attempt failed, or was aborted by "close". */
  failed(nowMs: number): Action {
    if (this.#phase.kind === "reloading") return this.#start();
    if (this.#phase.kind !== "starting") return "none";
    this.#fall(nowMs);
    return "none";
  }

  /** The link of a ready server has ended, by itself or by "close". */
  closed(nowMs: number): Action {
    const phase = this.#phase;
    if (phase.kind === "reloading") return this.#start();
    if (phase.kind !== "ready") return "none";
    if (nowMs - phase.sinceMs >= this.#steadyMs) {
      this.#failures = 0;
      this.#broken = true;
      this.#phase = IDLE;
    } else this.#fall(nowMs);
    return "none";
  }

  /** A ready server's link was closed because nobody needs it now: no failure, and the next call starts it. */
  rested(): void {
    if (this.#phase.kind === "ready") this.#phase = IDLE;
  }

  /** The time of nextWakeMs has come. */
  wake(nowMs: number): Action {
    const phase = this.#phase;
    if (phase.kind !== "backoff" || nowMs < phase.dueMs) return "none";
    if (phase.wanted) return this.#start();
    this.#phase = IDLE;
    return "none";
  }

  /** The server's entry has changed: what runs is closed first, then it is started from new, without a wait. */
  reload(): Action {
    switch (this.#phase.kind) {
      case "stopped":
      case "reloading":
        return "none";
      case "starting":
      case "ready":
        this.#forgive();
        this.#phase = RELOADING;
        return "close";
      case "idle":
      case "backoff":
        this.#forgive();
        return this.#start();
    }
  }

  /** For good: nothing starts after it. */
  stop(): Action {
    const kind = this.#phase.kind;
    this.#phase = STOPPED;
    return kind === "starting" || kind === "ready" ? "close" : "none";
  }

  #start(): "start" {
    if (this.#broken) this.#restarts++;
    this.#broken = false;
    this.#phase = STARTING;
    return "start";
  }

  #fall(nowMs: number): void {
    const waitMs = fullJitter(this.#failures, this.#random(), this.#backoff);
    this.#failures++;
    this.#broken = true;
    this.#phase = { kind: "backoff", dueMs: nowMs + waitMs, wanted: false };
  }

  /** A changed entry is another server: the old one's failures say nothing of it. */
  #forgive(): void {
    this.#failures = 0;
    this.#broken = false;
  }
}
