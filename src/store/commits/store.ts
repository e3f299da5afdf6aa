// A store that several gateways share, or of which one is the owner: everything is read from memory, which is folded from
// the commits of a stream and kept current by following it, and written as commits.
//
// In a shared one each key is a subject of its own: gateways that write to different keys do not meet, the engine keeps the
// last commit of each, and a batch has one key. In a partition all of the owner's commits are on one subject: so a batch is
// one message and whole on every version of the engine, and the first commit of a new owner refuses all of a former one.

import { createHash, randomBytes } from "node:crypto";
import type {
  Batch,
  BatchOptions,
  DumpEntry,
  DurableMap,
  KeyRange,
  OrderedLog,
  SharedMap,
  Store,
  StoreStats,
  Versioned,
} from "../../contracts/store.js";
import type { TextVault } from "../../runtime/seal.js";
import { checkName, jsonOf, keyBytes, MAX_VALUE_BYTES, ownOf, valueBytes } from "../checks.js";
import { corrupt, StoreError } from "../store-error.js";
import { tellListener } from "../tell.js";
import { type CommitWrite, decodeCommit, type UnreadableCommit } from "./commit.js";
import { CommitRoom } from "./room.js";
import { CommitState, compareUtf8, type KeySpace, MAX_WRITES, numberOf } from "./state.js";
import type { CommitStream, TryPace } from "./stream.js";
import { CommitWriter, type Condition } from "./writer.js";

/** A key that is longer is named by its hash: engines bound their subjects, and this leaves room for a prefix. */
const MAX_SUBJECT_KEY_BYTES = 96;
/** What the head of a commit may take, beside the values. */
export const HEAD_BYTES = 8 * 1024;
/** Longer than anybody follows late without beginning from the start. */
export const DELETION_KEPT_MS = 10 * 60_000;
const SWEEP_EVERY_MS = 60_000;
/** Of deletions that are swept, and of removals that are on their way, at once. */
const SWEPT_AT_ONCE = 256;
const REMOVALS_AT_ONCE = 8;
/** Removals that wait; what is dropped is found when the partition is opened again. */
const MAX_REMOVALS = 100_000;
/** For all that was stored to be told, at the opening: an election, and a large state. */
const OPEN_LIMIT_MS = 60_000;
/**
 * Who opens a partition while its former owner removes reads an old value, and must find that it was deleted: such messages
 * stay until whoever may have read the value has read on, or given up.
 */
const READ_WITHIN_MS = 2 * OPEN_LIMIT_MS;

/** Records that cannot be read and are counted; beyond it a whole Toolway of another version or key is there. */
const MAX_HELD = 10_000;
const HELD_WORDS: Readonly<Record<UnreadableCommit, string>> = {
  newer: "written by a newer version of Toolway",
  sealed: "sealed under a key that this gateway was not given",
  foreign: "no record of Toolway",
};

export interface CommitStoreOptions {
  readonly stream: CommitStream;
  readonly pace: TryPace;
  readonly layout: "shared" | "partition";
  /** All its subjects begin with it; it ends with a dot. */
  readonly prefix: string;
  /** For errors: "the engine (tw)". */
  readonly where: string;
  /** Seals all values that leave this process. Undefined where they are in clear: the sealing key itself, and tests. */
  readonly vault?: TextVault | undefined;
  /** What it shares with others that write to the same engine from this process; by itself without. */
  readonly room?: CommitRoom | undefined;
  /** Nothing is written, and nobody shut out: a partition stays its owner's. */
  readonly readOnly?: boolean | undefined;
  /** Called with each message that the stream tells and that can be read. */
  readonly told?: (() => void) | undefined;
  /** Told once, when the store is another's from now on, or something in it cannot be read. */
  readonly warn?: ((text: string) => void) | undefined;
}

/** Resolves when all that is stored has been read. A partition is then this writer's alone. */
export async function openCommitStore(options: CommitStoreOptions): Promise<Store> {
  const store = new CommitStore(options);
  try {
    await store.open();
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}

class CommitStore implements Store {
  readonly #options: CommitStoreOptions;
  readonly #state = new CommitState();
  readonly #writer: CommitWriter;
  readonly #maps = new Map<string, CommitMap<unknown>>();
  readonly #logs = new Map<string, CommitLog>();
  readonly #removals = new Set<number>();
  /** What is to be removed from a time on, the first first. */
  readonly #laterRemovals: { readonly sequence: number; readonly dueMs: number }[] = [];
  #removing = 0;
  #unfollow: (() => Promise<void>) | undefined;
  #isCurrent = false;
  /** Subjects whose last message cannot be read, and why: their keys have no value here, and are not written to. */
  readonly #heldSubjects = new Map<string, UnreadableCommit>();
  #closing: Promise<void> | undefined;
  #sweepAtMs: number;
  /**
   * What to add to our own time to come to the engine's, or somewhat less: from the message that was told the soonest. A
   * gateway's own date may be wrong, and would have it sweep what others have not been told yet.
   */
  #engineAheadMs = Number.NEGATIVE_INFINITY;

  constructor(options: CommitStoreOptions) {
    this.#options = options;
    const { stream, pace, where } = options;
    this.#sweepAtMs = pace.now() + SWEEP_EVERY_MS;
    this.#writer = new CommitWriter({
      stream,
      state: this.#state,
      pace,
      where,
      vault: options.vault,
      room: options.room ?? new CommitRoom(),
      writer: randomBytes(9).toString("base64url"),
      committed: () => this.#clean(),
      warn: options.warn,
    });
  }

  async open(): Promise<void> {
    const { stream, prefix, layout, where, pace, vault } = this.#options;
    let toldTo = 0;
    let takeover: number | undefined;
    let takenOver = () => {};
    const current = new Promise<void>((resolve) => {
      this.#unfollow = stream.follow(prefix, {
        message: (message) => {
          const { subject, sequence, atMs } = message;
          // What is told again says nothing of now; nor does a stream that begins anew, and has lost what it had acknowledged.
          const isNew = sequence > this.#state.followedTo;
          // What was written here comes back too, also before its answer: it is not opened and read once more.
          if (!this.#state.followKnown(sequence, atMs)) {
            const commit = this.#writer.unanswered(message.id) ?? decodeCommit(message.body, vault);
            if (typeof commit === "string") return this.#hold(subject, sequence, commit);
            this.#state.follow(commit, subject, sequence, atMs);
          }
          if (isNew) this.#options.told?.();
          this.#heldSubjects.delete(subject);
          this.#engineAheadMs = Math.max(this.#engineAheadMs, atMs - pace.now());
          toldTo = sequence;
          if (sequence === takeover) takenOver();
          if (this.#isCurrent) this.#clean();
        },
        restarted: (sequence) => this.#state.restarted(sequence),
        current: () => {
          this.#state.current();
          this.#isCurrent = true;
          this.#clean();
          resolve();
        },
      });
    });
    const late = pace.sleep(OPEN_LIMIT_MS).then(() => "late" as const);
    const untilTold = async (told: Promise<void>) => {
      if ((await Promise.race([told, late])) !== "late") return;
      throw new StoreError("away", `${where} did not tell what it keeps within ${OPEN_LIMIT_MS / 1000} s.`);
    };
    await untilTold(current);
    if (layout === "shared") return;
    if (this.#heldSubjects.size > 0) {
      throw new StoreError("newer", `${where} was written by a newer version of Toolway; update this one.`);
    }
    if (this.#options.readOnly === true) return;
    // A former owner is refused from here on; what it wrote until then is told before our own commit is.
    takeover = (await this.submit([], undefined))?.sequence ?? 0;
    this.#writer.own();
    const ours = new Promise<void>((resolve) => {
      takenOver = resolve;
    });
    if (toldTo < takeover) await untilTold(ours);
  }

  map<V>(name: string): DurableMap<V> {
    return this.shared<V>(name);
  }

  shared<V>(name: string): SharedMap<V> {
    let map = this.#maps.get(name);
    if (map === undefined) {
      map = new CommitMap<unknown>(this, checkName(name), this.#state.map(name), this.#options.where);
      this.#maps.set(name, map);
    }
    return map as unknown as SharedMap<V>;
  }

  log(name: string): OrderedLog {
    let log = this.#logs.get(name);
    if (log === undefined) {
      if (this.#options.layout === "shared") {
        throw new StoreError(
          "invalid",
          `The log "${name}" cannot be kept in ${this.#options.where}: logs are a partition's.`,
        );
      }
      log = new CommitLog(this, checkName(name), this.#state.log(name), this.#options.where);
      this.#logs.set(name, log);
    }
    return log;
  }

  mapNames(): readonly string[] {
    const names: string[] = [];
    for (const [kind, name, { count }] of this.#state.spaces()) if (kind === "map" && count > 0) names.push(name);
    return names.sort(compareUtf8);
  }

  async batch<T>(fn: (batch: Batch) => T, { by }: BatchOptions = {}): Promise<T> {
    const writes: CommitWrite[] = [];
    const appended: { sequence: number }[] = [];
    const result = fn({
      put: (map, key, value) => {
        writes.push(ownOf(this.#maps, map).putWrite(key, value));
      },
      delete: (map, key) => {
        writes.push(ownOf(this.#maps, map).deleteWrite(key));
      },
      append: (log, json) => {
        writes.push(ownOf(this.#logs, log).appendWrite(json));
        const entry = { sequence: 0 };
        appended.push(entry);
        return entry;
      },
      remove: (log, sequence) => {
        writes.push(ownOf(this.#logs, log).removeWrite(sequence));
      },
    });
    if (writes.length === 0) return result;
    const stored = await this.submit(writes, undefined, by);
    for (const [index, entry] of appended.entries()) {
      entry.sequence = numberOf(stored?.sequence ?? 0, (stored?.firstAppend ?? 0) + index);
    }
    return result;
  }

  /** Undefined where the condition does not hold. */
  submit(
    writes: readonly CommitWrite[],
    condition: Condition | undefined,
    by?: string,
  ): Promise<{ readonly sequence: number; readonly firstAppend: number } | undefined> {
    const { where, stream } = this.#options;
    if (this.#closing !== undefined) return Promise.reject(new StoreError("closed", `${where} is closed.`));
    if (this.#options.readOnly === true) {
      return Promise.reject(new StoreError("read-only", `${where} is open for reading only.`));
    }
    return new Promise((resolve, reject) => {
      let bytes = 0;
      const subjects = new Set<string>();
      for (const write of writes) {
        bytes += (write.json === undefined ? 0 : Buffer.byteLength(write.json)) + 2 * write.name.length + 64;
        if (typeof write.key === "string") bytes += 2 * write.key.length;
        subjects.add(this.#subjectOf(write));
      }
      // Sealed they are written in base64.
      const room = (stream.maxBodyBytes - HEAD_BYTES) * (this.#options.vault === undefined ? 1 : 3 / 4);
      if (bytes > room) {
        const text = `${where} takes ${Math.floor(room)} bytes at once; these writes have ${bytes}.${stream.moreRoom === undefined ? "" : ` ${stream.moreRoom}`}`;
        throw new StoreError("invalid", text);
      }
      // Those beyond would have the numbers of the next commit's entries.
      if (writes.length > MAX_WRITES) {
        const text = `${where} takes ${MAX_WRITES} writes at once; these are ${writes.length}. Make them in several batches.`;
        throw new StoreError("invalid", text);
      }
      if (subjects.size > 1) {
        throw new StoreError("invalid", `A batch in ${where} has one key: only a partition writes several at once.`);
      }
      const [subject = `${this.#options.prefix}own`] = subjects;
      this.#writer.submit(subject, {
        writes,
        condition,
        by,
        stored: (sequence, firstAppend) => resolve({ sequence, firstAppend }),
        refused: () => resolve(undefined),
        failed: reject,
      });
    });
  }

  stats(): StoreStats {
    let entries = 0;
    let usedBytes = 0;
    for (const [, , space] of this.#state.spaces()) {
      entries += space.count;
      for (const { json } of space.cells.values()) usedBytes += json?.length ?? 0;
    }
    const { where } = this.#options;
    const held = this.#heldSubjects.size;
    const maxBytes = Number.POSITIVE_INFINITY;
    return { path: where, version: 1, entries, held, usedBytes, maxBytes, fileBytes: usedBytes };
  }

  async *dump(): AsyncIterableIterator<DumpEntry> {
    for (const [kind, name, space] of this.#state.spaces()) {
      for (const key of space.keys()) {
        const json = space.json(key);
        if (json === undefined) continue;
        const value = parsed(json, this.#options.where);
        yield kind === "map" ? { map: name, key: String(key), value } : { log: name, key: Number(key), value };
      }
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    await this.#writer.drained();
    await this.#unfollow?.();
  }

  #subjectOf({ kind, name, key }: CommitWrite): string {
    const { layout, prefix } = this.#options;
    if (layout === "partition") return `${prefix}own`;
    return `${prefix}${kind}.${Buffer.from(name).toString("base64url")}.${subjectKey(String(key))}`;
  }

  #hold(subject: string, sequence: number, why: UnreadableCommit): void {
    // What it stands in place of is not what is kept there any more.
    this.#state.superseded(subject, sequence);
    const isFirst = this.#heldSubjects.size === 0;
    if (this.#heldSubjects.size < MAX_HELD) this.#heldSubjects.set(subject, why);
    if (isFirst) this.#options.warn?.(`${subject} is ${HELD_WORDS[why]}: it is left alone.`);
  }

  /** What nothing needs any more goes: by our hand in a partition, by the engine's in a shared store. */
  #clean(): void {
    if (!this.#isCurrent || this.#options.readOnly === true) return;
    const isPartition = this.#options.layout === "partition";
    const now = this.#options.pace.now();
    for (let garbage = this.#state.takeGarbage(); garbage.length > 0; garbage = this.#state.takeGarbage()) {
      for (const { sequence, hadDeletion } of garbage) {
        if (!isPartition) this.#state.removed(sequence);
        else if (this.#removals.size + this.#laterRemovals.length >= MAX_REMOVALS) continue;
        else if (hadDeletion) this.#laterRemovals.push({ sequence, dueMs: now + READ_WITHIN_MS });
        else this.#removals.add(sequence);
      }
    }
    while ((this.#laterRemovals[0]?.dueMs ?? Number.POSITIVE_INFINITY) <= now) {
      this.#removals.add((this.#laterRemovals.shift() as { sequence: number }).sequence);
    }
    for (let more = this.#removals.size; more > 0 && this.#removing < REMOVALS_AT_ONCE; more--) void this.#removeSome();
    if (!isPartition && now >= this.#sweepAtMs) void this.#sweep();
  }

  async #removeSome(): Promise<void> {
    this.#removing++;
    for (const sequence of this.#removals) {
      this.#removals.delete(sequence);
      if (await this.#options.stream.remove(sequence)) {
        this.#state.removed(sequence);
        continue;
      }
      // Nobody answers now: it is tried again with the next commit, and the others wait with it.
      this.#removals.add(sequence);
      break;
    }
    this.#removing--;
  }

  async #sweep(): Promise<void> {
    const { stream, pace } = this.#options;
    this.#sweepAtMs = pace.now() + SWEEP_EVERY_MS * (1 + pace.random());
    const before = pace.now() + this.#engineAheadMs - DELETION_KEPT_MS;
    for (const { subject, sequence } of this.#state.deletionsBefore(before, SWEPT_AT_ONCE)) {
      if (await stream.clear(subject, sequence)) this.#state.removed(sequence);
    }
  }
}

class CommitMap<V> implements SharedMap<V> {
  readonly name: string;
  readonly #store: CommitStore;
  readonly #space: KeySpace;
  readonly #where: string;

  constructor(store: CommitStore, name: string, space: KeySpace, where: string) {
    this.#store = store;
    this.name = name;
    this.#space = space;
    this.#where = where;
  }

  get(key: string): V | undefined {
    const json = this.#space.json(key);
    return json === undefined ? undefined : (parsed(json, this.#where) as V);
  }

  read(key: string): Versioned<V> | undefined {
    const value = this.get(key);
    return value === undefined ? undefined : { value, revision: this.#space.revision(key) ?? 0 };
  }

  async put(key: string, value: V): Promise<void> {
    await this.#store.submit([this.putWrite(key, value)], undefined);
  }

  async delete(key: string): Promise<void> {
    await this.#store.submit([this.deleteWrite(key)], undefined);
  }

  async create(key: string, value: V): Promise<number | undefined> {
    return this.#swap(key, value, undefined);
  }

  async update(key: string, value: V, revision: number): Promise<number | undefined> {
    return this.#swap(key, value, revision);
  }

  watch(listener: (key: string, value: V | undefined) => void): () => void {
    const heard = (key: string | number, json: string | undefined) =>
      tellListener(this.name, () =>
        listener(String(key), json === undefined ? undefined : (parsed(json, this.#where) as V)),
      );
    this.#space.listeners.add(heard);
    return () => this.#space.listeners.delete(heard);
  }

  *entries(range: KeyRange = {}): IterableIterator<[string, V]> {
    const { prefix = "", from, to, limit = Number.POSITIVE_INFINITY } = range;
    let left = limit;
    for (const key of this.#space.keys() as readonly string[]) {
      if (left <= 0) return;
      if (!key.startsWith(prefix) || (from !== undefined && compareUtf8(key, from) < 0)) continue;
      if (to !== undefined && compareUtf8(key, to) >= 0) return;
      const value = this.get(key);
      // It was deleted since the walk began.
      if (value === undefined) continue;
      left--;
      yield [key, value];
    }
  }

  putWrite(key: string, value: V): CommitWrite {
    keyBytes(key);
    const json = jsonOf(value);
    valueBytes(json, this.#where, MAX_VALUE_BYTES);
    return { kind: "m", name: this.name, key, json };
  }

  deleteWrite(key: string): CommitWrite {
    keyBytes(key);
    return { kind: "m", name: this.name, key, json: undefined };
  }

  async #swap(key: string, value: V, revision: number | undefined): Promise<number | undefined> {
    const stored = await this.#store.submit([this.putWrite(key, value)], { map: this.name, key, revision });
    return stored?.sequence;
  }
}

class CommitLog implements OrderedLog {
  readonly name: string;
  readonly #store: CommitStore;
  readonly #space: KeySpace;
  readonly #where: string;

  constructor(store: CommitStore, name: string, space: KeySpace, where: string) {
    this.#store = store;
    this.name = name;
    this.#space = space;
    this.#where = where;
  }

  async append(json: string): Promise<number> {
    const stored = await this.#store.submit([this.appendWrite(json)], undefined);
    return numberOf(stored?.sequence ?? 0, stored?.firstAppend ?? 0);
  }

  get(sequence: number): string | undefined {
    return this.#space.json(sequence);
  }

  *entries(from = 1, limit = Number.POSITIVE_INFINITY): IterableIterator<[number, string]> {
    let left = limit;
    for (const key of this.#space.keys() as readonly number[]) {
      if (left <= 0) return;
      const json = key < from ? undefined : this.#space.json(key);
      if (json === undefined) continue;
      left--;
      yield [key, json];
    }
  }

  async remove(sequence: number): Promise<void> {
    await this.#store.submit([this.removeWrite(sequence)], undefined);
  }

  appendWrite(json: string): CommitWrite {
    valueBytes(json, this.#where, MAX_VALUE_BYTES);
    return { kind: "a", name: this.name, key: 0, json };
  }

  removeWrite(sequence: number): CommitWrite {
    return { kind: "l", name: this.name, key: sequence, json: undefined };
  }
}

/** Base64url, because an engine reads ".", "*" and ">" in a subject, and refuses blanks. */
function subjectKey(key: string): string {
  const bytes = Buffer.from(key);
  if (bytes.length <= MAX_SUBJECT_KEY_BYTES) return `k${bytes.toString("base64url")}`;
  return `h${createHash("sha256").update(bytes).digest("base64url")}`;
}

function parsed(json: string, where: string): unknown {
  try {
    return JSON.parse(json);
  } catch (error) {
    throw corrupt(where, "a value is not JSON", error);
  }
}
