// Puts JSON texts on one line, as stdio and event streams need them.

import { Transform, type TransformCallback } from "node:stream";

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** Raw line ends in a JSON text are white space; in an event they would end the line. */
export function oneLine(text: string): string {
  return text.includes("\n") || text.includes("\r") ? text.replace(/[\r\n]/g, " ") : text;
}

/** As oneLine. The bytes are copied only where there is something to replace. */
export function oneLineBytes(bytes: Buffer): Buffer {
  if (!bytes.includes(LF) && !bytes.includes(CR)) return bytes;
  const copy = Buffer.from(bytes);
  blankLineEnds(copy);
  return copy;
}

function blankLineEnds(bytes: Buffer): void {
  for (let i = bytes.indexOf(LF); i >= 0; i = bytes.indexOf(LF, i + 1)) bytes[i] = SPACE;
  for (let i = bytes.indexOf(CR); i >= 0; i = bytes.indexOf(CR, i + 1)) bytes[i] = SPACE;
}

/** For replies that are streamed into an event or onto a line. */
export class OneLine extends Transform {
  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, oneLineBytes(chunk));
  }
}
