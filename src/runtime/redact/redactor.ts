// Takes secrets out of a text before anybody sees it: known values in every spelling in which programs print them, and
// tokens in URLs. It is pure: which values are secret is secrets-of.ts.

import { stripVTControlCharacters } from "node:util";
import { REDACTED, redactShapes } from "./safe-url.js";

/** Shorter spellings are not looked for: they occur by chance. Also the length of the index's keys. */
const KEY_CHARACTERS = 4;

/** A shorter value is taken out where it stands alone, not inside of a word. */
const ANYWHERE_CHARACTERS = 8;

/** Base64 is no word, so that less of it is told from text. */
const MIN_BASE64_CHARACTERS = 5;

/**
 * A longer value is looked for in pieces of this length, so that a part of a key file is found as well, and no search
 * is longer than this.
 */
const PIECE_CHARACTERS = 256;

/**
 * So much is looked for: an environment of Linux has 128 KiB a variable, and entries that people write some dozen of
 * them. Of an entry with more, nothing is shown at all.
 */
const MAX_VALUES = 5_000;
const MAX_VALUE_CHARACTERS = 512 * 1024;

/** A character that is escaped has six, in hex two: with every one of them escaped, a value is so much longer. */
const ESCAPED_TO_HEX = 3;

/** What agents read in the place of lines that only an operator may see. */
export const LEFT_OUT = "[left out: it names a secret; `toolway status` shows the rest]";

/** Spellings that begin alike. */
interface Bucket {
  readonly spellings: string[];
  /** Their lengths, the longest first. */
  readonly lengths: number[];
}

export class Redactor {
  /** Knows the values that do not change, or, of one without, those that come and go. */
  #base: Redactor | undefined;
  /** The spellings by their first characters: the time for a text does not grow with the number of values. */
  #buckets = new Map<string, Bucket>();
  /** To each spelling whether it is taken out anywhere, or only where it stands alone. */
  #spellings = new Map<string, boolean>();
  /** Length of the longest spelling. */
  #longest = 0;
  #isOverfull = false;
  /** What is not in the index yet: it is made when the first text comes, for most servers never say a word. */
  #values: Iterable<string> | undefined;

  /** `base` knows the values that do not change, and is shared. */
  constructor(values: Iterable<string>, base?: Redactor) {
    this.#base = base;
    this.#values = values;
  }

  #index(): void {
    if (this.#values === undefined) return;
    const values = this.#values;
    this.#values = undefined;
    let count = 0;
    let characters = 0;
    for (const value of values) {
      count++;
      characters += value.length;
      if (count > MAX_VALUES || characters > MAX_VALUE_CHARACTERS) break;
      for (const piece of piecesOf(printable(value))) {
        for (const spelling of spellingsOf(piece)) this.#learn(spelling, spelling.length >= ANYWHERE_CHARACTERS);
        for (const hex of hexOf(piece)) this.#learn(hex, true);
        for (const core of base64Cores(piece)) if (core.length >= MIN_BASE64_CHARACTERS) this.#learn(core, true);
      }
    }
    this.#isOverfull = count > MAX_VALUES || characters > MAX_VALUE_CHARACTERS;
  }

  /** No secret is found whose piece is longer: where a text was cut, so much of it may be half of one. */
  get longest(): number {
    this.#index();
    return Math.max(this.#longest * ESCAPED_TO_HEX, this.#base?.longest ?? 0);
  }

  get isOverfull(): boolean {
    this.#index();
    return this.#isOverfull || this.#base?.isOverfull === true;
  }

  /** The same, and these values besides: those that a connection learns. */
  with(values: Iterable<string>): Redactor {
    return new Redactor(values, this);
  }

  /** Values that come and go, such as tokens that are renewed: these now, in place of those of the last time. */
  follow(values: Iterable<string>): void {
    this.#base = new Redactor(values);
  }

  /** The same, with the values that it follows as they are now: for a text of now that is looked at later. */
  asOfNow(): Redactor {
    this.#index();
    const same = new Redactor([], this.#base);
    same.#values = undefined;
    same.#buckets = this.#buckets;
    same.#spellings = this.#spellings;
    same.#longest = this.#longest;
    same.#isOverfull = this.#isOverfull;
    return same;
  }

  /**
   * The text as an operator may see it: without escape sequences and control characters (line breaks stay), each
   * secret replaced. `isCut`: the text was longer, and its end may be the first half of a secret.
   */
  redact(text: string, isCut = false): string {
    const plain = printable(text);
    if (this.isOverfull) return plain.trim() === "" ? "" : REDACTED;
    const found: [from: number, to: number][] = [];
    for (let one: Redactor | undefined = this; one !== undefined; one = one.#base) one.#find(plain, isCut, found);
    this.#findUnfolded(plain, isCut, found);
    return redactShapes(replaced(plain, found));
  }

  /** Once more in the text without its line breaks and escapes: a terminal wraps, and some programs escape everything. */
  #findUnfolded(plain: string, isCut: boolean, found: [from: number, to: number][]): void {
    for (const [mark, fold] of FOLDS) {
      // Most texts have no escapes in them, and many no line break.
      if (!plain.includes(mark)) continue;
      const unfolded = unfold(plain, fold);
      if (unfolded === undefined) continue;
      const inside: [from: number, to: number][] = [];
      for (let one: Redactor | undefined = this; one !== undefined; one = one.#base) {
        one.#find(unfolded.text, isCut, inside, true);
      }
      for (const [from, to] of inside) found.push([unfolded.starts[from] ?? 0, unfolded.ends[to - 1] ?? plain.length]);
    }
  }

  /** The text as an agent may see it: without the lines in which something was redacted. */
  forAgents(text: string): string {
    return withoutRedacted(this.redact(text));
  }

  #learn(spelling: string, anywhere: boolean): void {
    if (spelling.length < KEY_CHARACTERS) return;
    this.#longest = Math.max(this.#longest, spelling.length);
    const known = this.#spellings.get(spelling);
    this.#spellings.set(spelling, anywhere || known === true);
    if (known !== undefined) return;
    const key = spelling.slice(0, KEY_CHARACTERS);
    const bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      this.#buckets.set(key, { spellings: [spelling], lengths: [spelling.length] });
      return;
    }
    bucket.spellings.push(spelling);
    if (bucket.lengths.includes(spelling.length)) return;
    bucket.lengths.push(spelling.length);
    bucket.lengths.sort((a, b) => b - a);
  }

  /** Every place is looked at, also inside of what was found: secrets overlap, and no half of one may stay. */
  #find(text: string, isCut: boolean, found: [from: number, to: number][], onlyAnywhere = false): void {
    if (this.#buckets.size === 0) return;
    for (let at = 0; at + KEY_CHARACTERS <= text.length; at++) {
      const bucket = this.#buckets.get(text.slice(at, at + KEY_CHARACTERS));
      if (bucket === undefined) continue;
      const to =
        isCut && endsWithin(text, at, bucket) ? text.length : this.#endOf(text, at, bucket.lengths, onlyAnywhere);
      if (to !== undefined) found.push([at, to]);
    }
  }

  /** Where the longest secret that begins here ends. */
  #endOf(text: string, at: number, lengths: readonly number[], onlyAnywhere: boolean): number | undefined {
    for (const length of lengths) {
      const to = at + length;
      const anywhere = to > text.length ? undefined : this.#spellings.get(text.slice(at, to));
      if (anywhere === true || (anywhere === false && !onlyAnywhere && standsAlone(text, at, to))) return to;
    }
    return undefined;
  }
}

/** Without escape sequences and control characters, which could also stand in the middle of a secret. */
function printable(text: string): string {
  if (/^[ -~\n]*$/.test(text)) return text;
  return stripVTControlCharacters(text)
    .replaceAll("\t", " ")
    .replace(/(?!\n)\p{Cc}/gu, "");
}

/** Words that were wrapped have a line break in the place of a space. */
const SPACES = / *\n */g;

/**
 * A line break with the indent that follows it; and the escapes of JSON, of C, of URLs and of HTML, each by itself: a
 * secret may have in it what looks like one of another kind. With what a text must have in it for each to matter.
 */
const FOLDS: readonly (readonly [mark: string, fold: RegExp])[] = [
  ["\n", SPACES],
  ["\n", /\n */g],
  ["\\", /\n *|\\+[nr]/g],
  ["\\u", /\n *|\\+u([\da-fA-F]{4})/g],
  ["\\x", /\n *|\\+x([\da-fA-F]{2})/g],
  ["%", /\n *|%([\da-fA-F]{2})/g],
  ["&#", /\n *|&#(?:x([\da-fA-F]{1,6})|(\d{1,7}));/g],
];
const LAST_CODE = 0x10ffff;

/** A text without them, and where each of its characters begins and ends in the text as it was. */
interface Unfolded {
  readonly text: string;
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

/** Undefined where there is nothing to unfold. */
function unfold(text: string, fold: RegExp): Unfolded | undefined {
  const starts: number[] = [];
  const ends: number[] = [];
  let out = "";
  let at = 0;
  const keep = (to: number) => {
    out += text.slice(at, to);
    for (; at < to; at++) {
      starts.push(at);
      ends.push(at + 1);
    }
  };
  for (const { 0: whole, 1: hex = "", 2: decimal, index } of text.matchAll(fold)) {
    keep(index);
    const code = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
    at = index + whole.length;
    const isBreak = Number.isNaN(code) || code > LAST_CODE;
    if (isBreak && fold !== SPACES) continue;
    const character = isBreak ? " " : String.fromCodePoint(code);
    for (let unit = 0; unit < character.length; unit++) {
      starts.push(index);
      ends.push(at);
    }
    out += character;
  }
  if (at === 0) return undefined;
  keep(text.length);
  return { text: out, starts, ends };
}

/** True where the rest of the text is the beginning of a secret. */
function endsWithin(text: string, at: number, { lengths, spellings }: Bucket): boolean {
  if (text.length - at >= (lengths[0] ?? 0)) return false;
  const rest = text.slice(at);
  return spellings.some((spelling) => spelling.startsWith(rest));
}

function standsAlone(text: string, from: number, to: number): boolean {
  const isPartOfWord = (character: string | undefined) => character !== undefined && /[\p{L}\p{N}]/u.test(character);
  return !isPartOfWord(text[from - 1]) && !isPartOfWord(text[to]);
}

/** What touches or overlaps becomes one mark. */
function replaced(text: string, found: [from: number, to: number][]): string {
  if (found.length === 0) return text;
  found.sort(([a], [b]) => a - b);
  let out = "";
  let shown = 0;
  let [from, to] = found[0] as [number, number];
  for (const [nextFrom, nextTo] of found) {
    if (nextFrom > to) {
      out += text.slice(shown, from) + REDACTED;
      shown = to;
      from = nextFrom;
    }
    to = Math.max(to, nextTo);
  }
  return out + text.slice(shown, from) + REDACTED + text.slice(to);
}

/** Takes out the lines in which something was redacted; where no line is left, says so. */
export function withoutRedacted(text: string): string {
  if (!isRedacted(text)) return text;
  const kept = text.split("\n").filter((line) => !isRedacted(line));
  return kept.some((line) => line.trim() !== "") ? kept.join("\n") : LEFT_OUT;
}

export function isRedacted(line: string): boolean {
  return line.includes(REDACTED);
}

function* piecesOf(value: string): Generator<string> {
  for (let at = 0; at + PIECE_CHARACTERS < value.length; at += PIECE_CHARACTERS) {
    yield value.slice(at, at + PIECE_CHARACTERS);
  }
  yield value.slice(-PIECE_CHARACTERS);
}

/** The same in JSON, URLs and forms. Most keys are so, and an entry may have thousands. */
const PLAIN = /^[\w.~-]+$/;

/** How programs print a value, besides in base64: as it is, in JSON, in a URL or a form. */
function spellingsOf(value: string): Iterable<string> {
  if (PLAIN.test(value)) return [value];
  const url = encoded(value);
  const spellings = new Set([value, JSON.stringify(value).slice(1, -1), url]);
  // JSON in JSON, as in a logged body.
  spellings.add(JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1));
  spellings.add(url.replace(/%[\dA-F]{2}/g, (byte) => byte.toLowerCase()));
  spellings.add(url.replaceAll("%20", "+"));
  return spellings;
}

/** In small letters and in capitals: nobody mixes them. */
function* hexOf(value: string): Generator<string> {
  const hex = Buffer.from(value).toString("hex");
  yield hex;
  const capitals = hex.toUpperCase();
  if (capitals !== hex) yield capitals;
}

/**
 * The characters of base64 that this value alone decides, for each of the three places at which it may begin. So it is
 * found in the encoding of `user:value`, whoever the user is.
 */
function* base64Cores(value: string): Generator<string> {
  const length = Buffer.byteLength(value);
  for (let before = 0; before < 3; before++) {
    const text = Buffer.from("\0".repeat(before) + value).toString("base64");
    const core = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + length) * 8) / 6));
    yield core;
    // The alphabet of URLs.
    if (/[+/]/.test(core)) yield core.replaceAll("+", "-").replaceAll("/", "_");
  }
}

/** A lone half of a surrogate pair cannot be encoded, and is in no URL. */
function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}
