// Sealed values: small JSON that we hand out (session ids, cursors, `requestState`) and take back only if it is ours
// and unchanged. Owns the key file and the format; what is sealed, and under which purpose, is the caller's.
//
//   base64url( nonce 12 | ciphertext | tag 16 )    AES-256-GCM, the purpose as associated data
//
// AES-GCM and not ChaCha20: opening is what happens on every request, and is faster here where the processor has AES.
// Nonces are random: one key is good for 2^32 seals (NIST SP 800-38D), 1,000 a second for 49 days without a break;
// sessions and cursors are far below that. A steady sealer takes its nonce from the value itself, under keys of its own.

import { createCipheriv, createDecipheriv, createHmac, randomBytes, randomFillSync } from "node:crypto";
import { chmodSync, closeSync, fsyncSync, linkSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { StateDirError } from "./state-dir.js";

const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Fits a header line of any client and proxy (8 KiB), and keeps garbage from costing anything. */
const MAX_SEALED_CHARS = 6 * 1024;
/** What is kept and never handed out may be longer: a login has two tokens of 16 KiB and the documents that it came by. */
const MAX_KEPT_CHARS = 512 * 1024;
const ALGORITHM = "aes-256-gcm";

export interface Sealer {
  /** URL- and header-safe text. Throws when the value is not JSON, or too large to be handed out (about 4.5 KiB). */
  seal(purpose: string, value: unknown): string;
  /** The value; undefined for anything that this key did not seal for this purpose. Never throws. */
  unseal(purpose: string, text: string): unknown;
}

export function createSealer(key: Uint8Array): Sealer {
  return sealerOf(key, (nonce) => randomFillSync(nonce));
}

/** For what is kept on disk and never handed out, under a key of its own. */
export function createVault(key: Uint8Array): Sealer {
  return sealerOf(hmac(key, "vault"), (nonce) => randomFillSync(nonce), MAX_KEPT_CHARS);
}

/** For texts of any length that leave this machine and come back: as a vault, but nothing is put into JSON. */
export interface TextVault {
  seal(purpose: string, text: string): string;
  /** Undefined for anything that this key did not seal for this purpose. */
  open(purpose: string, sealed: string): string | undefined;
}

export function createTextVault(key: Uint8Array): TextVault {
  const own = hmac(key, "texts");
  const nonce = Buffer.alloc(NONCE_BYTES);
  return {
    seal: (purpose, text) => sealText(own, randomFillSync(nonce), purpose, text),
    open: (purpose, sealed) => unsealText(own, purpose, sealed),
  };
}

/**
 * The same value has the same text each time, for ids that a peer compares: two texts show whether their values are
 * equal, and nothing else. One nonce for two values would need a collision of the HMAC.
 */
export function createSteadySealer(key: Uint8Array): Sealer {
  const [cipherKey, nonceKey] = ["steady cipher", "steady nonce"].map((use) => hmac(key, use));
  return sealerOf(cipherKey as Buffer, (nonce, purpose, json) => {
    hmac(nonceKey as Buffer, JSON.stringify([purpose, json])).copy(nonce, 0, 0, NONCE_BYTES);
  });
}

function hmac(key: Uint8Array, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sealerOf(
  key: Uint8Array,
  fillNonce: (nonce: Buffer, purpose: string, json: string) => void,
  maxChars = MAX_SEALED_CHARS,
): Sealer {
  if (key.length !== KEY_BYTES) throw new Error(`A sealing key has ${KEY_BYTES} bytes, not ${key.length}.`);
  return {
    seal(purpose, value) {
      const json = JSON.stringify(value) as string | undefined;
      if (json === undefined) throw new TypeError("Only what JSON can express can be sealed.");
      const nonce = Buffer.allocUnsafe(NONCE_BYTES);
      fillNonce(nonce, purpose, json);
      const text = sealText(key, nonce, purpose, json);
      if (text.length > maxChars) throw new RangeError(`Too large to seal: ${text.length} characters.`);
      return text;
    },
    unseal(purpose, text) {
      if (text.length > maxChars) return undefined;
      const json = unsealText(key, purpose, text);
      if (json === undefined) return undefined;
      try {
        return JSON.parse(json);
      } catch {
        return undefined;
      }
    },
  };
}

function sealText(key: Uint8Array, nonce: Uint8Array, purpose: string, text: string): string {
  const size = Buffer.byteLength(text);
  const out = Buffer.allocUnsafe(NONCE_BYTES + size + TAG_BYTES);
  out.set(nonce);
  const cipher = createCipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(Buffer.from(purpose));
  // GCM is a stream: all of the ciphertext comes from update().
  cipher.update(text, "utf8").copy(out, NONCE_BYTES);
  cipher.final();
  cipher.getAuthTag().copy(out, NONCE_BYTES + size);
  return out.toString("base64url");
}

function unsealText(key: Uint8Array, purpose: string, text: string): string | undefined {
  const bytes = Buffer.from(text, "base64url");
  // The decoder skips what it does not know; one value must have one text only.
  if (bytes.length < NONCE_BYTES + TAG_BYTES || bytes.toString("base64url") !== text) return undefined;
  const end = bytes.length - TAG_BYTES;
  try {
    const nonce = bytes.subarray(0, NONCE_BYTES);
    const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(purpose));
    decipher.setAuthTag(bytes.subarray(end));
    const plain = decipher.update(bytes.subarray(NONCE_BYTES, end));
    decipher.final();
    return plain.toString("utf8");
  } catch {
    return undefined;
  }
}

/** The key of a file, which is made (0600) when it is missing. Two starters get the same key. */
export function openKey(keyPath: string): Uint8Array {
  return readKey(keyPath) ?? makeKey(keyPath);
}

/** Undefined where there is no such file. */
export function readKey(path: string): Uint8Array | undefined {
  let key: Buffer;
  try {
    key = readFileSync(path);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw damaged(path, `cannot be read (${code})`);
  }
  if (key.length !== KEY_BYTES) throw damaged(path, `has ${key.length} bytes instead of ${KEY_BYTES}`);
  // A restore or a copy may have widened it.
  chmodSync(path, 0o600);
  return key;
}

/** It is never replaced by itself: whoever has a copy loses nothing. */
function damaged(path: string, what: string): StateDirError {
  const remedy =
    "Restore it from a backup, or remove it. Then a new one is made: open sessions begin anew, tasks are unknown, and logins " +
    "(`toolway login`) and answers to inputs (`toolway doctor`) must be given again.";
  return new StateDirError("failed", `The key file ${path} ${what}. ${remedy}`);
}

/** Makes a file (0600) of a key, of a new one if none is given. Where there is one already, that one is kept and returned. */
export function makeKey(path: string, key: Uint8Array = randomBytes(KEY_BYTES)): Uint8Array {
  const made = `${path}.${process.pid}.${randomBytes(4).toString("hex")}`;
  const fd = openSync(made, "wx", 0o600);
  try {
    writeSync(fd, key);
    fsyncSync(fd);
    // link, not rename: it fails when another starter was faster, and then the key is theirs.
    linkSync(made, path);
    return key;
  } catch (error) {
    const other = (error as NodeJS.ErrnoException).code === "EEXIST" ? readKey(path) : undefined;
    if (other === undefined) throw error;
    return other;
  } finally {
    closeSync(fd);
    rmSync(made, { force: true });
  }
}
