// Knows the answers that nearly all servers write, in one walk over their characters, without making anything of them: a
// version, an id, a result that is an object, and nothing else beside them. What it does not know is not wrong, but for
// JSON.parse and a closer look.

import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  NINE,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  ZERO,
} from "./codes.js";

const MINUS = 0x2d;
const PLUS = 0x2b;
const DOT = 0x2e;
const LETTER_E = 0x65;
const LETTER_I = 0x69;
const LETTER_J = 0x6a;
const LETTER_U = 0x75;

/** What tools' results say that they are where they failed. */
const IS_ERROR = '"isError"';
/** What is nested deeper is for JSON.parse: results seldom are. */
const MAX_DEPTH = 64;
/** Where the walk found what it does not know. */
const UNKNOWN = -1;
/** The characters that stand for themselves, or for a control character, behind a backslash. */
const ESCAPES = '"\\/bfnrt';

/** All characters of the strings that were walked over, by OR: tells whether one is beyond ASCII. */
let bits = 0;
/** Whether one of them was `isError`, as a name or as a value, or may be one that is spelt with escapes. */
let maySayFailed = false;

/** An answer as it should be, whose result is an object. */
export interface PlainAnswer {
  /** Where it is not, it is one only if its bytes are UTF-8. */
  readonly isAscii: boolean;
  /** Something in it may be called `isError`: whether it failed is to be found out otherwise. Where it is false, it did not. */
  readonly maySayFailed: boolean;
}

/** One for each kind of them, so that none is made for an answer. */
const PLAIN: readonly PlainAnswer[] = [0, 1, 2, 3].map((n) => ({
  isAscii: (n & 1) !== 0,
  maySayFailed: (n & 2) !== 0,
}));

/** What `text`, a character a byte, is. Undefined where that is to be found out otherwise. */
export function plainAnswer(text: string): PlainAnswer | undefined {
  bits = 0;
  maySayFailed = false;
  let hasVersion = false;
  let hasId = false;
  let hasResult = false;
  let at = skipSpace(text, 0);
  if (text.charCodeAt(at) !== OPEN_BRACE) return undefined;
  do {
    at = skipSpace(text, at + 1);
    const first = text.charCodeAt(at + 1);
    // Names are compared as they are written: one that is spelt otherwise is not known here.
    if (first === LETTER_J) {
      const start = startOfValue(text, at, '"jsonrpc"');
      if (hasVersion || start < 0 || !text.startsWith('"2.0"', start)) return undefined;
      hasVersion = true;
      at = start + '"2.0"'.length;
    } else if (first === LETTER_I) {
      const start = startOfValue(text, at, '"id"');
      if (hasId || start < 0) return undefined;
      hasId = true;
      at = skipValue(text, start, 0);
    } else {
      const start = startOfValue(text, at, '"result"');
      if (hasResult || start < 0 || text.charCodeAt(start) !== OPEN_BRACE) return undefined;
      hasResult = true;
      at = skipValue(text, start, 0);
    }
    if (at < 0) return undefined;
    at = skipSpace(text, at);
  } while (text.charCodeAt(at) === COMMA);
  if (text.charCodeAt(at) !== CLOSE_BRACE || skipSpace(text, at + 1) !== text.length) return undefined;
  if (!hasVersion || !hasId || !hasResult) return undefined;
  return PLAIN[(bits < 0x80 ? 1 : 0) + (maySayFailed ? 2 : 0)];
}

/** Where the value of the member begins whose name is at `at`. */
function startOfValue(text: string, at: number, name: string): number {
  if (!text.startsWith(name, at)) return UNKNOWN;
  const colon = skipSpace(text, at + name.length);
  return text.charCodeAt(colon) === COLON ? skipSpace(text, colon + 1) : UNKNOWN;
}

function skipSpace(text: string, at: number): number {
  let i = at;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i;
    i++;
  }
}

/** The index behind the value that begins at `at`. */
function skipValue(text: string, at: number, depth: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first === OPEN_BRACE) return depth < MAX_DEPTH ? skipObject(text, at, depth + 1) : UNKNOWN;
  if (first === OPEN_BRACKET) return depth < MAX_DEPTH ? skipArray(text, at, depth + 1) : UNKNOWN;
  if (first === MINUS || isDigit(first)) return skipNumber(text, at);
  if (text.startsWith("true", at) || text.startsWith("null", at)) return at + 4;
  return text.startsWith("false", at) ? at + 5 : UNKNOWN;
}

function skipObject(text: string, at: number, depth: number): number {
  let i = skipSpace(text, at + 1);
  if (text.charCodeAt(i) === CLOSE_BRACE) return i + 1;
  for (;;) {
    if (text.charCodeAt(i) !== QUOTE) return UNKNOWN;
    i = skipString(text, i);
    if (i < 0) return UNKNOWN;
    i = skipSpace(text, i);
    if (text.charCodeAt(i) !== COLON) return UNKNOWN;
    i = skipValue(text, skipSpace(text, i + 1), depth);
    if (i < 0) return UNKNOWN;
    i = skipSpace(text, i);
    const c = text.charCodeAt(i);
    if (c === CLOSE_BRACE) return i + 1;
    if (c !== COMMA) return UNKNOWN;
    i = skipSpace(text, i + 1);
  }
}

function skipArray(text: string, at: number, depth: number): number {
  let i = skipSpace(text, at + 1);
  if (text.charCodeAt(i) === CLOSE_BRACKET) return i + 1;
  for (;;) {
    i = skipValue(text, i, depth);
    if (i < 0) return UNKNOWN;
    i = skipSpace(text, i);
    const c = text.charCodeAt(i);
    if (c === CLOSE_BRACKET) return i + 1;
    if (c !== COMMA) return UNKNOWN;
    i = skipSpace(text, i + 1);
  }
}

function skipString(text: string, at: number): number {
  let seen = 0;
  for (let i = at + 1; i < text.length; i++) {
    const c = text.charCodeAt(i);
    seen |= c;
    if (c === QUOTE) {
      bits |= seen;
      if (i - at === IS_ERROR.length - 1 && text.startsWith(IS_ERROR, at)) maySayFailed = true;
      return i + 1;
    }
    if (c < 0x20) return UNKNOWN;
    if (c !== BACKSLASH) continue;
    i++;
    if (text.charCodeAt(i) === LETTER_U) {
      maySayFailed = true;
      for (const end = i + 4; i < end; i++) if (!isHex(text.charCodeAt(i + 1))) return UNKNOWN;
    } else if (i >= text.length || !ESCAPES.includes(text[i] as string)) return UNKNOWN;
  }
  return UNKNOWN;
}

function skipNumber(text: string, at: number): number {
  let i = text.charCodeAt(at) === MINUS ? at + 1 : at;
  if (text.charCodeAt(i) === ZERO) i++;
  else i = skipDigits(text, i);
  if (i > 0 && text.charCodeAt(i) === DOT) i = skipDigits(text, i + 1);
  // An E is an e without its bit for small letters.
  if (i > 0 && (text.charCodeAt(i) | 0x20) === LETTER_E) {
    const sign = text.charCodeAt(i + 1);
    i = skipDigits(text, sign === MINUS || sign === PLUS ? i + 2 : i + 1);
  }
  return i;
}

/** At least one. */
function skipDigits(text: string, at: number): number {
  let i = at;
  while (isDigit(text.charCodeAt(i))) i++;
  return i === at ? UNKNOWN : i;
}

function isDigit(c: number): boolean {
  return c >= ZERO && c <= NINE;
}

function isHex(c: number): boolean {
  const small = c | 0x20;
  return isDigit(c) || (small >= 0x61 && small <= 0x66);
}
