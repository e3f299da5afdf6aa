// Reads a file of text that people or other programs wrote, and no further than its bound: it may be a device without
// an end, or have been filled by mistake. And what tells one state of a file from another.

import { type BigIntStats, closeSync, openSync, readSync } from "node:fs";

/** A config with a thousand servers has less than 1 MB; reading this much takes a second or two. */
export const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

const PIECE_BYTES = 64 * 1024;

/** Throws what the system says; for a file of more than `maxBytes` an error with the code EFBIG. */
export function readTextFile(path: string, maxBytes: number = MAX_CONFIG_BYTES): string {
  const file = openSync(path, "r");
  try {
    const pieces: Buffer[] = [];
    for (let length = 0; ; ) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      const count = readSync(file, piece);
      if (count === 0) return Buffer.concat(pieces, length).toString("utf8");
      length += count;
      if (length > maxBytes) {
        throw Object.assign(new Error(`${path} has more than ${maxBytes} bytes.`), { code: "EFBIG" });
      }
      pieces.push(piece.subarray(0, count));
    }
  } finally {
    closeSync(file);
  }
}

/** What tells one state of a file from another, without reading it: a file that was renamed over it is another too. */
export function fingerprintOf({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [dev, ino, size, mtimeNs, ctimeNs].join(":");
}

/** The same for a file that cannot be looked at. */
export function fingerprintOfNone(error: unknown): string {
  return `no file: ${(error as NodeJS.ErrnoException).code}`;
}
