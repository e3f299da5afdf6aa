// LMDB as far as the store uses it. Its own types stay out of ours: they reach the programs that use the library, and
// do not compile there.

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
