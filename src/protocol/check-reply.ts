// Whether a server's reply may be passed on: what an agent's parser reads as its id must be the id that we put there,
// and it must be an answer and nothing else. Short replies are parsed; of long ones the outside is judged, and what is
// inside a value is for its reader.

import { isUtf8 } from "node:buffer";
import { CLOSE_BRACE, QUOTE } from "./bytes/codes.js";
import { plainAnswer } from "./bytes/plain-answer.js";
import { MemberWalk, mayNameIdOrMethod } from "./bytes/scan-bytes.js";
import { isObject } from "./jsonrpc.js";
import { MAX_MEMBERS } from "./message.js";
import type { Anchor } from "./reply-id.js";

/** Up to here a reply is parsed: it costs next to nothing. */
export const PARSED_REPLY_BYTES = 4096;

/** What is at least held back of a reply that streams, until all of it was judged: a cut reply must not look whole. */
export const HELD_BACK_BYTES = 128;

/** Names that mean something in an answer, in whatever letters, or spelt with escapes. */
const NAMES = /"(?:id|method|result|error)"|\\u00[4-7]/gi;
/** In an answer as it should be, the id and one of `result` and `error`; one more is a reason to look closer. */
const NAMES_IN_AN_ANSWER = 2;

const NOT_JSON = "is no JSON";
/** Every JSON-RPC message says which version it is of; an agent would drop one that does not, and wait. */
const NO_VERSION = 'has no "jsonrpc": "2.0"';
const NOT_UTF8 = "is no UTF-8";
/** A request has one, and an answer has none. */
export const HAS_METHOD = 'has a "method"';

interface ShortVerdict {
  /** What is wrong with it, as the end of a sentence; undefined where nothing is. */
  readonly flaw: string | undefined;
  /** It is a result that does not say that it failed. Where it is false, that is not known. */
  readonly succeeded: boolean;
}

/** Nearly all replies are the first, and no verdict is made for them. */
const SUCCEEDED: ShortVerdict = { flaw: undefined, succeeded: true };
const PASSABLE: ShortVerdict = { flaw: undefined, succeeded: false };

/**
 * What a short reply is. `text` is the reply, a character a byte: what needs several bytes in UTF-8 stands in strings only, so
 * the verdict is the same.
 */
export function judgeShort(bytes: Uint8Array, text: string): ShortVerdict {
  const plain = plainAnswer(text);
  if (plain !== undefined && (plain.isAscii || isUtf8(bytes))) return plain.maySayFailed ? PASSABLE : SUCCEEDED;
  const flaw = plain === undefined ? flawOfOther(bytes, text) : NOT_UTF8;
  return flaw === undefined ? PASSABLE : { flaw, succeeded: false };
}

function flawOfOther(bytes: Uint8Array, text: string): string | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NOT_JSON;
  }
  if (!isObject(value)) return "is no object";
  if (!isUtf8(bytes)) return NOT_UTF8;
  const { jsonrpc, result, error } = value;
  if (jsonrpc !== "2.0") return NO_VERSION;
  if ("result" in value === "error" in value) return 'has not one of "result" and "error"';
  if (error === undefined) {
    if (!isObject(result)) return 'has a "result" that is no object';
  } else if (!isObject(error) || typeof error["code"] !== "number" || typeof error["message"] !== "string") {
    return 'has an "error" without a code and a message';
  }
  if ("method" in value) return HAS_METHOD;
  return isNamedAgain(text) ? flawOfMembers([bytes]) : undefined;
}

function isNamedAgain(text: string): boolean {
  NAMES.lastIndex = 0;
  let seen = 0;
  while (NAMES.test(text)) if (++seen > NAMES_IN_AN_ANSWER) return true;
  return false;
}

/**
 * What is wrong with a long reply, whose id was found. `pieces` are all of it, and the id's member is in one of them.
 */
export function flawOfLong(pieces: readonly Buffer[], { idStart, idEnd }: Anchor): string | undefined {
  if (lastByteOf(pieces) !== CLOSE_BRACE) return NOT_JSON;
  if (!areUtf8(pieces)) return NOT_UTF8;
  // With the id at the head, the version stands beside it: the anchor has seen it.
  if (idStart > ENDS_BYTES && !isVersionAtEnds(pieces)) return flawOfMembers(pieces);
  return mayNameIdOrMethod(withoutId(pieces, idStart, idEnd)) ? flawOfMembers(pieces) : undefined;
}

/** As much as an anchor looks at. */
const ENDS_BYTES = 128;

function isVersionAtEnds(pieces: readonly Buffer[]): boolean {
  const [head, tail] = [pieces[0], pieces.at(-1)];
  if (head === undefined || tail === undefined) return false;
  const ends = head.toString("latin1", 0, ENDS_BYTES) + tail.toString("latin1", Math.max(0, tail.length - ENDS_BYTES));
  return VERSION.test(ends);
}

const VERSION = /"jsonrpc"\s*:\s*"2\.0"/;

function flawOfMembers(pieces: readonly Uint8Array[]): string | undefined {
  const check = new MemberCheck();
  for (const piece of pieces) check.push(piece);
  return check.flaw();
}

/** The members of a message as they come: exactly one id, one of result and error, no method. */
export class MemberCheck {
  #ids = 0;
  #answers = 0;
  #methods = 0;
  #versions = 0;
  #members = 0;
  readonly #walk = new MemberWalk((name) => {
    this.#members++;
    // Some readers do not tell capitals from small letters; to them two such names are one.
    const folded = name?.toUpperCase();
    if (folded === "ID") this.#ids++;
    else if (folded === "RESULT" || folded === "ERROR") this.#answers++;
    else if (folded === "METHOD") this.#methods++;
    else if (folded === "JSONRPC") this.#versions++;
  });

  /** False once it is certain that the message is none that may be passed on. */
  push(piece: Uint8Array): boolean {
    this.#walk.push(piece);
    const { hasMore } = this.#walk;
    return this.#ids <= 1 && this.#answers <= 1 && this.#methods === 0 && this.#members <= MAX_MEMBERS && !hasMore;
  }

  /** The message has ended; white space may follow. */
  get isClosed(): boolean {
    return this.#walk.isClosed;
  }

  /** To be asked when all of it has come. */
  flaw(): string | undefined {
    if (this.#ids !== 1) return `has ${this.#ids} members "id"`;
    if (this.#methods > 0) return HAS_METHOD;
    if (this.#answers !== 1) return 'has not one of "result" and "error"';
    if (this.#members > MAX_MEMBERS) return `has more than ${MAX_MEMBERS} members`;
    if (this.#versions === 0 && this.#walk.isWhole) return NO_VERSION;
    return this.#walk.isWhole ? undefined : NOT_JSON;
  }
}

/**
 * Whether a request or notification of a server could be read as an answer too, or has a name in two spellings: readers
 * differ in which of them they heed.
 */
export function isAmbiguous(members: readonly { readonly key: string }[]): boolean {
  const names = members.map(({ key }) => key.toUpperCase());
  return names.some((name, i) => isNameOfAnswer(name) || names.indexOf(name) !== i);
}

/** Some readers do not tell capitals from small letters. */
export function isNameOfAnswer(name: string): boolean {
  return /^(?:result|error)$/i.test(name);
}

/** The last byte that is no white space. */
export function lastByteOf(pieces: readonly Buffer[]): number | undefined {
  for (let i = pieces.length - 1; i >= 0; i--) {
    const piece = pieces[i] as Buffer;
    for (let at = piece.length - 1; at >= 0; at--) {
      const c = piece[at] as number;
      if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return c;
    }
  }
  return undefined;
}

/** A character of UTF-8 may stand across the border of two pieces. */
export class Utf8Check {
  #rest: Buffer = Buffer.alloc(0);

  push(piece: Buffer): boolean {
    let start = 0;
    if (this.#rest.length > 0) {
      const need = lengthOfCharacter(this.#rest[0] as number);
      const taken = Math.min(need - this.#rest.length, piece.length);
      this.#rest = Buffer.concat([this.#rest, piece.subarray(0, taken)]);
      if (this.#rest.length < need) return true;
      if (!isUtf8(this.#rest)) return false;
      start = taken;
    }
    const end = endOfWhole(piece, start);
    this.#rest = piece.subarray(end);
    return isUtf8(start === 0 && end === piece.length ? piece : piece.subarray(start, end));
  }

  get isWhole(): boolean {
    return this.#rest.length === 0;
  }
}

function areUtf8(pieces: readonly Buffer[]): boolean {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return isUtf8(only);
  const check = new Utf8Check();
  return pieces.every((piece) => check.push(piece)) && check.isWhole;
}

/** Of a character, by its first byte; 1 where it is no first byte, so that it is judged at once. */
function lengthOfCharacter(first: number): number {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

/** Where the last character begins that is not whole; the end of the piece where all are. */
function endOfWhole(piece: Buffer, start: number): number {
  for (let back = 1; back <= 3 && piece.length - back >= start; back++) {
    const c = piece[piece.length - back] as number;
    if (c < 0x80) return piece.length;
    if (c >= 0xc0) return lengthOfCharacter(c) > back ? piece.length - back : piece.length;
  }
  return piece.length;
}

/** All that stands before the name of the id and behind its value. */
function withoutId(pieces: readonly Buffer[], idStart: number, idEnd: number): Buffer[] {
  const out: Buffer[] = [];
  let at = 0;
  for (const piece of pieces) {
    if (idStart < at || idStart >= at + piece.length) out.push(piece);
    else {
      // Back over white space and the colon, to the quote that ends `"id"`.
      const nameEnd = piece.lastIndexOf(QUOTE, idStart - at);
      out.push(piece.subarray(0, Math.max(0, nameEnd - NAME_OF_ID)), piece.subarray(idEnd - at));
    }
    at += piece.length;
  }
  return out;
}

/** From its first quote to its last. */
const NAME_OF_ID = '"id"'.length - 1;
