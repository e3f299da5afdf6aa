// What agents did not have to notice in the last day, by kind: counts by five minutes. They are saved with the past, and go on after
// a restart. It is told the time.

const STEP_MS = 300_000;
const STEPS = 288;

/** As it is saved. */
export interface SavedCaught {
  readonly sinceMs: number;
  /** By kind: steps in which something was counted, by their number since 1970. */
  readonly kinds: Readonly<Record<string, readonly (readonly [step: number, count: number])[]>>;
}

export class CaughtDay {
  /** Whether there is something to save. */
  isChanged = false;
  /** Kinds are a handful of fixed words. */
  readonly #kinds = new Map<string, Uint32Array>();
  #beganMs: number;
  #step: number;

  constructor(nowMs: number) {
    this.#beganMs = nowMs;
    this.#step = Math.floor(nowMs / STEP_MS);
  }

  add(kind: string, count: number, atMs: number): void {
    this.#advance(atMs);
    this.isChanged = true;
    this.#count(kind, this.#step, count);
  }

  #count(kind: string, step: number, count: number): void {
    let steps = this.#kinds.get(kind);
    if (steps === undefined) {
      steps = new Uint32Array(STEPS);
      this.#kinds.set(kind, steps);
    }
    const at = step % STEPS;
    steps[at] = (steps[at] as number) + count;
  }

  get saved(): SavedCaught {
    const kinds: Record<string, [number, number][]> = {};
    for (const [kind, steps] of this.#kinds) {
      kinds[kind] = Array.from(steps.keys(), (ago): [number, number] => {
        const step = this.#step - ago;
        return [step, steps[((step % STEPS) + STEPS) % STEPS] as number];
      }).filter(([, count]) => count > 0);
    }
    return { sinceMs: this.#beganMs, kinds };
  }

  /** Adds what was counted before the start. */
  join({ sinceMs, kinds }: SavedCaught, nowMs: number): void {
    this.#advance(nowMs);
    for (const [kind, steps] of Object.entries(kinds)) {
      for (const [step, count] of steps) {
        // What is of a time to come was kept while the clock was wrong.
        if (step <= this.#step && step > this.#step - STEPS) this.#count(kind, step, count);
      }
    }
    this.#beganMs = Math.min(this.#beganMs, sinceMs);
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
