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

/** Stands still until it is moved. */
export class TestClock implements Clock {
  #now = 0;
  #wall: number;

  constructor(wallMs = 1_700_000_000_000) {
    this.#wall = wallMs;
  }

  now(): number {
    return this.#now;
  }

  wall(): number {
    return this.#wall;
  }

  advance(ms: number): void {
    if (!(ms >= 0)) throw new RangeError("A monotonic clock does not go back; jumpWall() moves the other one.");
    this.#now += ms;
    this.#wall += ms;
  }

  /** As if somebody had set the system's clock. */
  jumpWall(ms: number): void {
    this.#wall += ms;
  }
}
