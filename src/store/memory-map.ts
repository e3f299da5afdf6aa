// A DurableMap that is not durable: for gateways that were given no state directory.

import type { DurableMap, KeyRange } from "../contracts/store.js";

export class MemoryMap<V> implements DurableMap<V> {
  readonly name: string;
  readonly #values = new Map<string, V>();

  constructor(name: string) {
    this.name = name;
  }

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  async put(key: string, value: V): Promise<void> {
    this.#values.set(key, value);
  }

  async delete(key: string): Promise<void> {
    this.#values.delete(key);
  }

  *entries(range: KeyRange = {}): IterableIterator<[key: string, value: V]> {
    const { prefix = "", from = "", to, limit = Number.POSITIVE_INFINITY } = range;
    let left = limit;
    for (const key of [...this.#values.keys()].sort((a, b) => (a < b ? -1 : 1))) {
      if (!key.startsWith(prefix) || key < from || (to !== undefined && key >= to)) continue;
      if (left-- <= 0) return;
      yield [key, this.#values.get(key) as V];
    }
  }
}
