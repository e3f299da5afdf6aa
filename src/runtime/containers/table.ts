// A map and a set for what comes and goes with every call. Not a Map and a Set of the language: when V8's rehashes, the
// table before stays linked to the next one, with all that stood in it. Once one such table has grown old, each later
// one is carried into the old generation after it, and every call that was ever in them: measured, a tenth of the
// gateway's time and 60 MB of heap.

interface Entry<K, V> {
  readonly key: K;
  value: V;
  next: Entry<K, V> | undefined;
}

/** A power of two, about as many as are in flight at once in a busy session. */
const FIRST_BUCKETS = 16;

/** Characters of a string that are hashed, from its end, where counters and random ids differ. */
const HASHED_CHARS = 16;

export class Table<K extends string | number, V> {
  #buckets: (Entry<K, V> | undefined)[] = emptyBuckets(FIRST_BUCKETS);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get(key: K): V | undefined {
    let entry = this.#buckets[this.#bucketOf(key)];
    while (entry !== undefined && entry.key !== key) entry = entry.next;
    return entry?.value;
  }

  set(key: K, value: V): void {
    const at = this.#bucketOf(key);
    const first = this.#buckets[at];
    for (let entry = first; entry !== undefined; entry = entry.next) {
      if (entry.key !== key) continue;
      entry.value = value;
      return;
    }
    this.#buckets[at] = { key, value, next: first };
    if (++this.#size > this.#buckets.length) this.#grow();
  }

  delete(key: K): boolean {
    const at = this.#bucketOf(key);
    let before: Entry<K, V> | undefined;
    let entry = this.#buckets[at];
    while (entry !== undefined && entry.key !== key) {
      before = entry;
      entry = entry.next;
    }
    if (entry === undefined) return false;
    if (before === undefined) this.#buckets[at] = entry.next;
    else before.next = entry.next;
    // An entry that has grown old must not keep its neighbour.
    entry.next = undefined;
    this.#size--;
    return true;
  }

  clear(): void {
    this.#buckets = emptyBuckets(FIRST_BUCKETS);
    this.#size = 0;
  }

  /** Goes through the values in no order. What is added or deleted meanwhile may be missed: take a copy first. */
  *values(): Generator<V, void, undefined> {
    for (const first of this.#buckets) {
      for (let entry = first; entry !== undefined; entry = entry.next) yield entry.value;
    }
  }

  #bucketOf(key: K): number {
    const hash = typeof key === "number" ? key : hashOf(key);
    return hash & (this.#buckets.length - 1);
  }

  #grow(): void {
    const before = this.#buckets;
    this.#buckets = emptyBuckets(before.length * 2);
    for (const first of before) {
      let entry = first;
      while (entry !== undefined) {
        const { next } = entry;
        const at = this.#bucketOf(entry.key);
        entry.next = this.#buckets[at];
        this.#buckets[at] = entry;
        entry = next;
      }
    }
    before.fill(undefined);
  }
}

function emptyBuckets<E>(count: number): (E | undefined)[] {
  return new Array<E | undefined>(count).fill(undefined);
}

function hashOf(text: string): number {
  let hash = text.length;
  for (let i = Math.max(0, text.length - HASHED_CHARS); i < text.length; i++) {
    hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  }
  return hash;
}

/** Where it stands in its set. Only the set writes it. */
export interface Placed {
  place: number;
}

/** The `place` of what is in no set. */
export const NOWHERE = -1;

/** A set of objects, each of which knows its place. */
export class IndexedSet<T extends Placed> {
  readonly #items: (T | undefined)[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** An object can be in one set at a time. */
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
