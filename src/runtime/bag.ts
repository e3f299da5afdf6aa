// A set of objects that come and go with every call, each knowing its place. Why not a Set is told in table.ts.

/** Where it stands in its bag. Only the bag writes it. */
export interface Placed {
  place: number;
}

/** The `place` of what is in no bag. */
export const NOWHERE = -1;

export class Bag<T extends Placed> {
  readonly #items: (T | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** An object can be in one bag at a time. */
  add(item: T): void {
    if (item.place !== NOWHERE) return;
    item.place = this.#size;
    this.#items[this.#size++] = item;
  }

  delete(item: T): void {
    const { place } = item;
    if (place === NOWHERE || this.#items[place] !== item) return;
    item.place = NOWHERE;
    const last = this.#items[--this.#size] as T;
    this.#items[this.#size] = undefined;
    if (last === item) return;
    this.#items[place] = last;
    last.place = place;
  }

  /** A copy in no order, so that items may leave while it is gone through. */
  all(): T[] {
    return this.#items.slice(0, this.#size) as T[];
  }
}
