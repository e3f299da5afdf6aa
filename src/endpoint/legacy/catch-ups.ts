// When sessions that went on over a restart are told that they may have missed something: not all at once, since each of
// them may read its lists then. It decides only: it is told that a step of time has passed.

/** Many agents come back within a second of a restart; read over so long, their lists are no burst for anybody. */
const SPREAD_MS = 5_000;
/** A step is short for an agent, and few timers for us. */
export const STEP_MS = 250;

const STEPS = SPREAD_MS / STEP_MS;

/** The sessions of the endpoint bound it: each is in it once. */
export class CatchUps<S> {
  readonly #steps: S[][] = Array.from({ length: STEPS }, () => []);
  #now = 0;
  #added = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The first has its turn at the next step, those after it at one of the next each. */
  add(session: S): void {
    if (this.#size === 0) this.#added = 0;
    this.#steps[(this.#now + (this.#added++ % STEPS)) % STEPS]?.push(session);
    this.#size++;
  }

  /** A step has passed: those whose turn it is. */
  step(): S[] {
    const turn = this.#steps[this.#now] ?? [];
    this.#steps[this.#now] = [];
    this.#now = (this.#now + 1) % STEPS;
    this.#size -= turn.length;
    return turn;
  }
}
