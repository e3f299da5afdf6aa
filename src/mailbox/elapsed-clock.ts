// Time that has passed, sleep included. A machine's steady clock stands still while it sleeps, and its calendar may be
// set: what counts is the larger of the two steps, and never a step back. It is never compared with another machine's.

import type { Clock } from "../runtime/clock.js";

export class ElapsedClock {
  readonly #clock: Clock;
  #steadyMs: number;
  #wallMs: number;
  #elapsedMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#steadyMs = clock.now();
    this.#wallMs = clock.wall();
  }

  now(): number {
    const steadyMs = this.#clock.now();
    const wallMs = this.#clock.wall();
    this.#elapsedMs += Math.max(steadyMs - this.#steadyMs, wallMs - this.#wallMs, 0);
    this.#steadyMs = steadyMs;
    this.#wallMs = wallMs;
    return this.#elapsedMs;
  }

  wall(): number {
    return this.#clock.wall();
  }
}
