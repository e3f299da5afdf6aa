// A map that outlives nothing: for gateways that were given no state directory.

import type { KeyRange, SharedMap, Versioned } from "../contracts/store.js";
import { tellListener } from "./tell.js";

export class MemoryMap<V> implements SharedMap<V> {
  readonly name: string;
  readonly #values = new Map<string, Versioned<V>>();
  readonly #listeners = new Set<(key: string, value: V | undefined) => void>();
  #last = 0;

  constructor(name: string) {
    this.name = name;
  }

  get(key: string): V | undefined {
    return this.#values.get(key)?.value;
  }

  read(key: string): Versioned<V> | undefined {
    return this.#values.get(key);
  }

  async put(key: string, value: V): Promise<void> {
    this.#set(key, value);
  }

  async delete(key: string): Promise<void> {
    if (this.#values.delete(key)) this.#tell(key, undefined);
  }

  async create(key: string, value: V): Promise<number | undefined> {
    return this.#values.has(key) ? undefined : this.#set(key, value);
  }

  async update(key: string, value: V, revision: number): Promise<number | undefined> {
    return this.#values.get(key)?.revision === revision ? this.#set(key, value) : undefined;
  }

  watch(listener: (key: string, value: V | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  *entries(range: KeyRange = {}): IterableIterator<[key: string, value: V]> {
    const { prefix = "", from = "", to, limit = Number.POSITIVE_INFINITY } = range;
    let left = limit;
    for (const key of [...this.#values.keys()].sort((a, b) => (a < b ? -1 : 1))) {
      if (!key.startsWith(prefix) || key < from || (to !== undefined && key >= to)) continue;
      if (left-- <= 0) return;
      const found = this.#values.get(key);
      if (found !== undefined) yield [key, found.value];
    }
  }

  #set(key: string, value: V): number {
    const revision = ++this.#last;
    this.#values.set(key, { value, revision });
    this.#tell(key, value);
    return revision;
  }

  #tell(key: string, value: V | undefined): void {
    for (const listener of this.#listeners) tellListener(this.name, () => listener(key, value));
  }
}
