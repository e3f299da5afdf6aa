// How long to wait before the next attempt. Pure: the caller counts the attempts and passes the randomness in.

export interface BackoffLimits {
  /** The ceiling of the first wait. */
  readonly baseMs: number;
  /** The ceiling that doubling stops at. */
  readonly maxMs: number;
}

/** The longest that fullJitter can say for this attempt; `attempt` counts from 0. */
export function backoffCeiling(attempt: number, limits: BackoffLimits): number {
  return Math.min(limits.maxMs, limits.baseMs * 2 ** Math.max(0, attempt));
}

/**
 * Full jitter: anywhere between 0 and the ceiling. Many that failed together then come back spread out, which
 * keeps the load on whatever they share lowest for the same mean wait. `random` is in [0, 1), as Math.random is.
 */
export function fullJitter(attempt: number, random: number, limits: BackoffLimits): number {
  return random * backoffCeiling(attempt, limits);
}
