// The time by which kept replies grow old. A machine's monotonic clock stands still while it sleeps, and what was kept
// before the night would be fresh in the morning; so where the other clock leaps ahead, this one does too.

import type { Clock } from "../runtime/clock.js";

/** The clocks drift and round apart by milliseconds, which is no sleep. */
const LEAP_MS = 1_000;

export class AgeClock {
  readonly #clock: Clock;
  #now: number;
  #wall: number;
  #slept = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#now = clock.now();
    this.#wall = clock.wall();
  }

  /** Milliseconds that only go forward. A clock that is set ahead ages what is kept, one that is set back does not. */
  now(): number {
    const now = this.#clock.now();
    const wall = this.#clock.wall();
    const leapMs = wall - this.#wall - (now - this.#now);
    if (Math.abs(leapMs) > LEAP_MS) {
      this.#now = now;
      this.#wall = wall;
      this.#slept += Math.max(0, leapMs);
    }
    return now + this.#slept;
  }
}
