// What agents did not have to notice in the last day, by kind: counts by five minutes, in memory. It is told the time.

const STEP_MS = 300_000;
const STEPS = 288;

export class CaughtDay {
  /** Kinds are a handful of fixed words. */
  readonly #kinds = new Map<string, Uint32Array>();
  readonly #beganMs: number;
  #step: number;

  constructor(nowMs: number) {
    this.#beganMs = nowMs;
    this.#step = Math.floor(nowMs / STEP_MS);
  }

  add(kind: string, count: number, atMs: number): void {
    this.#advance(atMs);
    let steps = this.#kinds.get(kind);
    if (steps === undefined) {
      steps = new Uint32Array(STEPS);
      this.#kinds.set(kind, steps);
    }
    const at = this.#step % STEPS;
    steps[at] = (steps[at] as number) + count;
  }

  /** Kinds that were seen, with how often; and since when, at most a day ago. */
  read(nowMs: number): { readonly sinceMs: number; readonly counts: Readonly<Record<string, number>> } {
    this.#advance(nowMs);
    const counts: Record<string, number> = {};
    for (const [kind, steps] of this.#kinds) {
      let sum = 0;
      for (const count of steps) sum += count;
      if (sum > 0) counts[kind] = sum;
    }
    return { sinceMs: Math.max(this.#beganMs, nowMs - STEP_MS * STEPS), counts };
  }

  /** What is a day old makes room. A clock that was set back counts for the newest step. */
  #advance(nowMs: number): void {
    const step = Math.floor(nowMs / STEP_MS);
    if (step <= this.#step) return;
    const passed = Math.min(step - this.#step, STEPS);
    for (const steps of this.#kinds.values()) {
      for (let n = 1; n <= passed; n++) steps[(this.#step + n) % STEPS] = 0;
    }
    // Steps that were passed over by more than a day are all empty, whatever their number.
    if (step - this.#step > STEPS) for (const steps of this.#kinds.values()) steps.fill(0);
    this.#step = step;
  }
}
