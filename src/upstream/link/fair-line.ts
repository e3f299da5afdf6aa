// Places that several principals share: how many one of them may hold, and who is next. It does no I/O and has no clock.

/**
 * A principal may hold so many times what it leaves free: one alone gets three quarters, so that there is always room
 * for the next, and each that comes gets the same part of what is left.
 */
const HELD_TO_FREE = 3;

/** Whether a principal that holds `own` places may take one more of those that are `free`. The last one is a newcomer's. */
export function mayTake(own: number, free: number): boolean {
  return free > 0 && (own === 0 || own + 1 <= HELD_TO_FREE * (free - 1));
}

/** So many principals that hold nothing are remembered, so that each call of one does not make its entry anew. */
const MAX_IDLE_SHARES = 64;

interface Share<T> {
  held: number;
  /** Those that wait for a place, by their numbers, in their order. */
  readonly waiting: Map<number, T>;
}

/** So many places, and a line for each principal that has its part of them. */
export class FairLine<T> {
  readonly #shares = new Map<string, Share<T>>();
  #free: number;
  #waiting = 0;

  constructor(capacity: number) {
    this.#free = capacity;
  }

  get free(): number {
    return this.#free;
  }

  /** Counts those that wait. */
  get waiting(): number {
    return this.#waiting;
  }

  /** True where there is a place for this principal now; else it has to wait. */
  enter(principal: string): boolean {
    const share = this.#shareOf(principal);
    if (share.waiting.size > 0 || !mayTake(share.held, this.#free)) return false;
    share.held++;
    this.#free--;
    return true;
  }

  /** next() tells when it has a place. */
  wait(principal: string, number: number, item: T): void {
    this.#shareOf(principal).waiting.set(number, item);
    this.#waiting++;
  }

  leave(principal: string): void {
    const share = this.#shares.get(principal);
    if (share === undefined || share.held === 0) return;
    share.held--;
    this.#free++;
    this.#tidy(principal, share);
  }

  /** It waits no longer. False where it did not. */
  giveUp(principal: string, number: number): boolean {
    const share = this.#shares.get(principal);
    if (share === undefined || !share.waiting.delete(number)) return false;
    this.#waiting--;
    this.#tidy(principal, share);
    return true;
  }

  /** The next that has a place now: principals take turns. To be asked, after one has left, until there is none. */
  next(): T | undefined {
    if (this.#waiting === 0 || this.#free === 0) return undefined;
    for (const [principal, share] of this.#shares) {
      if (share.waiting.size === 0 || !mayTake(share.held, this.#free)) continue;
      const [[number, item]] = share.waiting as unknown as [[number, T]];
      share.waiting.delete(number);
      this.#waiting--;
      share.held++;
      this.#free--;
      // Whoever was served is asked last the next time.
      this.#shares.delete(principal);
      this.#shares.set(principal, share);
      return item;
    }
    return undefined;
  }

  /** Ends the waiting of all. */
  giveUpAll(): T[] {
    const items = [...this.#shares.values()].flatMap(({ waiting }) => [...waiting.values()]);
    for (const { waiting } of this.#shares.values()) waiting.clear();
    this.#waiting = 0;
    return items;
  }

  #shareOf(principal: string): Share<T> {
    let share = this.#shares.get(principal);
    if (share === undefined) {
      share = { held: 0, waiting: new Map() };
      this.#shares.set(principal, share);
    }
    return share;
  }

  #tidy(principal: string, { held, waiting }: Share<T>): void {
    if (held === 0 && waiting.size === 0 && this.#shares.size > MAX_IDLE_SHARES) this.#shares.delete(principal);
  }
}
