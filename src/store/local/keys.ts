// How maps, logs and the store's own records lie in the one key space of LMDB. Bytes in, bytes out; no I/O.
//
//   m <name> 00 <key, UTF-8>        an entry of a map
//   l <name> 00 <sequence, 8 bytes> an entry of a log, big-endian, so that bytes sort as numbers
//   t <name>                        how far a log has got, where its last entry was removed
//   s <what>                        the store's own: the schema version
//
// One key space instead of LMDB's named databases: a write to two maps is one commit, a new map costs no
// transaction, there is no limit on their number, and a dump is one walk.

import { keyLength } from "../checks.js";

export type Kind = "map" | "log";
const LETTER: Record<Kind, string> = { map: "m", log: "l" };

/** All keys of a map or log begin with this. */
export function prefixOf(kind: Kind, name: string): Buffer {
  return Buffer.from(`${LETTER[kind]}${name}\0`, "latin1");
}

/** The first key after all that begin with `prefix`. Our prefixes never end in 0xff bytes only. */
export function after(prefix: Uint8Array): Buffer {
  let end = prefix.length;
  while (end > 0 && prefix[end - 1] === 0xff) end--;
  const next = Buffer.from(prefix.subarray(0, end));
  next[end - 1] = (next[end - 1] ?? 0) + 1;
  return next;
}

export function mapKey(prefix: Buffer, key: string): Buffer {
  const length = keyLength(key);
  // Each write has one: it is put together where it stays.
  const bytes = Buffer.allocUnsafe(prefix.length + length);
  bytes.set(prefix);
  bytes.write(key, prefix.length);
  return bytes;
}

export function logKey(prefix: Buffer, sequence: number): Buffer {
  const key = Buffer.alloc(prefix.length + 8);
  prefix.copy(key);
  key.writeBigUInt64BE(BigInt(sequence), prefix.length);
  return key;
}

/** Where a log keeps the highest number that it gave. */
export function reachedKey(name: string): Buffer {
  return Buffer.from(`t${name}`, "latin1");
}

export const SCHEMA_KEY = Buffer.from("sschema", "latin1");

export function mapKeyText(key: Uint8Array, prefixLength: number): string {
  return Buffer.from(key.buffer, key.byteOffset, key.byteLength).toString("utf8", prefixLength);
}

export function logSequence(key: Uint8Array): number {
  return Number(Buffer.from(key.buffer, key.byteOffset, key.byteLength).readBigUInt64BE(key.length - 8));
}

/** What a key of an entry stands for; undefined for the store's own records. */
export function parseKey(key: Uint8Array): { kind: Kind; name: string; key: string | number } | undefined {
  const kind: Kind | undefined = key[0] === 0x6d ? "map" : key[0] === 0x6c ? "log" : undefined;
  const zero = key.indexOf(0);
  if (kind === undefined || zero < 0) return undefined;
  const name = Buffer.from(key.subarray(1, zero)).toString("latin1");
  return { kind, name, key: kind === "map" ? mapKeyText(key, zero + 1) : logSequence(key) };
}
