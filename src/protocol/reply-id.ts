// Finds the id of a response, however large, without parsing it, by an anchored match on the head, or on head and tail, and exchanges
// it in a reply that still arrives. Only ids of ours (decimal integers) are found; whatever does not match is for
// JSON.parse.

import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import { NINE, ZERO } from "./bytes/codes.js";
import { Fault } from "./errors.js";
import type { StreamReply } from "./reply.js";

export interface Anchor {
  readonly id: number;
  /** Of the id, in bytes: [idStart, idEnd). */
  readonly idStart: number;
  readonly idEnd: number;
}

/** The longest head or tail that we look at: the fixed words are 45 bytes, the id up to 15, the rest is white space. */
const WINDOW = 128;

const VERSION = String.raw`"jsonrpc"\s*:\s*"2\.0"\s*,\s*`;
const ID = String.raw`"id"\s*:\s*(\d{1,15})\s*`;

// `result` or `error` must follow at once: a request has `method` there, and an id of the peer's own.
const HEAD = new RegExp(String.raw`^\s*\{\s*(?:${VERSION}${ID},\s*|${ID},\s*${VERSION})"(?:result|error)"\s*:`, "d");
const BARE_HEAD = new RegExp(String.raw`^\s*\{\s*(?:${VERSION})?"(?:result|error)"\s*:`);
// The last brace closes the message, so a member right before it is the message's own, at whatever depth the rest is.
const TAIL = new RegExp(String.raw`,\s*${ID}(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$`, "d");

/** How nearly every server writes it: the SDKs' JSON.stringify. Found by hand, the patterns are for the others. */
const PLAIN_HEAD = Buffer.from('{"jsonrpc":"2.0","id":');
const PLAIN_RESULT = Buffer.from(',"result":');
const PLAIN_ERROR = Buffer.from(',"error":');
const PLAIN_RESULT_FIRST = Buffer.from('{"result":');
const ID_DIGITS = 15;

function plainAnchor(bytes: Buffer): Anchor | undefined {
  if (!startsAt(bytes, 0, PLAIN_HEAD)) return undefined;
  const idStart = PLAIN_HEAD.length;
  let id = 0;
  let idEnd = idStart;
  for (; idEnd < idStart + ID_DIGITS; idEnd++) {
    const digit = bytes[idEnd];
    if (digit === undefined || digit < ZERO || digit > NINE) break;
    id = id * 10 + digit - ZERO;
  }
  if (idEnd === idStart) return undefined;
  return startsAt(bytes, idEnd, PLAIN_RESULT) || startsAt(bytes, idEnd, PLAIN_ERROR)
    ? { id, idStart, idEnd }
    : undefined;
}

function startsAt(bytes: Buffer, at: number, words: Buffer): boolean {
  for (let i = 0; i < words.length; i++) if (bytes[at + i] !== words[i]) return false;
  return true;
}

export function findAnchor(bytes: Buffer): Anchor | undefined {
  const plain = plainAnchor(bytes);
  if (plain !== undefined) return plain;
  if (startsAt(bytes, 0, PLAIN_RESULT_FIRST)) return findTail(bytes);
  const head = bytes.toString("latin1", 0, WINDOW);
  return anchorAt(HEAD.exec(head), 0) ?? (BARE_HEAD.test(head) ? findTail(bytes) : undefined);
}

/**
 * The same in what came in pieces; the first and the last of them are made long enough to hold an anchor, in the list
 * itself. So the id stands in one of those two.
 */
export function findAnchorIn(pieces: Buffer[]): Anchor | undefined {
  while (pieces.length > 1 && (pieces[0] as Buffer).length < WINDOW)
    pieces.splice(0, 2, Buffer.concat(pieces.slice(0, 2)));
  while (pieces.length > 1 && (pieces.at(-1) as Buffer).length < WINDOW) pieces.push(Buffer.concat(pieces.splice(-2)));
  const [first, last] = [pieces[0], pieces.at(-1)];
  if (first === undefined || last === undefined) return undefined;
  const plain = plainAnchor(first);
  if (plain !== undefined || first === last) return plain ?? findAnchor(first);
  const head = first.toString("latin1", 0, WINDOW);
  const found = anchorAt(HEAD.exec(head), 0);
  if (found !== undefined || !BARE_HEAD.test(head)) return found;
  const tail = findTail(last);
  if (tail === undefined) return undefined;
  let before = 0;
  for (let i = 0; i < pieces.length - 1; i++) before += (pieces[i] as Buffer).length;
  return { id: tail.id, idStart: before + tail.idStart, idEnd: before + tail.idEnd };
}

function findTail(bytes: Buffer): Anchor | undefined {
  const from = Math.max(0, bytes.length - WINDOW);
  return anchorAt(TAIL.exec(bytes.toString("latin1", from)), from);
}

function anchorAt(match: RegExpExecArray | null, offset: number): Anchor | undefined {
  const span = match?.indices?.[1] ?? match?.indices?.[2];
  if (match === null || span === undefined) return undefined;
  return { id: Number(match[1] ?? match[2]), idStart: offset + span[0], idEnd: offset + span[1] };
}

/**
 * A reply to `id` whose bytes are still arriving. `head` is its beginning, long enough to hold the anchor (WINDOW bytes);
 * undefined where the id can stand neither at the head nor at the tail, `other-id` where it is another. `length`: of all
 * of it, where it is known.
 */
export function largeReply(
  head: Buffer,
  rest: Readable,
  id: number,
  length?: number,
): StreamReply | "other-id" | undefined {
  const words = head.toString("latin1", 0, WINDOW);
  const anchor = anchorAt(HEAD.exec(words), 0);
  if (anchor === undefined && !BARE_HEAD.test(words)) return undefined;
  if (anchor === undefined) return { kind: "stream", open: (idText) => spliceTail(head, rest, id, idText) };
  if (anchor.id !== id) return "other-id";
  const { idStart, idEnd } = anchor;
  const reply: StreamReply = { kind: "stream", open: (idText) => spliceHead(head, rest, anchor, idText) };
  if (length !== undefined) reply.size = (idText) => length - (idEnd - idStart) + Buffer.byteLength(idText);
  return reply;
}

/** The stream itself, with the head put back into it. */
function spliceHead(head: Buffer, rest: Readable, { idStart, idEnd }: Anchor, idText: string): Readable {
  if (rest.destroyed) return rest;
  rest.unshift(head.subarray(idEnd));
  rest.unshift(Buffer.from(head.toString("latin1", 0, idStart) + idText));
  return rest;
}

function spliceTail(head: Buffer, rest: Readable, id: number, idText: string): Readable {
  // Whichever of them breaks off or is abandoned takes the other with it.
  return pipeline(rest, new TailSplice(head, id, idText), () => {});
}

/** Holds back the last WINDOW bytes, since the id stands there. */
class TailSplice extends Transform {
  #held: Buffer;
  readonly #id: number;
  readonly #idText: string;

  constructor(head: Buffer, id: number, idText: string) {
    super();
    this.#held = head;
    this.#id = id;
    this.#idText = idText;
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    if (chunk.length >= WINDOW) {
      const held = this.#held;
      this.#held = chunk;
      done(null, held);
      return;
    }
    const joined = Buffer.concat([this.#held, chunk]);
    const keep = Math.max(0, joined.length - WINDOW);
    this.#held = joined.subarray(keep);
    done(null, joined.subarray(0, keep));
  }

  override _flush(done: TransformCallback): void {
    const held = this.#held;
    const anchor = findTail(held);
    if (anchor === undefined) {
      done(new Fault("protocol", "The server's answer ended without an id where one can be."));
      return;
    }
    // What is held back never goes out, so that nobody takes the answer for whole.
    if (anchor.id !== this.#id) {
      done(new Fault("protocol", "The server's answer ended with the id of another call."));
      return;
    }
    this.push(held.subarray(0, anchor.idStart));
    this.push(Buffer.from(this.#idText));
    done(null, held.subarray(anchor.idEnd));
  }
}
