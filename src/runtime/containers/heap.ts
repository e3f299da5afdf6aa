// A binary heap from which anything can be taken out: each item keeps its own place in it. The smallest comes first; what
// is equal comes in no order.

/** The item's place in the heap that has this name for it; -1 where it is in none. */
type Placed<K extends string> = { [key in K]: number };

export class Heap<K extends string, T extends Placed<K>> {
  readonly #items: T[] = [];
  readonly #place: K;
  readonly #isBefore: (a: T, b: T) => boolean;

  constructor(place: K, isBefore: (a: T, b: T) => boolean) {
    this.#place = place;
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  peek(): T | undefined {
    return this.#items[0];
  }

  push(item: T): void {
    this.#items.push(item);
    this.#rise(item, this.#items.length - 1);
  }

  /** What it is ordered by has changed. */
  moved(item: T): void {
    const at = item[this.#place];
    this.#rise(item, at);
    if (item[this.#place] === at) this.#sink(item, at);
  }

  remove(item: T): void {
    const at = item[this.#place];
    if (this.#items[at] !== item) return;
    const last = this.#items.pop() as T;
    this.#set(item, -1);
    if (last === item) return;
    this.#put(last, at);
    this.moved(last);
  }

  #rise(item: T, from: number): void {
    let at = from;
    while (at > 0) {
      const up = (at - 1) >> 1;
      const above = this.#items[up] as T;
      if (!this.#isBefore(item, above)) break;
      this.#put(above, at);
      at = up;
    }
    this.#put(item, at);
  }

  #sink(item: T, from: number): void {
    const items = this.#items;
    let at = from;
    for (;;) {
      let down = 2 * at + 1;
      if (down >= items.length) break;
      if (down + 1 < items.length && this.#isBefore(items[down + 1] as T, items[down] as T)) down++;
      const below = items[down] as T;
      if (!this.#isBefore(below, item)) break;
      this.#put(below, at);
      at = down;
    }
    this.#put(item, at);
  }

  #put(item: T, at: number): void {
    this.#items[at] = item;
    this.#set(item, at);
  }

  #set(item: T, at: number): void {
    (item as Placed<string>)[this.#place] = at;
  }
}
