// Canonical JSON (RFC 8785): one text for all the ways to write a value, and its hash. It reads JSON text, not a parsed
// value: numbers must not lose what a double cannot hold.

import { hash } from "node:crypto";
import { Fault } from "./errors.js";
import { skipValue } from "./scan.js";

/** Real definitions and arguments nest a dozen deep; a bound so that hostile nesting costs no stack. */
const MAX_DEPTH = 512;

/**
 * RFC 8785's text of the value that begins at `at` in JSON text which JSON.parse has accepted; but a number that a
 * double would change stays as it is written, so that different texts of such numbers never become one. Throws a Fault
 * `invalid` for what I-JSON cannot hold, and where an object has two members of one name: parsers differ about which of
 * them counts.
 */
export function canonicalizeText(text: string, at = 0): string {
  return new TextReader(text, at).value(MAX_DEPTH);
}

/** A canonical text and its hash. */
export interface Canonical {
  readonly text: string;
  readonly hash: string;
}

/** Texts that were made ahead of time, by the parsed value of what they are the text of. */
const prepared = new WeakMap<object, Canonical>();

/**
 * Makes the text of a definition and its hash ahead of time: of a list of thousands, that takes too long for one turn. It is kept
 * until it is taken or forgotten.
 */
export function prepareCanonical({ json, value }: { readonly json: string; readonly value: object }): void {
  try {
    prepared.set(value, canonicalOf(json));
  } catch (error) {
    // Whoever takes it is told why there is none.
    if (!(error instanceof Fault)) throw error;
  }
}

/** Made now, or ahead of time. Throws as canonicalizeText does. */
export function takeCanonical({ json, value }: { readonly json: string; readonly value: object }): Canonical {
  const made = prepared.get(value) ?? canonicalOf(json);
  prepared.delete(value);
  return made;
}

function canonicalOf(json: string): Canonical {
  const text = canonicalizeText(json);
  return { text, hash: hashText(text) };
}

export function forgetCanonical({ value }: { readonly value: object }): void {
  prepared.delete(value);
}

/** SHA-256 in base64url. */
export function hashText(text: string): string {
  return hash("sha256", text, "base64url");
}

/** The order of RFC 8785, which is JavaScript's own for strings. */
function byCodeUnits(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function quoted(value: string): string {
  refuseLoneSurrogates(value);
  return JSON.stringify(value);
}

/** With the flag `u` a pair is one character, so that only halves of pairs match. */
const LONE_SURROGATE = /\p{Surrogate}/u;

function refuseLoneSurrogates(value: string): void {
  if (LONE_SURROGATE.test(value)) throw new Fault("invalid", "A string has half of a surrogate pair.");
}

function tooDeep(): Fault {
  return new Fault("invalid", `Nested deeper than ${MAX_DEPTH}.`);
}

const SPACE = /[ \t\n\r]*/y;

class TextReader {
  readonly #text: string;
  #at: number;

  constructor(text: string, at: number) {
    this.#text = text;
    this.#at = at;
  }

  value(depthLeft: number): string {
    const first = this.#peek();
    if (first === '"') return quoted(this.#string());
    if (first !== "{" && first !== "[") {
      const token = this.#token();
      return /^[tfn]/.test(token) ? token : numberText(token);
    }
    if (depthLeft === 0) throw tooDeep();
    this.#at++;
    return first === "{" ? this.#object(depthLeft - 1) : this.#array(depthLeft - 1);
  }

  #object(depthLeft: number): string {
    const members: { readonly key: string; readonly json: string }[] = [];
    while (this.#peek() !== "}") {
      if (this.#peek() === ",") this.#at++;
      this.#peek();
      const key = this.#string();
      // The colon.
      this.#peek();
      this.#at++;
      members.push({ key, json: this.value(depthLeft) });
    }
    this.#at++;
    members.sort((a, b) => byCodeUnits(a.key, b.key));
    let out = "{";
    for (const [i, { key, json }] of members.entries()) {
      if (i > 0 && members[i - 1]?.key === key) {
        throw new Fault("invalid", `Duplicate member ${JSON.stringify(key)}.`);
      }
      out += `${i === 0 ? "" : ","}${quoted(key)}:${json}`;
    }
    return `${out}}`;
  }

  #array(depthLeft: number): string {
    let out = "[";
    while (this.#peek() !== "]") {
      if (this.#peek() === ",") {
        this.#at++;
        out += ",";
      }
      out += this.value(depthLeft);
    }
    this.#at++;
    return `${out}]`;
  }

  #string(): string {
    const token = this.#token();
    return token.includes("\\") ? (JSON.parse(token) as string) : token.slice(1, -1);
  }

  /** A string, number or word, from where we stand. */
  #token(): string {
    const start = this.#at;
    this.#at = skipValue(this.#text, start);
    return this.#text.slice(start, this.#at);
  }

  /** The next character that is no white space; we stand at it then. */
  #peek(): string {
    SPACE.lastIndex = this.#at;
    SPACE.test(this.#text);
    this.#at = SPACE.lastIndex;
    const next = this.#text[this.#at];
    if (next === undefined) throw new Fault("invalid", "The JSON text ends early.");
    return next;
  }
}

/** Any decimal of so many digits survives a double. */
const SAFE_DIGITS = 15;
const PLAIN = /^-?(\d+)(?:\.(\d+))?$/;

function numberText(token: string): string {
  const canonical = JSON.stringify(Number(token));
  if (canonical === token) return token;
  const plain = PLAIN.exec(token);
  if (plain !== null && (plain[1]?.length ?? 0) + (plain[2]?.length ?? 0) <= SAFE_DIGITS) return canonical;
  return canonical !== "null" && sameDecimal(token, canonical) ? canonical : token;
}

function sameDecimal(a: string, b: string): boolean {
  const x = decimal(a);
  const y = decimal(b);
  return x.digits === y.digits && (x.digits === "" || (x.exponent === y.exponent && x.negative === y.negative));
}

interface Decimal {
  readonly negative: boolean;
  /** Without zeros at either end; none for zero. The value is 0.digits × 10^exponent. */
  readonly digits: string;
  readonly exponent: number;
}

function decimal(token: string): Decimal {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(token);
  const whole = match?.[2] ?? "";
  const all = whole + (match?.[3] ?? "");
  const leading = /^0*/.exec(all)?.[0].length ?? 0;
  let end = all.length;
  while (end > leading && all.charCodeAt(end - 1) === 0x30) end--;
  const exponent = Number(match?.[4] ?? 0) + whole.length - leading;
  return { negative: match?.[1] === "-", digits: all.slice(leading, end), exponent };
}
