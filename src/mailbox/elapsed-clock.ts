// Time that has passed, sleep included. A machine's steady clock stands still while it sleeps, and its calendar may be
// set: it goes by the steady clock, and where the calendar goes ahead of that, by so much more, and never back. It is never compared
// with another machine's.

import type { Clock } from "../runtime/clock.js";

/**
 * What the calendar must be ahead to count. It tells whole milliseconds and is nudged by whoever keeps it right: to count each of its
 * steps that is the larger one makes a second of two halves, where it is asked often.
 */
const NOTICED_MS = 50;

export class ElapsedClock {
  readonly #clock: Clock;
  readonly #beganMs: number;
  /** How far the calendar is ahead of the steady clock, as far as that was counted. */
  #aheadMs: number;
  /** What the calendar has said more. */
  #moreMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#beganMs = clock.now();
    this.#aheadMs = clock.wall() - this.#beganMs;
  }

  now(): number {
    const steadyMs = this.#clock.now();
    const aheadMs = this.#clock.wall() - steadyMs;
    const moreMs = aheadMs - this.#aheadMs;
    if (moreMs >= NOTICED_MS) this.#moreMs += moreMs;
    if (moreMs >= NOTICED_MS || moreMs < 0) this.#aheadMs = aheadMs;
    return steadyMs - this.#beganMs + this.#moreMs;
  }

  wall(): number {
    return this.#clock.wall();
  }
}
