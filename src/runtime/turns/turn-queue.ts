// A queue in turns: whoever has much in it does not hold up the others. What is of one owner stays in the order in which it came.

export interface Owned {
  /** Whose it is. What is nobody's has none, and comes before all that is somebody's. */
  readonly by?: string | undefined;
}

type Choice<T> = (one: T) => boolean;

export class TurnQueue<T extends Owned> {
  /** What was taken out and put back, and is first again. */
  #returned: T[] = [];
  readonly #nobodys: T[] = [];
  /** The next in turn is first. Each has something. */
  readonly #owners = new Map<string, T[]>();
  #size = 0;
  #onPush: (() => void) | undefined;

  get size(): number {
    return this.#size;
  }

  push(one: T): void {
    this.#size++;
    if (one.by === undefined) this.#nobodys.push(one);
    else {
      const waiting = this.#owners.get(one.by);
      if (waiting === undefined) this.#owners.set(one.by, [one]);
      else waiting.push(one);
    }
    this.#onPush?.();
  }

  /** Resolves with the next push. For one that waits: another takes its place. */
  pushed(): Promise<void> {
    return new Promise((resolve) => {
      this.#onPush = resolve;
    });
  }

  /** The next in turn that `isChosen`; only the first of each owner is looked at. */
  peek(isChosen: Choice<T> = () => true): T | undefined {
    return this.#next(isChosen)?.[0];
  }

  /** Takes out what `peek` says. */
  shift(isChosen: Choice<T> = () => true): T | undefined {
    const waiting = this.#next(isChosen);
    const one = waiting?.shift();
    if (waiting === undefined || one === undefined) return undefined;
    this.#size--;
    if (one.by === undefined || waiting === this.#returned) return one;
    this.#owners.delete(one.by);
    if (waiting.length > 0) this.#owners.set(one.by, waiting);
    return one;
  }

  /** To the front, in this order. */
  putBack(taken: readonly T[]): void {
    this.#size += taken.length;
    this.#returned = [...taken, ...this.#returned];
  }

  #next(isChosen: Choice<T>): T[] | undefined {
    const [returned, nobodys] = [this.#returned[0], this.#nobodys[0]];
    if (returned !== undefined && isChosen(returned)) return this.#returned;
    if (nobodys !== undefined && isChosen(nobodys)) return this.#nobodys;
    if (this.#owners.size === 0) return undefined;
    for (const waiting of this.#owners.values()) {
      const [first] = waiting;
      if (first !== undefined && isChosen(first)) return waiting;
    }
    return undefined;
  }
}
