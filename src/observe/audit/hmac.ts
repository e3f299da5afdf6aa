// HMACs of many short texts by one key, of SHA-256. Node's own makes an object for each, which costs twice as much as the
// hashing; what RFC 2104 does with the key is done here once.

import { hash } from "node:crypto";

/** What SHA-256 hashes at a time. */
const BLOCK_BYTES = 64;
const DIGEST_BYTES = 32;
const INNER = 0x36;
const OUTER = 0x5c;
/** A character of UTF-16 is three bytes of UTF-8 at most. */
const BYTES_OF_CHARACTER = 3;
/** Texts up to here have their place behind the key; a longer one gets its own. */
const SHORT_CHARACTERS = 4 * 1024;

export class Hmac {
  /** The key, and behind it the text. */
  readonly #inner = Buffer.alloc(BLOCK_BYTES + SHORT_CHARACTERS * BYTES_OF_CHARACTER);
  /** The key, and behind it the hash of the above. */
  readonly #outer = Buffer.alloc(BLOCK_BYTES + DIGEST_BYTES);

  constructor(key: Uint8Array) {
    const short = key.length > BLOCK_BYTES ? hash("sha256", key, "buffer") : key;
    for (let i = 0; i < BLOCK_BYTES; i++) {
      this.#inner[i] = (short[i] ?? 0) ^ INNER;
      this.#outer[i] = (short[i] ?? 0) ^ OUTER;
    }
  }

  /** In 43 letters. */
  of(text: string): string {
    this.#outer.write(hash("sha256", this.#keyed(text), "binary"), BLOCK_BYTES, "latin1");
    return hash("sha256", this.#outer, "base64url");
  }

  #keyed(text: string): Buffer {
    if (text.length > SHORT_CHARACTERS) return Buffer.concat([this.#inner.subarray(0, BLOCK_BYTES), Buffer.from(text)]);
    const length = this.#inner.write(text, BLOCK_BYTES);
    return this.#inner.subarray(0, BLOCK_BYTES + length);
  }
}
