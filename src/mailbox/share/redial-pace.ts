// When a sharer dials its broker again. It has no clock and no timer: it is told how long a line lasted, and says how long
// to wait.

import { type BackoffLimits, backoffCeiling, fullJitter } from "../../runtime/backoff.js";

/** Half a second hides a restart of the broker; after a long outage it is looked for twice a minute. */
const REDIAL_LIMITS: BackoffLimits = { baseMs: 500, maxMs: 30_000 };

/** A line that lasted so long was a good one: its end says nothing of the next. */
const HEALTHY_MS = 10_000;

export class RedialPace {
  #quickEnds = 0;

  /** A line has ended, or a dial has failed, which lasted 0. `random` is in [0, 1). Says how long to wait. */
  ended(lastedMs: number, random: number): number {
    if (lastedMs >= HEALTHY_MS) this.#quickEnds = 0;
    const waitMs = fullJitter(this.#quickEnds, random, REDIAL_LIMITS);
    // It stops counting where the ceiling is reached, so that it has an end.
    if (backoffCeiling(this.#quickEnds, REDIAL_LIMITS) < REDIAL_LIMITS.maxMs) this.#quickEnds++;
    return waitMs;
  }
}
