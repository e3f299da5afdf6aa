// LMDB as far as the store uses it, and what is done to its files before it gets them. Its own types stay out of ours: they
// reach the programs that use the library, and do not compile there. It trusts its files: one that is not its own, or a disk
// without room, is a SIGSEGV or SIGBUS there, so both are found here first.

import { closeSync, existsSync, openSync, readSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { endianness } from "node:os";
import { join } from "node:path";
import { corrupt } from "../store-error.js";

export interface Env {
  get(key: Uint8Array): string | undefined;
  getBinary(key: Uint8Array): Buffer | undefined;
  getKeys(range: EnvRange): Iterable<Uint8Array>;
  getRange(range: EnvRange): Iterable<{ key: Uint8Array; value: string }>;
  getStats(): object;
  put(key: Uint8Array, value: string): Promise<boolean>;
  remove(key: Uint8Array): Promise<boolean>;
  batch(action: () => void): Promise<boolean>;
  transactionSync<T>(action: () => T): T;
  close(): Promise<void>;
}

interface EnvRange {
  readonly start: Uint8Array;
  readonly end: Uint8Array;
  readonly limit?: number;
}

/** How it is opened, for reading too. */
export const ENV_OPTIONS = {
  noSubdir: false,
  // One fdatasync a commit, done when the promise resolves; the default resolves before.
  overlappingSync: false,
  // Our committer groups writes; LMDB's own grouping makes promises that nobody can catch.
  eventTurnBatching: false,
  // A transaction begins at the end of the turn, with all that was written until then, however much that is.
  txnStartThreshold: Number.MAX_SAFE_INTEGER,
  encoding: "string",
  keyEncoding: "binary",
} as const;

/** LMDB wants 8,272 bytes for its table of readers. */
const LOCK_FILE_BYTES = 16 * 1024;
const META_MAGIC = 0xbeefc0de;
/** Where the magic number can stand in a page, depending on LMDB's page header. */
const MAGIC_OFFSETS = [24, 16];
/** From the magic number to the page size. */
const PAGE_SIZE_OFFSET = 24;

/** Throws StoreError `corrupt` unless both of LMDB's meta pages are there. No file, or an empty one, is a new store. */
export function checkHeader(dir: string): void {
  const data = join(dir, "data.mdb");
  if (!existsSync(data)) return;
  const fd = openSync(data, "r");
  try {
    const page = Buffer.alloc(64);
    const read = readSync(fd, page, 0, page.length, 0);
    if (read === 0) return;
    const u32 = (offset: number) => (endianness() === "LE" ? page.readUInt32LE(offset) : page.readUInt32BE(offset));
    const magic = read === page.length ? MAGIC_OFFSETS.find((offset) => u32(offset) === META_MAGIC) : undefined;
    if (magic === undefined) throw corrupt(dir, "its file does not begin as one");
    const pageSize = u32(magic + PAGE_SIZE_OFFSET);
    const second = pageSize >= 256 && pageSize <= 65536 && readSync(fd, page, 0, page.length, pageSize) === page.length;
    if (!second || u32(magic) !== META_MAGIC) throw corrupt(dir, "its file has no second header");
  } finally {
    closeSync(fd);
  }
}

/**
 * LMDB makes its lock file as a hole and writes to it through memory: on a full disk that is a SIGBUS. So we make it
 * first, with real zeros. Never touched again: closing any descriptor of it would drop LMDB's locks.
 */
export function prepareLockFile(dir: string): void {
  const lock = join(dir, "lock.mdb");
  if (existsSync(lock)) return;
  const made = `${lock}.${process.pid}`;
  try {
    writeFileSync(made, Buffer.alloc(LOCK_FILE_BYTES), { mode: 0o600 });
    renameSync(made, lock);
  } catch (error) {
    rmSync(made, { force: true });
    throw error;
  }
}
