// Random words in base64url, and of them those that a person can type: never one that a command line would read as an option.

import { randomBytes, randomFillSync } from "node:crypto";
import { KIB } from "../sizes.js";

/** Drawn at once: a draw costs as much for these as for the 16 bytes of one word. */
const POOL_BYTES = 4 * KIB;
const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** Each of its bytes is used once, and is not kept here. */
export function randomWord(bytes: number): string {
  if (bytes > POOL_BYTES) return randomBytes(bytes).toString("base64url");
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  const from = used;
  used += bytes;
  const word = pool.toString("base64url", from, used);
  pool.fill(0, from, used);
  return word;
}

export function randomId(bytes: number, draw: (bytes: number) => string = randomWord): string {
  for (;;) {
    const word = draw(bytes);
    if (!word.startsWith("-")) return word;
  }
}
