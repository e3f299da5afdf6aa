// Reads a file of text that people or other programs wrote, and no further than its bound: it may be a device without
// an end, or have been filled by mistake. And what tells one state of a file from another.

import { isUtf8 } from "node:buffer";
import { type BigIntStats, closeSync, openSync, readSync } from "node:fs";

/** A config with a thousand servers has less than 1 MB; reading this much takes a second or two. */
export const MAX_CONFIG_BYTES = 16 * 1024 * 1024;

const PIECE_BYTES = 64 * 1024;

/** Throws what the system says; for a file of more than `maxBytes` an error with the code EFBIG. */
export function readTextFile(path: string, maxBytes: number = MAX_CONFIG_BYTES): string {
  return readBytes(path, maxBytes).toString("utf8");
}

/**
 * The same for a file that is written again: its text is all that stands there, a byte order mark too. Throws an error
 * with the code NOT_UTF8 where the bytes are no UTF-8, with the first place in its message.
 */
export function readUtf8File(path: string, maxBytes: number = MAX_CONFIG_BYTES): string {
  const bytes = readBytes(path, maxBytes);
  const text = bytes.toString("utf8");
  if (isUtf8(bytes)) return text;
  throw Object.assign(new Error(notUtf8Text(bytes, text)), { code: NOT_UTF8 });
}

export const NOT_UTF8 = "NOT_UTF8";

function notUtf8Text(bytes: Buffer, text: string): string {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
    return "it is in UTF-16, not in UTF-8";
  let at = 0;
  for (let from = 0, index = text.indexOf(UNKNOWN); index >= 0; index = text.indexOf(UNKNOWN, from)) {
    at += Buffer.byteLength(text.slice(from, index));
    // Somebody may have written the very character that stands for what is none.
    if (bytes.subarray(at, at + 3).toString("hex") !== "efbfbd") break;
    at += 3;
    from = index + 1;
  }
  const line = bytes.subarray(0, at).toString("latin1").split("\n").length;
  const byte = (bytes[at] ?? 0).toString(16).toUpperCase().padStart(2, "0");
  return `it is not in UTF-8: byte ${at + 1}, in line ${line}, is 0x${byte}`;
}

/** What stands in a text for bytes that are no character. */
const UNKNOWN = "\uFFFD";

function readBytes(path: string, maxBytes: number): Buffer {
  const file = openSync(path, "r");
  try {
    const pieces: Buffer[] = [];
    for (let length = 0; ; ) {
      const piece = Buffer.allocUnsafe(PIECE_BYTES);
      const count = readSync(file, piece);
      if (count === 0) return Buffer.concat(pieces, length);
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
