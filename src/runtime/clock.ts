// The time, as something that is passed in: callers own the clock, so that what waits can run under a simulated one.

export interface Clock {
  /** Milliseconds that only go forward; for deadlines, backoff, ages. Means nothing outside this process. */
  now(): number;
  /** Milliseconds since 1970, which may jump; only for what is shown, or compared with other machines. */
  wall(): number;
}

/** When this process began. */
const beganMs = sinceBoot() - process.uptime() * 1_000;

/** `performance.now()` costs the same, but loads all that Node can measure when it is first asked: a part of each start. */
function sinceBoot(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000 + nanoseconds / 1_000_000;
}

export const systemClock: Clock = {
  now: () => sinceBoot() - beganMs,
  wall: () => Date.now(),
};

/** A duration as it is shown: tenths are enough to tell a cache from a server. */
export function shortMs(ms: number): number {
  return ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms);
}

/** A time of the wall, as JSON has it. */
export function isoTime(wallMs: number): string;
export function isoTime(wallMs: number | undefined): string | undefined;
export function isoTime(wallMs: number | undefined): string | undefined {
  return wallMs === undefined ? undefined : new Date(wallMs).toISOString();
}
