// Durable maps and ordered logs as views on the store's one key space. Owns names, encoding, ranges and revisions; when and how
// things get to disk is the committer's.

import type { KeyRange, OrderedLog, SharedMap, Versioned } from "../../contracts/store.js";
import { MIB } from "../../runtime/sizes.js";
import { checkName, jsonOf, valueBytes } from "../checks.js";
import { corrupt, toStoreError } from "../store-error.js";
import { tellListener } from "../tell.js";
import type { TrackedChange, Write } from "./committer.js";
import type { Env } from "./env.js";
import { after, logKey, logSequence, mapKey, mapKeyText, prefixOf, reachedKey } from "./keys.js";

/** Read at a time by a walk; between two pages no transaction is held, so that old pages can be used again. */
const PAGE_ENTRIES = 256;
const PAGE_BYTES = 1 * MIB;

/** What maps and logs need of the store that they belong to. */
export interface EntryStore {
  readonly path: string;
  /** Throws a StoreError when the store is closed. */
  env(): Env;
  submit(writes: readonly Write[]): Promise<void>;
}

function encode(path: string, key: Buffer, value: unknown): Write {
  return encoded(path, key, jsonOf(value));
}

function encoded(path: string, key: Buffer, json: string): Write {
  return { key, json, bytes: key.length + valueBytes(json, `the store at ${path}`) };
}

export function decode(path: string, json: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw corrupt(path, "a value is not JSON", error);
  }
}

/** Entries of [start, end) in pages, no cursor held between them. */
export function* walk(
  store: EntryStore,
  start: Buffer,
  end: Buffer,
  limit: number,
): IterableIterator<[Uint8Array, string]> {
  let next = start;
  let left = limit;
  while (left > 0) {
    const page: Array<[Uint8Array, string]> = [];
    let bytes = 0;
    try {
      for (const { key, value } of store.env().getRange({ start: next, end, limit: Math.min(left, PAGE_ENTRIES) })) {
        page.push([key, value]);
        bytes += value.length;
        if (bytes >= PAGE_BYTES) break;
      }
    } catch (error) {
      throw toStoreError(error, store.path);
    }
    const last = page.at(-1);
    if (last === undefined) return;
    yield* page;
    left -= page.length;
    // The smallest key after the last one.
    next = Buffer.concat([last[0], Buffer.of(0)]);
  }
}

/** The revision of what was found when counting began, and was not written since. */
const FOUND = 1;

/**
 * Revisions of a map's keys, for whoever compares before it writes, and those who watch. Counted in memory: the embedded store has one
 * process, and a revision means nothing outside it.
 */
class Revisions<V> {
  #last = FOUND;
  /** Of the keys that were written since, and are there: bounded by the map itself. */
  readonly #written = new Map<string, number>();
  /** The last write to a key that is not on disk yet: bounded by what the committer lets wait. */
  readonly #pending = new Map<string, Promise<void>>();
  readonly #listeners = new Set<(key: string, value: V | undefined) => void>();

  /** Of a key that has a value. */
  of(key: string): number {
    return this.#written.get(key) ?? FOUND;
  }

  /** The last write to this key that is on its way. */
  pending(key: string): Promise<void> | undefined {
    return this.#pending.get(key);
  }

  watch(listener: (key: string, value: V | undefined) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** One write; undefined deletes. */
  change(key: string, value: V | undefined): TrackedChange {
    const revision = ++this.#last;
    let own: Promise<void> | undefined;
    const over = () => {
      if (this.#pending.get(key) === own) this.#pending.delete(key);
    };
    return {
      revision,
      sent: (commit) => {
        own = commit;
        this.#pending.set(key, commit);
      },
      committed: () => {
        over();
        if (value === undefined) this.#written.delete(key);
        else this.#written.set(key, revision);
        for (const listener of this.#listeners) tellListener("the store", () => listener(key, value));
      },
      failed: over,
    };
  }
}

export class StoredMap<V> implements SharedMap<V> {
  readonly name: string;
  readonly #store: EntryStore;
  readonly #prefix: Buffer;
  /** Undefined until somebody compares or watches: most maps have one reader and writer, and pay for neither. */
  #revisions: Revisions<V> | undefined;

  constructor(store: EntryStore, name: string) {
    this.name = checkName(name);
    this.#store = store;
    this.#prefix = prefixOf("map", name);
  }

  get(key: string): V | undefined {
    const env = this.#store.env();
    let json: string | undefined;
    try {
      json = env.get(mapKey(this.#prefix, key));
    } catch (error) {
      throw toStoreError(error, this.#store.path);
    }
    return json === undefined ? undefined : (decode(this.#store.path, json) as V);
  }

  async put(key: string, value: V): Promise<void> {
    await this.#store.submit([this.putWrite(key, value)]);
  }

  async delete(key: string): Promise<void> {
    await this.#store.submit([this.deleteWrite(key)]);
  }

  countRevisions(): Revisions<V> {
    this.#revisions ??= new Revisions<V>();
    return this.#revisions;
  }

  read(key: string): Versioned<V> | undefined {
    const value = this.get(key);
    return value === undefined ? undefined : { value, revision: this.countRevisions().of(key) };
  }

  create(key: string, value: V): Promise<number | undefined> {
    return this.#swap(key, value, undefined);
  }

  update(key: string, value: V, revision: number): Promise<number | undefined> {
    return this.#swap(key, value, revision);
  }

  watch(listener: (key: string, value: V | undefined) => void): () => void {
    return this.countRevisions().watch(listener);
  }

  async #swap(key: string, value: V, expected: number | undefined): Promise<number | undefined> {
    const revisions = this.countRevisions();
    for (let last = revisions.pending(key); last !== undefined; last = revisions.pending(key))
      await last.catch(() => {});
    // From here to the submission nothing else runs: whoever compares next waits for this one.
    const current = this.read(key);
    if (current?.revision !== expected) return undefined;
    const write = this.putWrite(key, value);
    await this.#store.submit([write]);
    return write.change?.revision;
  }

  *entries(range: KeyRange = {}): IterableIterator<[string, V]> {
    const { prefix = "", from, to, limit = Number.POSITIVE_INFINITY } = range;
    const base = mapKey(this.#prefix, prefix);
    let start = base;
    let end = after(base);
    if (from !== undefined) start = later(start, mapKey(this.#prefix, from));
    if (to !== undefined) end = earlier(end, mapKey(this.#prefix, to));
    for (const [key, json] of walk(this.#store, start, end, limit)) {
      yield [mapKeyText(key, this.#prefix.length), decode(this.#store.path, json) as V];
    }
  }

  putWrite(key: string, value: V): Write {
    const write = encode(this.#store.path, mapKey(this.#prefix, key), value);
    return this.#revisions === undefined ? write : { ...write, change: this.#revisions.change(key, value) };
  }

  deleteWrite(key: string): Write {
    const bytes = mapKey(this.#prefix, key);
    return { key: bytes, json: undefined, bytes: bytes.length, change: this.#revisions?.change(key, undefined) };
  }
}

function later(a: Buffer, b: Buffer): Buffer {
  return Buffer.compare(a, b) > 0 ? a : b;
}

function earlier(a: Buffer, b: Buffer): Buffer {
  return Buffer.compare(a, b) < 0 ? a : b;
}

export class StoredLog implements OrderedLog {
  readonly name: string;
  readonly #store: EntryStore;
  readonly #prefix: Buffer;
  #next: number;

  constructor(store: EntryStore, name: string) {
    this.name = checkName(name);
    this.#store = store;
    this.#prefix = prefixOf("log", name);
    try {
      const mark = store.env().get(reachedKey(name));
      let last = mark === undefined ? 0 : Number(decode(store.path, mark));
      // Backwards: `start` is the far end then.
      const range = { start: after(this.#prefix), end: this.#prefix, reverse: true, limit: 1 };
      for (const key of store.env().getKeys(range)) last = Math.max(last, logSequence(key));
      this.#next = last + 1;
    } catch (error) {
      throw toStoreError(error, store.path);
    }
  }

  async append(json: string): Promise<number> {
    const { sequence, write } = this.appendWrite(json);
    await this.#store.submit([write]);
    return sequence;
  }

  appendWrite(json: string): { sequence: number; write: Write } {
    const write = encoded(this.#store.path, logKey(this.#prefix, this.#next), json);
    return { sequence: this.#next++, write };
  }

  get(sequence: number): string | undefined {
    const env = this.#store.env();
    try {
      return env.get(logKey(this.#prefix, sequence));
    } catch (error) {
      throw toStoreError(error, this.#store.path);
    }
  }

  *entries(from = 1, limit = Number.POSITIVE_INFINITY): IterableIterator<[number, string]> {
    for (const [key, json] of walk(this.#store, logKey(this.#prefix, from), after(this.#prefix), limit)) {
      yield [logSequence(key), json];
    }
  }

  async remove(sequence: number): Promise<void> {
    await this.#store.submit(this.removeWrites(sequence));
  }

  removeWrites(sequence: number): Write[] {
    const key = logKey(this.#prefix, sequence);
    const removal: Write = { key, json: undefined, bytes: key.length };
    if (sequence < this.#next - 1) return [removal];
    // With the last entry the log would forget how far it has got, and after a restart use its number again.
    const mark = reachedKey(this.name);
    const json = String(this.#next - 1);
    return [removal, { key: mark, json, bytes: mark.length + json.length }];
  }
}
