// The embedded store: opens and closes LMDB, gives out maps and logs, and dumps what is in it. Acknowledged means on
// disk: one fdatasync a commit, before any promise resolves. Values are stored as JSON text: what a dump prints is
// what lies there, and nothing beside the store itself is needed to read it.

import { chmodSync, existsSync, mkdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type {
  Appended,
  Batch,
  BatchOptions,
  DumpEntry,
  DurableMap,
  OrderedLog,
  SharedMap,
  Store,
  StoreStats,
  StoreTrouble,
} from "../../contracts/store.js";
import { MIB } from "../../runtime/sizes.js";
import { ownOf } from "../checks.js";
import { corrupt, StoreError, toStoreError } from "../store-error.js";
import { Committer, envStats, fileEnd, usedBytes, type Write } from "./committer.js";
import { decode, type EntryStore, StoredLog, StoredMap, walk } from "./entries.js";
import { checkHeader, ENV_OPTIONS, type Env, prepareLockFile } from "./env.js";
import { after, parseKey, prefixOf } from "./keys.js";
import { MIGRATIONS, type Migration, migrate } from "./migrations.js";
import { Space } from "./space.js";

/** Far above what the state of a gateway comes to, and small enough to be noticed before it fills a disk. */
const DEFAULT_MAX_BYTES = 1024 * MIB;
/** Entries of a dump between two turns of the event loop, so that a dump does not hold up the gateway. */
const DUMP_TURN = 256;

export interface StoreOptions {
  /** A directory of the store's own; made with mode 0700 if it is missing. */
  readonly dir: string;
  /** Bound on live data; the files may be somewhat larger. */
  readonly maxBytes?: number;
  readonly readOnly?: boolean;
  /** For tests; the list of the code otherwise. */
  readonly migrations?: readonly Migration[];
}

const OPEN_KEY = Symbol.for("toolway.store.open");
/**
 * LMDB misbehaves when one process opens a file twice: closing one drops the locks of both. Kept on globalThis,
 * because two copies of this module can be loaded into one process.
 */
const shared = globalThis as { [OPEN_KEY]?: Set<string> };
shared[OPEN_KEY] ??= new Set();
const openPaths = shared[OPEN_KEY];

export async function openStore(options: StoreOptions): Promise<Store> {
  const { dir, readOnly = false, maxBytes = DEFAULT_MAX_BYTES, migrations = MIGRATIONS } = options;
  const data = join(dir, "data.mdb");
  if (readOnly && !existsSync(data)) throw new StoreError("missing", `There is no store at ${dir}.`);
  let path: string;
  try {
    if (!readOnly) mkdirSync(dir, { recursive: true, mode: 0o700 });
    path = realpathSync(dir);
  } catch (error) {
    throw toStoreError(error, dir);
  }
  if (openPaths.has(path)) {
    throw new StoreError("already-open", `The store at ${path} is already open in this process; share that one.`);
  }
  openPaths.add(path);
  let env: Env | undefined;
  let space: Space | undefined;
  try {
    // Loaded only here: the engine is a native module, and many commands never open a store.
    const { open } = await import("lmdb");
    checkHeader(path);
    if (!readOnly) prepareLockFile(path);
    env = open<string, Uint8Array>({
      path,
      ...ENV_OPTIONS,
      readOnly,
    });
    const end = fileEnd(envStats(env));
    // We write zeros ahead of LMDB, so the file is never short by itself. Reading past its end would be a SIGBUS.
    if (statSync(data).size < end) throw corrupt(path, `its file is shorter than the ${end} bytes it should have`);
    if (!readOnly) {
      chmodSync(data, 0o600);
      space = new Space(data);
    }
    const version = migrate(env, space, path, migrations, readOnly);
    return new LmdbStore(env, space, path, version, maxBytes);
  } catch (error) {
    space?.close();
    await env?.close();
    openPaths.delete(path);
    throw toStoreError(error, path);
  }
}

/** The commit, after which those who compare or watch know of it. */
function told(commit: Promise<void>, writes: readonly Write[]): Promise<void> {
  const done = commit.then(
    () => {
      for (const { change } of writes) change?.committed();
    },
    (error: unknown) => {
      for (const { change } of writes) change?.failed();
      throw error;
    },
  );
  for (const { change } of writes) change?.sent(done);
  return done;
}

/** What a batch writes. */
class Collected implements Batch {
  readonly writes: Write[] = [];
  readonly #maps: ReadonlyMap<string, StoredMap<unknown>>;
  readonly #logs: ReadonlyMap<string, StoredLog>;

  constructor(maps: ReadonlyMap<string, StoredMap<unknown>>, logs: ReadonlyMap<string, StoredLog>) {
    this.#maps = maps;
    this.#logs = logs;
  }

  put<V>(map: DurableMap<V>, key: string, value: V): void {
    this.writes.push(ownOf(this.#maps, map).putWrite(key, value));
  }

  delete<V>(map: DurableMap<V>, key: string): void {
    this.writes.push(ownOf(this.#maps, map).deleteWrite(key));
  }

  append(log: OrderedLog, json: string): Appended {
    const { sequence, write } = ownOf(this.#logs, log).appendWrite(json);
    this.writes.push(write);
    return { sequence };
  }

  remove(log: OrderedLog, sequence: number): void {
    this.writes.push(...ownOf(this.#logs, log).removeWrites(sequence));
  }
}

class LmdbStore implements Store, EntryStore {
  readonly path: string;
  readonly #version: number;
  readonly #maxBytes: number;
  readonly #space: Space | undefined;
  readonly #committer: Committer | undefined;
  readonly #env: Env;
  readonly #maps = new Map<string, StoredMap<unknown>>();
  readonly #logs = new Map<string, StoredLog>();
  #closing: Promise<void> | undefined;
  #closed = false;

  constructor(env: Env, space: Space | undefined, path: string, version: number, maxBytes: number) {
    this.#env = env;
    this.#space = space;
    this.path = path;
    this.#version = version;
    this.#maxBytes = maxBytes;
    this.#committer = space === undefined ? undefined : new Committer(env, space, path, maxBytes);
  }

  set onCommit(heard: ((ms: number) => void) | undefined) {
    if (this.#committer !== undefined) this.#committer.onCommit = heard;
  }

  get trouble(): StoreTrouble | undefined {
    return this.#committer?.trouble;
  }

  map<V>(name: string): DurableMap<V> {
    let map = this.#maps.get(name);
    if (map === undefined) {
      map = new StoredMap<unknown>(this, name);
      this.#maps.set(name, map);
    }
    return map as DurableMap<unknown> as DurableMap<V>;
  }

  shared<V>(name: string): SharedMap<V> {
    const map = this.map<V>(name) as StoredMap<V>;
    map.countRevisions();
    return map;
  }

  log(name: string): OrderedLog {
    let log = this.#logs.get(name);
    // One object a name: it holds the next sequence number.
    if (log === undefined) {
      log = new StoredLog(this, name);
      this.#logs.set(name, log);
    }
    return log;
  }

  mapNames(): readonly string[] {
    const names: string[] = [];
    const end = after(Buffer.from("m"));
    try {
      // From the first key of each map to the first behind it: none of the others is looked at.
      for (let start: Uint8Array = Buffer.from("m"); ; ) {
        const [key] = this.env().getKeys({ start, end, limit: 1 });
        const name = key === undefined ? undefined : parseKey(key)?.name;
        if (name === undefined) return names;
        names.push(name);
        start = after(prefixOf("map", name));
      }
    } catch (error) {
      throw toStoreError(error, this.path);
    }
  }

  async batch<T>(fn: (batch: Batch) => T, { mayWait = false }: BatchOptions = {}): Promise<T> {
    const batch = new Collected(this.#maps, this.#logs);
    const result = fn(batch);
    await this.submit(batch.writes, mayWait);
    return result;
  }

  stats(): StoreStats {
    const stats = envStats(this.env());
    return {
      path: this.path,
      version: this.#version,
      // Without the schema version.
      entries: Math.max(0, stats.entryCount - 1),
      usedBytes: usedBytes(stats),
      maxBytes: this.#maxBytes,
      fileBytes: statSync(join(this.path, "data.mdb")).size,
    };
  }

  async *dump(): AsyncIterableIterator<DumpEntry> {
    let count = 0;
    for (const [bytes, json] of walk(this, Buffer.of(0), Buffer.of(0xff), Number.POSITIVE_INFINITY)) {
      if (++count % DUMP_TURN === 0) await nextTurn();
      const found = parseKey(bytes);
      if (found === undefined) continue;
      const value = decode(this.path, json);
      if (typeof found.key === "string") yield { map: found.name, key: found.key, value };
      else yield { log: found.name, key: found.key, value };
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  env(): Env {
    if (this.#closed) throw this.#closedError();
    return this.#env;
  }

  submit(writes: readonly Write[], mayWait = false): Promise<void> {
    if (this.#closing !== undefined) return Promise.reject(this.#closedError());
    if (this.#committer === undefined) {
      return Promise.reject(new StoreError("read-only", `The store at ${this.path} is open for reading only.`));
    }
    const commit = this.#committer.submit(writes, mayWait);
    return writes.some(({ change }) => change !== undefined) ? told(commit, writes) : commit;
  }

  async #close(): Promise<void> {
    await this.#committer?.drained();
    this.#closed = true;
    try {
      await this.#env.close();
    } finally {
      this.#space?.close();
      openPaths.delete(this.path);
    }
  }

  #closedError(): StoreError {
    return new StoreError("closed", `The store at ${this.path} is closed.`);
  }
}
