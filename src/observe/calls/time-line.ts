// Counts of calls by steps of time: so many of the last steps, with the middle and the slow end of how long calls took in
// each. It has no clock: who adds says when it was.

/** Buckets grow by a fifth, and their middle stands for what is in them: it is wrong by 9.5 % at most. */
const GROWTH = 1.2;
const LOG_GROWTH = Math.log(GROWTH);
/** What is faster is in the first bucket; the last one begins at 20 minutes. */
const SMALLEST_MS = 0.05;
export const BUCKETS = 96;

export function bucketOf(ms: number): number {
  if (!(ms > SMALLEST_MS)) return 0;
  return Math.min(BUCKETS - 1, 1 + Math.floor(Math.log(ms / SMALLEST_MS) / LOG_GROWTH));
}

function middleOf(bucket: number): number {
  return bucket === 0 ? SMALLEST_MS : SMALLEST_MS * GROWTH ** (bucket - 0.5);
}

/** How long this share of the calls took at most; 0 where there were none. */
export function quantile(share: number, ...counts: readonly ArrayLike<number>[]): number {
  let all = 0;
  for (const one of counts) for (let i = 0; i < BUCKETS; i++) all += one[i] as number;
  if (all === 0) return 0;
  let left = Math.ceil(all * share);
  for (let i = 0; i < BUCKETS; i++) {
    for (const one of counts) left -= one[i] as number;
    if (left <= 0) return middleOf(i);
  }
  return middleOf(BUCKETS - 1);
}

/** What a step holds, as numbers in blocks: objects would be ten times as large. */
export interface LineArrays {
  readonly calls: Uint32Array;
  readonly errors: Uint32Array;
  readonly restarts: Uint16Array;
  readonly p50: Float32Array;
  readonly p95: Float32Array;
  /** Of the step that is now, and of the one before it. */
  readonly buckets: Uint32Array;
  readonly bucketsBefore: Uint32Array;
}

/** What all steps of a line hold together. */
interface LineTotals {
  readonly calls: number;
  readonly errors: number;
  readonly restarts: number;
  /** 0 is the step that is now; undefined where there was none. */
  readonly restartedStepsAgo: number | undefined;
}

const MAX_RESTARTS = 65_535;

export class TimeLine {
  readonly stepMs: number;
  readonly steps: number;
  readonly arrays: LineArrays;
  /** The number of the step that is now, since 1970; -1 before the first. */
  #now = -1;

  constructor(stepMs: number, steps: number) {
    this.stepMs = stepMs;
    this.steps = steps;
    this.arrays = {
      calls: new Uint32Array(steps),
      errors: new Uint32Array(steps),
      restarts: new Uint16Array(steps),
      p50: new Float32Array(steps),
      p95: new Float32Array(steps),
      buckets: new Uint32Array(BUCKETS),
      bucketsBefore: new Uint32Array(BUCKETS),
    };
  }

  get now(): number {
    return this.#now;
  }

  add(atMs: number, bucket: number, isError: boolean): void {
    const at = this.#place(atMs);
    const { calls, errors, buckets } = this.arrays;
    calls[at] = (calls[at] as number) + 1;
    if (isError) errors[at] = (errors[at] as number) + 1;
    buckets[bucket] = (buckets[bucket] as number) + 1;
  }

  restarted(atMs: number): void {
    const at = this.#place(atMs);
    const { restarts } = this.arrays;
    restarts[at] = Math.min(MAX_RESTARTS, (restarts[at] as number) + 1);
  }

  /** Ends the steps before this time. */
  advance(atMs: number): void {
    this.#place(atMs);
  }

  /** The p50 or p95 of the step that is now and the one before: what is true lately. */
  lately(share: number): number {
    return quantile(share, this.arrays.buckets, this.arrays.bucketsBefore);
  }

  /** The middle and slow end of the step that is now are worked out here: nobody needs them before. */
  read(atMs: number): Omit<LineArrays, "buckets" | "bucketsBefore"> {
    const at = this.#place(atMs);
    this.#workOut(at);
    const from = (at + 1) % this.steps;
    const { calls, errors, restarts, p50, p95 } = this.arrays;
    return {
      calls: unrolled(calls, from),
      errors: unrolled(errors, from),
      restarts: unrolled(restarts, from),
      p50: unrolled(p50, from),
      p95: unrolled(p95, from),
    };
  }

  /** All steps together, without a copy of them: a page asks for those of 500 servers at once. */
  totals(atMs: number): LineTotals {
    const at = this.#place(atMs);
    const { calls, errors, restarts } = this.arrays;
    const totals = { calls: 0, errors: 0, restarts: 0, restartedStepsAgo: undefined as number | undefined };
    for (let i = 0; i < this.steps; i++) {
      totals.calls += calls[i] as number;
      totals.errors += errors[i] as number;
      totals.restarts += restarts[i] as number;
    }
    if (totals.restarts === 0) return totals;
    let ago = 0;
    while (restarts[(at - ago + this.steps) % this.steps] === 0) ago++;
    totals.restartedStepsAgo = ago;
    return totals;
  }

  /**
   * Of the time that so many steps take, until now: the step that has begun, those before it, and of the oldest as much as is within
   * that time, as if its calls had come evenly.
   */
  within(atMs: number, steps: number): { readonly calls: number; readonly errors: number } {
    const at = this.#place(atMs);
    const { calls, errors } = this.arrays;
    const oldest = (at - steps + this.steps) % this.steps;
    const share = 1 - (atMs % this.stepMs) / this.stepMs;
    const sums = {
      calls: Math.round((calls[oldest] as number) * share),
      errors: Math.round((errors[oldest] as number) * share),
    };
    for (let ago = 0; ago < steps; ago++) {
      const place = (at - ago + this.steps) % this.steps;
      sums.calls += calls[place] as number;
      sums.errors += errors[place] as number;
    }
    return sums;
  }

  /** Takes what was kept of a line before this one: `arrays` are of a line that was at step `now`. */
  join(arrays: LineArrays, now: number, atMs: number): void {
    this.advance(atMs);
    const mine = this.#now;
    // What is of a time to come was kept while the clock was wrong.
    if (now > mine + 1) return;
    for (let step = Math.max(0, Math.max(now, mine) - this.steps + 1); step <= Math.min(now, mine); step++) {
      const at = step % this.steps;
      const own = this.arrays;
      const wasCalled = (own.calls[at] as number) > 0;
      own.calls[at] = (own.calls[at] as number) + (arrays.calls[at] as number);
      own.errors[at] = (own.errors[at] as number) + (arrays.errors[at] as number);
      own.restarts[at] = Math.min(MAX_RESTARTS, (own.restarts[at] as number) + (arrays.restarts[at] as number));
      if (wasCalled) continue;
      own.p50[at] = arrays.p50[at] as number;
      own.p95[at] = arrays.p95[at] as number;
    }
    const { buckets, bucketsBefore } = this.arrays;
    if (now === mine) {
      for (let i = 0; i < BUCKETS; i++) {
        buckets[i] = (buckets[i] as number) + (arrays.buckets[i] as number);
        bucketsBefore[i] = (bucketsBefore[i] as number) + (arrays.bucketsBefore[i] as number);
      }
    } else if (now === mine - 1) {
      for (let i = 0; i < BUCKETS; i++) {
        bucketsBefore[i] = (bucketsBefore[i] as number) + (arrays.buckets[i] as number);
      }
    }
  }

  /** The place of this time in the arrays; what is older than they reach is emptied on the way. */
  #place(atMs: number): number {
    const step = Math.floor(atMs / this.stepMs);
    if (step !== this.#now) this.#turn(step);
    return this.#now % this.steps;
  }

  #turn(step: number): void {
    const { buckets, bucketsBefore } = this.arrays;
    const before = this.#now;
    // Clocks are put right by a little all the time: that is counted where we are.
    if (step === before - 1) return;
    if (before >= 0) this.#workOut(before % this.steps);
    if (step === before + 1) bucketsBefore.set(buckets);
    else bucketsBefore.fill(0);
    buckets.fill(0);
    // A clock that was set back takes the steps with it that have not been yet.
    const [from, to] = step > before ? [before + 1, step] : [step + 1, before];
    const first = Math.max(from, to - this.steps + 1);
    for (let one = first; one <= to; one++) this.#empty(((one % this.steps) + this.steps) % this.steps);
    this.#now = step;
  }

  #empty(at: number): void {
    const { calls, errors, restarts, p50, p95 } = this.arrays;
    for (const one of [calls, errors, restarts, p50, p95]) one[at] = 0;
  }

  #workOut(at: number): void {
    const { calls, p50, p95, buckets } = this.arrays;
    if ((calls[at] as number) === 0) return;
    const middle = quantile(0.5, buckets);
    // A line that was joined has no buckets for a step that ended before: what it had worked out stays.
    if (middle === 0) return;
    p50[at] = middle;
    p95[at] = quantile(0.95, buckets);
  }
}

function unrolled<T extends Uint32Array | Uint16Array | Float32Array>(ring: T, from: number): T {
  const copy = ring.slice() as T;
  copy.set(ring.subarray(from) as never, 0);
  copy.set(ring.subarray(0, from) as never, ring.length - from);
  return copy;
}
