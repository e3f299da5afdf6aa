// What may name a map or log, be a key or a value: the same on every store, so that what one keeps another can.

import { MIB } from "../runtime/sizes.js";
import { StoreError } from "./store-error.js";

/** LMDB takes keys up to 1978 bytes with 4 KiB pages; this leaves room for the kind, the name and the zero. */
const MAX_KEY_BYTES = 1900;
/** Names are ours, not users': short, and without the zero byte that ends them. */
const NAME = /^[a-z][a-z0-9._-]{0,63}$/;
/** Encoded and decoded on the main thread: anything larger belongs into a file of its own. */
export const MAX_VALUE_BYTES = 16 * MIB;

export function checkName(name: string): string {
  if (!NAME.test(name)) {
    throw new StoreError("invalid", `"${name}" cannot name a map or log: a-z, 0-9, ".", "_", "-", at most 64.`);
  }
  return name;
}

export function keyBytes(key: string): Buffer {
  keyLength(key);
  return Buffer.from(key);
}

/** How many bytes it has. */
export function keyLength(key: string): number {
  const length = Buffer.byteLength(key);
  // A lone surrogate has no UTF-8: two different keys would become one. What is ASCII, as most keys are, has none.
  if (length !== key.length && /\p{Surrogate}/u.test(key)) {
    throw new StoreError("invalid", "A key must be well-formed Unicode.");
  }
  if (length > MAX_KEY_BYTES) {
    throw new StoreError("invalid", `A key may have ${MAX_KEY_BYTES} bytes; this one has ${length}.`);
  }
  return length;
}

export function jsonOf(value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) throw new StoreError("invalid", "Only what JSON can express can be stored.");
  return json;
}

/** How many bytes the value has; `where` is the store, for the error. */
export function valueBytes(json: string, where: string, limit = MAX_VALUE_BYTES): number {
  const size = Buffer.byteLength(json);
  if (size > limit) {
    const shown = limit >= MIB ? `${Math.floor(limit / MIB)} MiB` : `${limit} bytes`;
    throw new StoreError("invalid", `A value in ${where} may have ${shown}; this one has ${size} bytes.`);
  }
  return size;
}

/** What the store knows by that name, where it is the very one that was given. */
export function ownOf<T>(known: ReadonlyMap<string, T>, given: { readonly name: string }): T {
  const own = known.get(given.name);
  if (own === undefined || own !== (given as unknown)) {
    throw new StoreError("invalid", `"${given.name}" belongs to another store.`);
  }
  return own;
}
