// The time, as something that is passed in: callers own the clock, so that what waits can run under a simulated one.

export interface Clock {
  /** Milliseconds that only go forward; for deadlines, backoff, ages. Means nothing outside this process. */
  now(): number;
  /** Milliseconds since 1970, which may jump; only for what is shown, or compared with other machines. */
  wall(): number;
}

export const systemClock: Clock = {
  now: () => performance.now(),
  wall: () => Date.now(),
};

/** A time of the wall, as JSON has it. */
export function isoTime(wallMs: number): string;
export function isoTime(wallMs: number | undefined): string | undefined;
export function isoTime(wallMs: number | undefined): string | undefined {
  return wallMs === undefined ? undefined : new Date(wallMs).toISOString();
}
