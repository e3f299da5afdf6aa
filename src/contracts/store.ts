// What is kept over restarts, as everybody but the engines sees it: maps, logs and batches. Acknowledged means on disk, or
// what the engine of several gateways calls stored. Reads are synchronous on any of them: from LMDB, or from memory that is
// kept current.

export interface KeyRange {
  /** Only keys that begin with this. */
  readonly prefix?: string;
  /** The first key, itself included. */
  readonly from?: string;
  /** Where to stop; this key is not included. */
  readonly to?: string;
  readonly limit?: number;
}

/**
 * Keys are text, in the order of their UTF-8 bytes; values are JSON. A read sees what is committed: a value is there
 * once the promise of its `put` has resolved, and it is on disk then. Promises reject with a StoreError.
 */
export interface DurableMap<V> {
  readonly name: string;
  get(key: string): V | undefined;
  put(key: string, value: V): Promise<void>;
  delete(key: string): Promise<void>;
  /** In key order. Walks in pages: a walk that lasts sees what is committed meanwhile. */
  entries(range?: KeyRange): IterableIterator<[key: string, value: V]>;
}

/** A value, and which of the values of its key it is. A revision means nothing outside this process, and is never 0. */
export interface Versioned<V> {
  readonly value: V;
  readonly revision: number;
}

/**
 * A map that several write to, each on what it has read. The outcome of a write that was sent and never answered is looked
 * up; where that cannot be, the promise rejects with the code `unknown`: it may have happened, and is not made again.
 */
export interface SharedMap<V> extends DurableMap<V> {
  read(key: string): Versioned<V> | undefined;
  /** Resolves with its revision; or with undefined where the key has a value already, and nothing is written. */
  create(key: string, value: V): Promise<number | undefined>;
  /** Resolves with the new revision; or with undefined where the key is not at `revision` any more. */
  update(key: string, value: V, revision: number): Promise<number | undefined>;
  /** Tells each change from now on, by whomever, once it can be read; undefined: the key is gone. Returns what ends it. */
  watch(listener: (key: string, value: V | undefined) => void): () => void;
}

/** An entry in a batch. Its number is known when the batch has been committed; an embedded store gives it at once. */
export interface Appended {
  readonly sequence: number;
}

/**
 * Sequence numbers rise, from 1 or more, and are never used twice; there may be gaps. Entries are JSON, given and taken
 * as text: what is appended is often text already, and is passed on as it is.
 */
export interface OrderedLog {
  readonly name: string;
  /** Resolves with the entry's sequence number once it is on disk. */
  append(json: string): Promise<number>;
  get(sequence: number): string | undefined;
  /** In order, from a sequence number on, itself included. */
  entries(from?: number, limit?: number): IterableIterator<[sequence: number, json: string]>;
  remove(sequence: number): Promise<void>;
}

export interface StoreStats {
  readonly path: string;
  readonly version: number;
  readonly entries: number;
  /** Records that cannot be read, of a newer version for instance: they are left alone. Undefined where there can be none. */
  readonly held?: number;
  readonly usedBytes: number;
  readonly maxBytes: number;
  readonly fileBytes: number;
}

/** Collects writes to any of the store's maps and logs, for one commit. */
export interface Batch {
  put<V>(map: DurableMap<V>, key: string, value: V): void;
  delete<V>(map: DurableMap<V>, key: string): void;
  append(log: OrderedLog, json: string): Appended;
  remove(log: OrderedLog, sequence: number): void;
}

export interface BatchOptions {
  /** Nobody waits for it: an embedded store may leave it for a later commit, milliseconds on. It keeps its place in the order. */
  readonly mayWait?: boolean;
  /** Whose it is. Where much waits to be written, those have turns; batches that are nobody's come before them, and one may overtake another's. */
  readonly by?: string | undefined;
}

export type DumpEntry =
  | { readonly map: string; readonly key: string; readonly value: unknown }
  | { readonly log: string; readonly key: number; readonly value: unknown };

/** Why a store could not write what it was last given. */
export interface StoreTrouble {
  /** `disk-full`: its disk has no room; `full`: its own bound is reached. */
  readonly code: "disk-full" | "full" | "failed";
  /** What to do is said in it. */
  readonly problem: string;
  /** Since when, by the clock on the wall. */
  readonly sinceMs: number;
}

export interface Store extends AsyncDisposable {
  map<V>(name: string): DurableMap<V>;
  /** The map of that name, for whoever compares or watches: what is written to either is in both. */
  shared<V>(name: string): SharedMap<V>;
  log(name: string): OrderedLog;
  /** The maps that have something in them, in the order of their names. */
  mapNames(): readonly string[];
  /** Several writes, one commit: all of them or none. `fn` is run at once; if it throws, nothing is written. */
  batch<T>(fn: (batch: Batch) => T, options?: BatchOptions): Promise<T>;
  stats(): StoreStats;
  /** Called with the milliseconds that each commit took, where somebody wants to know. */
  onCommit?: ((ms: number) => void) | undefined;
  /** Undefined while all goes well. Absent of a store whose trouble is its connection's. */
  readonly trouble?: StoreTrouble | undefined;
  /** All entries, map by map and log by log, each in its order. */
  dump(): AsyncIterableIterator<DumpEntry>;
  /** Waits for what is being written. */
  close(): Promise<void>;
}
