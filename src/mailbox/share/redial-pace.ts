// When a sharer dials its broker again. It has no clock and no timer: it is told how long a line lasted, and says how long
// to wait.

import { type BackoffLimits, backoffCeiling, fullJitter } from "../../runtime/backoff.js";

/** Half a second hides a restart of the broker; after a long outage it is looked for twice a minute. */
const REDIAL_LIMITS: BackoffLimits = { baseMs: 500, maxMs: 30_000 };

/**
 * A broker that restarts is back within a minute, on a slow disk too. Until then no wait is longer than two seconds, as a
 * worker's is not: all works again a few seconds after the broker does, also where it took long to come.
 */
const RESTART_MS = 60_000;
const RESTART_WAIT_MS = 2_000;

/** A line that lasted so long was a good one: its end says nothing of the next. */
const HEALTHY_MS = 10_000;

export class RedialPace {
  #quickEnds = 0;
  /** When the last good line ended; undefined before the first end. */
  #awaySinceMs: number | undefined;

  /** A line has ended, or a dial has failed, which lasted 0. `random` is in [0, 1). Says how long to wait. */
  ended(lastedMs: number, nowMs: number, random: number): number {
    if (lastedMs >= HEALTHY_MS || this.#awaySinceMs === undefined) {
      this.#quickEnds = 0;
      this.#awaySinceMs = nowMs;
    }
    const waitMs = fullJitter(this.#quickEnds, random, REDIAL_LIMITS);
    const isRestart = nowMs - this.#awaySinceMs < RESTART_MS;
    // It stops counting where the ceiling is reached, so that it has an end.
    const longestMs = isRestart ? RESTART_WAIT_MS : REDIAL_LIMITS.maxMs;
    if (backoffCeiling(this.#quickEnds, REDIAL_LIMITS) < longestMs) this.#quickEnds++;
    return waitMs;
  }
}
