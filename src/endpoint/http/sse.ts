// Server-sent events as bytes. Knows no sessions and no JSON-RPC beyond that a JSON text may stand on one line.

import { Transform, type TransformCallback } from "node:stream";

const LF = 0x0a;
const CR = 0x0d;
const SPACE = 0x20;

/** How long a client waits before it comes back, where it honours `retry`: soon, without hammering. */
const RETRY_MS = 1000;

export const KEEP_ALIVE = ": keep-alive\n\n";

export const EVENT_STREAM_HEADERS: readonly string[] = [
  "Content-Type",
  "text/event-stream",
  "Cache-Control",
  "no-cache, no-transform",
  // Tells nginx not to gather events before it passes them on.
  "X-Accel-Buffering",
  "no",
];

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

/** What stands before a message in its event; behind it come EVENT_END. */
export function eventHead(id: string | undefined): string {
  return id === undefined ? "event: message\ndata: " : `event: message\nid: ${id}\ndata: `;
}

export const EVENT_END = "\n\n";

export function messageEvent(id: string | undefined, text: string): string {
  return eventHead(id) + oneLine(text) + EVENT_END;
}

/** The event that makes a stream resumable before its first message. */
export function primingEvent(id: string): string {
  return `id: ${id}\nretry: ${RETRY_MS}\ndata: \n\n`;
}

/** For replies that are streamed into an event or onto a line. */
export class OneLine extends Transform {
  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    done(null, oneLineBytes(chunk));
  }
}
