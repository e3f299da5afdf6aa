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
const MAX_VALUES = 10_000;
const MAX_VALUE_CHARACTERS = 512 * 1024;

/** What agents read in the place of lines that only an operator may see. */
export const LEFT_OUT = "[left out: it names a secret; `toolway status` shows the rest]";

interface Bucket {
  /** The lengths of the spellings that begin alike, the longest first. */
  readonly lengths: number[];
  /** To each whether it is taken out anywhere, or only where it stands alone. */
  readonly spellings: Map<string, boolean>;
}

export class Redactor {
  readonly #base: Redactor | undefined;
  /** The spellings by their first characters: the time for a text does not grow with the number of values. */
  readonly #buckets = new Map<string, Bucket>();
  /** Length of the longest spelling. */
  #longest: number;
  readonly #isOverfull: boolean;

  /** `base` knows the values that do not change, and is shared. */
  constructor(values: Iterable<string>, base?: Redactor) {
    this.#base = base;
    this.#longest = base?.longest ?? 0;
    let count = 0;
    let characters = 0;
    for (const value of values) {
      count++;
      characters += value.length;
      if (count > MAX_VALUES || characters > MAX_VALUE_CHARACTERS) break;
      for (const piece of piecesOf(printable(value))) {
        for (const spelling of spellingsOf(piece)) this.#learn(spelling, spelling.length >= ANYWHERE_CHARACTERS);
        for (const core of base64Cores(piece)) if (core.length >= MIN_BASE64_CHARACTERS) this.#learn(core, true);
      }
    }
    this.#isOverfull = count > MAX_VALUES || characters > MAX_VALUE_CHARACTERS || base?.isOverfull === true;
  }

  /** No secret is found whose piece is longer: where a text was cut, so much of it may be half of one. */
  get longest(): number {
    return this.#longest;
  }

  get isOverfull(): boolean {
    return this.#isOverfull;
  }

  /** The same, and these values besides: those that a connection learns. */
  with(values: Iterable<string>): Redactor {
    return new Redactor(values, this);
  }

  /**
   * The text as an operator may see it: without escape sequences and control characters (line breaks stay), each
   * secret replaced. `isCut`: the text was longer, and its end may be the first half of a secret.
   */
  redact(text: string, isCut = false): string {
    const plain = printable(text);
    if (this.#isOverfull) return plain.trim() === "" ? "" : REDACTED;
    const found: [from: number, to: number][] = [];
    for (let one: Redactor | undefined = this; one !== undefined; one = one.#base) one.#find(plain, isCut, found);
    return redactShapes(replaced(plain, found));
  }

  /** The text as an agent may see it: without the lines in which something was redacted. */
  forAgents(text: string): string {
    return withoutRedacted(this.redact(text));
  }

  #learn(spelling: string, anywhere: boolean): void {
    if (spelling.length < KEY_CHARACTERS) return;
    this.#longest = Math.max(this.#longest, spelling.length);
    const key = spelling.slice(0, KEY_CHARACTERS);
    let bucket = this.#buckets.get(key);
    if (bucket === undefined) {
      bucket = { lengths: [], spellings: new Map() };
      this.#buckets.set(key, bucket);
    }
    bucket.spellings.set(spelling, anywhere || bucket.spellings.get(spelling) === true);
    if (bucket.lengths.includes(spelling.length)) return;
    bucket.lengths.push(spelling.length);
    bucket.lengths.sort((a, b) => b - a);
  }

  /** Every place is looked at, also inside of what was found: secrets overlap, and no half of one may stay. */
  #find(text: string, isCut: boolean, found: [from: number, to: number][]): void {
    if (this.#buckets.size === 0) return;
    for (let at = 0; at + KEY_CHARACTERS <= text.length; at++) {
      const bucket = this.#buckets.get(text.slice(at, at + KEY_CHARACTERS));
      if (bucket === undefined) continue;
      const to = isCut && endsWithin(text, at, bucket) ? text.length : endOf(text, at, bucket);
      if (to !== undefined) found.push([at, to]);
    }
  }
}

/** Without escape sequences and control characters, which could also stand in the middle of a secret. */
function printable(text: string): string {
  return stripVTControlCharacters(text)
    .replaceAll("\t", " ")
    .replace(/(?!\n)\p{Cc}/gu, "");
}

/** Where the longest secret that begins here ends. */
function endOf(text: string, at: number, { lengths, spellings }: Bucket): number | undefined {
  for (const length of lengths) {
    const to = at + length;
    const anywhere = to > text.length ? undefined : spellings.get(text.slice(at, to));
    if (anywhere !== undefined && (anywhere || standsAlone(text, at, to))) return to;
  }
  return undefined;
}

/** True where the rest of the text is the beginning of a secret. */
function endsWithin(text: string, at: number, { lengths, spellings }: Bucket): boolean {
  if (text.length - at >= (lengths[0] ?? 0)) return false;
  const rest = text.slice(at);
  for (const spelling of spellings.keys()) if (spelling.startsWith(rest)) return true;
  return false;
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

/** How programs print a value, besides in base64: as it is, in JSON, in a URL or a form. */
function spellingsOf(value: string): Set<string> {
  const url = encoded(value);
  const spellings = new Set([value, JSON.stringify(value).slice(1, -1), url]);
  // JSON in JSON, as in a logged body.
  spellings.add(JSON.stringify(JSON.stringify(value).slice(1, -1)).slice(1, -1));
  spellings.add(url.replace(/%[\dA-F]{2}/g, (byte) => byte.toLowerCase()));
  spellings.add(url.replaceAll("%20", "+"));
  return spellings;
}

/**
 * The characters of base64 that this value alone decides, for each of the three places at which it may begin. So it is
 * found in the encoding of `user:value`, whoever the user is.
 */
function base64Cores(value: string): string[] {
  const bytes = Buffer.from(value);
  return [0, 1, 2].flatMap((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
    const from = Math.ceil((before * 8) / 6);
    const to = Math.floor(((before + bytes.length) * 8) / 6);
    const core = text.slice(from, to);
    return [core, core.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

/** A lone half of a surrogate pair cannot be encoded, and is in no URL. */
function encoded(value: string): string {
  try {
    return encodeURIComponent(value);
  } catch {
    return value;
  }
}
