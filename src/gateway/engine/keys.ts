// The engine's keys, which every gateway is given: their text, and what is wrapped under them. A gateway has one or
// several: the first wraps, all of them open, so that a new one can be everywhere before it is used.

import { createHash, randomBytes } from "node:crypto";
import { ExpectedError } from "../../runtime/expected-error.js";
import { createSealer, type Sealer } from "../../runtime/seal.js";

const KEY_BYTES = 32;
/** So that a key is known for what it is, in a file or by those who look for secrets in texts. */
const BEGINNING = "twk_";
const FORM = /^twk_[A-Za-z0-9_-]{43}$/;
/** The one that is used, the next and the last: a list that grows is one that nobody clears. */
const MAX_KEYS = 8;

export interface EngineKey {
  /** Tells keys apart, and says nothing of them. */
  readonly id: string;
  readonly sealer: Sealer;
}

export class EngineKeyError extends ExpectedError {
  override readonly name = "EngineKeyError";
  override readonly kind = "failed";
}

/** The text of a new key, for `toolway engine key`. */
export function makeEngineKey(): string {
  return BEGINNING + randomBytes(KEY_BYTES).toString("base64url");
}

/** Reads keys with white space between them. `where` is the variable or the file that they stand in; no key is quoted. */
export function readEngineKeys(text: string, where: string): readonly [EngineKey, ...EngineKey[]] {
  const keys = text
    .split(/\s+/)
    .filter((word) => word !== "")
    .map((word, index) => readKey(word, index, where));
  const [first, ...others] = keys;
  if (first === undefined) throw new EngineKeyError(`${where} holds no key of the engine. ${REMEDY}`);
  if (keys.length > MAX_KEYS) {
    throw new EngineKeyError(`${where} holds ${keys.length} keys, and ${MAX_KEYS} are the most: remove the oldest.`);
  }
  if (new Set(keys.map(({ id }) => id)).size < keys.length) {
    throw new EngineKeyError(`${where} holds a key twice: remove one of the two.`);
  }
  return [first, ...others];
}

const REMEDY = "`toolway engine key` makes one; every gateway on the engine is given the same.";

function readKey(word: string, index: number, where: string): EngineKey {
  const bytes = Buffer.from(word.slice(BEGINNING.length), "base64url");
  if (!FORM.test(word) || bytes.length !== KEY_BYTES) {
    const which = index === 0 ? "The first text" : `Text number ${index + 1}`;
    throw new EngineKeyError(`${which} in ${where} is no key of the engine, which begins with ${BEGINNING}. ${REMEDY}`);
  }
  const id = createHash("sha256").update("toolway engine key").update(bytes).digest("hex").slice(0, 12);
  return { id, sealer: createSealer(bytes) };
}

/** What of ours stands in the engine under its key: a sealing key, and which of the engine's keys opens it. */
export interface WrappedKey {
  readonly v: 1;
  readonly by: string;
  readonly key: string;
}

const PURPOSE = "engine sealing key";

export function wrapKey(key: Uint8Array, [{ id, sealer }]: readonly [EngineKey, ...EngineKey[]]): WrappedKey {
  return { v: 1, by: id, key: sealer.seal(PURPOSE, Buffer.from(key).toString("base64url")) };
}

/** Throws what says which key is missing. */
export function unwrapKey(wrapped: WrappedKey, keys: readonly EngineKey[]): Uint8Array {
  // A newer Toolway may know another form; to make a key of our own would lock it out of what is there.
  if (wrapped.v !== 1) {
    throw new EngineKeyError("The engine's sealing key was written by a newer Toolway: upgrade this one.");
  }
  const key = keys.find(({ id }) => id === wrapped.by);
  if (key === undefined) {
    const given = keys.map(({ id }) => id).join(", ");
    throw new EngineKeyError(
      `What is kept in the engine is sealed under its key ${wrapped.by}, and this gateway was given ${given}. ` +
        'Give it that key too: "key" in "engine" takes several, one a line, of which the first is used.',
    );
  }
  const text = key.sealer.unseal(PURPOSE, wrapped.key);
  const bytes = typeof text === "string" ? Buffer.from(text, "base64url") : undefined;
  if (bytes?.length !== KEY_BYTES) {
    throw new EngineKeyError(`The sealing key in the engine is damaged: the engine's key ${key.id} does not open it.`);
  }
  return bytes;
}
