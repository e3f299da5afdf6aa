// One of the two ends of a move: a state on disk or in an engine, as far as a move reads and writes it.

import type { Store } from "../../contracts/store.js";
import { PARTITIONS, partitionOf } from "../../store/ownership/partitions.js";
import type { TokenRecord } from "../../tokens/tokens.js";
import type { MaySend, QueueItem, QueueKind, Texts } from "./kinds.js";

/** An item, and the store that it lies in. */
export interface PlacedItem extends QueueItem {
  readonly store: Store;
}

/** What of a kind is to be written, in the order of its partition. */
export interface Append {
  readonly partition: number;
  readonly name: string;
  readonly atMs: number;
  texts(): Texts;
}

export interface Side {
  /** For sentences. */
  readonly where: string;
  /** Undefined where nothing was ever kept there: it is made with the first write. */
  readonly key: Uint8Array | undefined;
  /** Maps and the mark; undefined likewise. */
  readonly shared: Store | undefined;
  /** The largest value that it takes. */
  readonly maxValueBytes: number;
  defaultToken(): string | undefined;
  setDefaultToken(token: string | undefined): Promise<void>;
  /** By partition. */
  queue(kind: QueueKind): Promise<ReadonlyMap<number, readonly PlacedItem[]>>;
  append(kind: QueueKind, all: readonly Append[], written: (count: number) => void): Promise<void>;
  remove(kind: QueueKind, partition: number, keys: readonly string[]): Promise<void>;
  /** Makes what is missing: it can be written to from now on. */
  prepare(key: Uint8Array): Promise<void>;
  /** What is written down about things that are not there any more goes. To be called when all has arrived, and was read anew. */
  tidy(): Promise<void>;
  /** What is read from now on is what is stored, and not what was written here. */
  reread(): Promise<void>;
  /** Whoever had a part of what is queued, and is not heard, is refused what it writes from now on. */
  shutOut(): Promise<void>;
  /** Those who use it now, besides us. */
  users(signal: AbortSignal): Promise<readonly string[]>;
  close(): Promise<void>;
}

export function maySendIn(shared: Store | undefined): MaySend {
  // Without a token of that name it may send to any: the gateway itself, which is the empty one, or a peer where mailboxes are open.
  return (id) => {
    const record = id === "" ? undefined : shared?.map<TokenRecord>("tokens").get(id);
    return record === undefined ? "any" : record.maySendTo;
  };
}

/** Where something of that owner is kept in an engine. */
export function partitionFor(owner: string): number {
  return partitionOf(owner, PARTITIONS);
}

/** Written at a time. Of large ones fewer, so that a batch stays within what an engine takes. */
const BATCH_ITEMS = 128;
const BATCH_BYTES = 128 * 1024;
/** Of an item, beside its texts: the names and keys of its three writes, as an engine counts them. */
export const ITEM_BYTES = 512;

/** In batches of one commit each, in order. `room`: what such a commit may have. */
export async function appendInBatches(
  kind: QueueKind,
  store: Store,
  all: readonly Append[],
  room: number,
  written: (count: number) => void,
): Promise<void> {
  const most = Math.min(BATCH_BYTES, room);
  let batch: Texts[] = [];
  let bytes = 0;
  const flush = async () => {
    const some = batch;
    batch = [];
    bytes = 0;
    if (some.length === 0) return;
    await kind.append(store, some);
    written(some.length);
  };
  for (const item of all) {
    const texts = item.texts();
    const size = sizeOf(texts) + ITEM_BYTES;
    if (batch.length >= BATCH_ITEMS || bytes + size > most) await flush();
    batch.push(texts);
    bytes += size;
  }
  await flush();
}

export function sizeOf(texts: Texts): number {
  let bytes = 0;
  for (const text of texts) if (text !== undefined) bytes += Buffer.byteLength(text);
  return bytes;
}

export function byPartition<T extends { readonly partition: number }>(all: readonly T[]): Map<number, T[]> {
  const found = new Map<number, T[]>();
  for (const one of all) {
    const list = found.get(one.partition);
    if (list === undefined) found.set(one.partition, [one]);
    else list.push(one);
  }
  return found;
}

/** Writes that are on their way at one time: publishing is at its fastest so. */
const AT_ONCE = 64;

/** Stops at the first that fails, when those on their way have ended. */
export async function inParallel<T>(all: Iterable<T>, act: (one: T) => Promise<void>): Promise<void> {
  const waiting = all[Symbol.iterator]();
  let failed: unknown;
  const work = async () => {
    for (let next = waiting.next(); next.done !== true && failed === undefined; next = waiting.next()) {
      try {
        await act(next.value);
      } catch (error) {
        failed ??= error;
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  if (failed !== undefined) throw failed;
}
