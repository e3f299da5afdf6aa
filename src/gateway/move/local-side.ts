// A state directory as an end of a move. Its lock is held for as long as it is open.

import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Store } from "../../contracts/store.js";
import { makeKey, readKey } from "../../runtime/seal.js";
import { ensureStateDir, lockStateDir, type StateLock } from "../../runtime/state-dir.js";
import { MAX_VALUE_BYTES } from "../../store/checks.js";
import { openStore } from "../../store/local/store.js";
import { makeToken, readToken } from "../../tokens/tokens.js";
import { MoveError, type QueueKind } from "./kinds.js";
import { mergeByTime } from "./plan.js";
import {
  type Append,
  appendInBatches,
  byPartition,
  maySendIn,
  type PlacedItem,
  partitionFor,
  type Side,
} from "./side.js";

export class LocalSide implements Side {
  readonly where: string;
  readonly maxValueBytes = MAX_VALUE_BYTES;
  readonly #dir: string;
  #lock: StateLock | undefined;
  #store: Store | undefined;
  #key: Uint8Array | undefined;

  /** Takes the lock where there is something to lock. `readOnly`: nothing but the lock is written. */
  static async open(dir: string, { readOnly }: { readonly readOnly: boolean }): Promise<LocalSide> {
    const side = new LocalSide(dir);
    if (!existsSync(dir)) return side;
    try {
      side.#lock = await lockStateDir(dir);
      side.#key = readKey(join(dir, "sealing-key"));
      if (existsSync(join(dir, "store", "data.mdb")))
        side.#store = await openStore({ dir: join(dir, "store"), readOnly });
      return side;
    } catch (error) {
      await side.close();
      throw error;
    }
  }

  private constructor(dir: string) {
    this.#dir = dir;
    this.where = `the state directory ${dir}`;
  }

  get key(): Uint8Array | undefined {
    return this.#key;
  }

  get shared(): Store | undefined {
    return this.#store;
  }

  async prepare(key: Uint8Array): Promise<void> {
    ensureStateDir(this.#dir);
    this.#lock ??= await lockStateDir(this.#dir);
    this.#key = makeKey(join(this.#dir, "sealing-key"), key);
    if (Buffer.compare(this.#key, key) !== 0) throw new MoveError(`A sealing key was made in ${this.#dir} meanwhile.`);
    this.#store ??= await openStore({ dir: join(this.#dir, "store") });
  }

  defaultToken(): string | undefined {
    return existsSync(this.#dir) ? readToken(this.#tokenPath) : undefined;
  }

  async setDefaultToken(token: string | undefined): Promise<void> {
    rmSync(this.#tokenPath, { force: true });
    if (token !== undefined) makeToken(this.#tokenPath, token);
  }

  async queue(kind: QueueKind): Promise<ReadonlyMap<number, readonly PlacedItem[]>> {
    const found = new Map<number, PlacedItem[]>();
    const store = this.#store;
    if (store === undefined) return found;
    for (const item of kind.items(store, maySendIn(store))) {
      const partition = partitionFor(item.owner);
      const list = found.get(partition);
      if (list === undefined) found.set(partition, [{ ...item, store }]);
      else list.push({ ...item, store });
    }
    return found;
  }

  /** What comes from several partitions is one queue here: the oldest first, and each in its order. */
  async append(kind: QueueKind, all: readonly Append[], written: (count: number) => void): Promise<void> {
    const lists = [...byPartition(all).values()];
    const order = mergeByTime(lists.map((list) => list.map(({ atMs }) => atMs)));
    const merged = order.map(({ list, index }) => lists[list]?.[index] as Append);
    await appendInBatches(kind, this.#opened(), merged, this.maxValueBytes, written);
  }

  remove(kind: QueueKind, _: number, keys: readonly string[]): Promise<void> {
    return kind.remove(this.#opened(), keys);
  }

  /** Reads are from the disk's pages, as they were committed. */
  async reread(): Promise<void> {}

  /** There is nothing of the kind on a disk. */
  async tidy(): Promise<void> {}

  /** The lock does. */
  async shutOut(): Promise<void> {}

  /** Nobody while we hold the lock. */
  async users(): Promise<readonly string[]> {
    return [];
  }

  async close(): Promise<void> {
    try {
      await this.#store?.close();
    } finally {
      await this.#lock?.release();
    }
  }

  get #tokenPath(): string {
    return join(this.#dir, "token");
  }

  #opened(): Store {
    if (this.#store === undefined) throw new MoveError(`${this.where} was not prepared.`);
    return this.#store;
  }
}
