// What can go wrong with the store, as a closed set of codes; and what LMDB and the system say, put into them.

import { ExpectedError, messageOf } from "../runtime/expected-error.js";

export type StoreErrorCode =
  /** The store's own bound is reached. Reads and deletes go on. */
  | "full"
  /** The disk has no room. All that was acknowledged stays; writing goes on when space is freed. */
  | "disk-full"
  /** More is waiting to be written than the store is willing to hold in memory. */
  | "busy"
  /** The files are not, or no longer, a store of ours. */
  | "corrupt"
  /** The store was written by a newer version of this program. */
  | "newer"
  /** The store is of an older version, and may not be migrated because it is opened for reading only. */
  | "older"
  /** There is no store to read. */
  | "missing"
  /** This process has the same store open already. */
  | "already-open"
  | "closed"
  | "read-only"
  /** A name, key or value that cannot be stored. */
  | "invalid"
  /** There is no connection to the engine: nothing was written, and nothing waits to be. */
  | "away"
  /** It was sent, and nobody answered for longer than an election lasts: it may have been written. */
  | "unknown"
  /** Another gateway owns it now. */
  | "fenced"
  /** Whatever else the disk or the engine reports. */
  | "io";

export class StoreError extends ExpectedError {
  override readonly name = "StoreError";
  override readonly kind = "failed";
  readonly code: StoreErrorCode;
  /** Of `away`: in how long it is tried again, where that is known. */
  readonly retryInMs: number | undefined;

  constructor(code: StoreErrorCode, message: string, cause?: unknown, retryInMs?: number) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.retryInMs = retryInMs;
  }
}

// LMDB's own numbers; system errors come from it as positive errno.
const MDB_PAGE_NOTFOUND = -30797;
const MDB_CORRUPTED = -30796;
const MDB_PANIC = -30795;
const MDB_VERSION_MISMATCH = -30794;
const MDB_INVALID = -30793;
const MDB_MAP_FULL = -30792;
const DAMAGE: ReadonlySet<unknown> = new Set([
  MDB_PAGE_NOTFOUND,
  MDB_CORRUPTED,
  MDB_VERSION_MISMATCH,
  MDB_INVALID,
  "MDB_PAGE_NOTFOUND",
  "MDB_CORRUPTED",
  "MDB_VERSION_MISMATCH",
  "MDB_INVALID",
]);
// ENOSPC, EFBIG, and EDQUOT on Linux and macOS.
const NO_ROOM: ReadonlySet<unknown> = new Set([28, 27, 122, 69, "ENOSPC", "EFBIG", "EDQUOT", MDB_MAP_FULL]);

export function isNoRoom(error: unknown): boolean {
  return NO_ROOM.has((error as { code?: unknown } | null)?.code);
}

export function diskFull(path: string, cause?: unknown): StoreError {
  return new StoreError(
    "disk-full",
    `No room left on the disk of ${path}. Nothing that was acknowledged is lost; free some space and writing goes on.`,
    cause,
  );
}

export function corrupt(path: string, what: string, cause?: unknown): StoreError {
  return new StoreError(
    "corrupt",
    `The store at ${path} is damaged or not a store of Toolway (${what}). ` +
      "Restore it from a backup, or move it away to start with an empty one.",
    cause,
  );
}

/** Turns what LMDB or the file system threw into a StoreError. */
export function toStoreError(error: unknown, path: string): StoreError {
  if (error instanceof StoreError) return error;
  if (isNoRoom(error)) return diskFull(path, error);
  const code = (error as { code?: unknown } | null)?.code;
  const message = messageOf(error);
  if (DAMAGE.has(code) || /MDB_(CORRUPTED|INVALID|PAGE_NOTFOUND|VERSION_MISMATCH)/.test(message)) {
    return corrupt(path, message, error);
  }
  if (code === MDB_PANIC) {
    return new StoreError("io", `The store at ${path} stopped after an error of the disk; restart the gateway.`, error);
  }
  return new StoreError("io", `The store at ${path} failed: ${message}`, error);
}
