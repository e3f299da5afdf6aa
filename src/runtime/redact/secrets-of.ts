// Which values of a server's entry are secrets: by where they came from, by their name, by where they stand, and by how
// they look; and which variables hold secrets of Toolway's own. Pure.

import { isNumber, isPlaceUnder, isTrivial, isUrl, isWords, looksRandom, SECRET_NAME } from "./ordinary.js";
import { Redactor } from "./redactor.js";

/**
 * What is looked at of an entry: a program with its arguments and environment, an address with its headers, or a mailbox
 * with its broker and token.
 */
export interface SecretSource {
  /** The program; some people write the whole line here. */
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly broker?: string | undefined;
  readonly token?: string | undefined;
  /** Values that came from outside of the config, and the names of the variables, lines or questions that they answer. */
  readonly secrets?: readonly { readonly name: string; readonly value: string }[] | undefined;
}

/** Values shorter than this occur by chance: taking them out would garble what is shown and protect nothing. */
const MIN_CHARACTERS = 6;
/** A password of letters and digits together is told from text even when it is shorter. */
const MIN_MIXED_CHARACTERS = 4;
/** A line of a value is looked for by itself from this length on; shorter ones stand in other texts, too. */
const MIN_LINE_CHARACTERS = 16;
/** Credentials in JSON are shallow; more is data. */
const MAX_JSON_DEPTH = 6;

/** `--api-key`, `-token`, `--db.password`. */
const SECRET_OPTION = /^--?[\w.-]+$/;
/** `--api-key=x`, `API_KEY=x`, `Password=x;`, `Authorization: Bearer x`. Its parts are bounded, so that no value takes long. */
const PAIR = /([\w.-]{1,64})\s{0,4}(?:=|:(?!\/\/))\s{0,4}("[^"]{0,4096}"|'[^']{0,4096}'|[^;&,]+)/g;

/** One for each entry: each start and each connection of a server uses the same. */
const redactors = new WeakMap<SecretSource, Redactor>();

/** What takes an entry's secrets out of whatever its server says. */
export function redactorFor(source: SecretSource): Redactor {
  const known = redactors.get(source);
  if (known !== undefined) return known;
  // They are gathered when the first text comes.
  const redactor = new Redactor({ [Symbol.iterator]: () => secretsOf(source).values() });
  redactors.set(source, redactor);
  return redactor;
}

/** `isByLooks` is false where an id that only looks like a secret must not be taken for one: what is no secret by its place counts. */
export function secretsOf(source: SecretSource, isByLooks = true): Set<string> {
  const found = new Found(isByLooks);
  // What people keep out of a file is a secret, or a place.
  for (const { name, value } of source.secrets ?? []) found.named(name, value);
  for (const [name, value] of Object.entries(source.env ?? {})) {
    if (SECRET_NAME.test(name)) found.named(name, value);
    else found.plain(value);
  }
  const args = [...(source.command ?? "").split(/\s+/).slice(1), ...(source.args ?? [])];
  args.forEach((arg, index) => {
    const before = args[index - 1] ?? "";
    if (isSecretOption(before) && !arg.startsWith("--")) found.named(before, arg);
    else found.plain(arg);
  });
  for (const [name, value] of Object.entries(source.headers ?? {})) {
    if (SECRET_NAME.test(name) || !isWords(value)) found.header(name, value);
  }
  if (source.url !== undefined) found.url(source.url, true);
  if (source.broker !== undefined) found.url(source.broker, true);
  if (source.token !== undefined) found.named("token", source.token);
  return found.values;
}

function isSecretOption(arg: string): boolean {
  return SECRET_OPTION.test(arg) && SECRET_NAME.test(arg);
}

class Found {
  readonly values = new Set<string>();
  readonly #isByLooks: boolean;

  constructor(isByLooks: boolean) {
    this.#isByLooks = isByLooks;
  }

  #looksSecret(text: string): boolean {
    return this.#isByLooks && looksRandom(text);
  }

  /** It stands where credentials stand, or comes from where they are kept, under this name. */
  named(name: string, value: string): void {
    this.#parts(value);
    // A key has lines of base64 between its first and its last, which only say what it is.
    for (const line of linesOf(value))
      if (line.length >= MIN_LINE_CHARACTERS && !line.startsWith("--")) this.#add(line);
    if (isPlaceUnder(name, value)) return;
    this.#add(value);
  }

  header(name: string, value: string): void {
    this.named(name, value);
    const space = value.indexOf(" ");
    if (space < 0) return;
    const credentials = value.slice(space + 1).trim();
    this.#add(credentials);
    if (!/^basic$/i.test(value.slice(0, space))) return;
    const pair = Buffer.from(credentials, "base64").toString();
    const colon = pair.indexOf(":");
    if (colon < 0) return;
    this.#add(pair);
    this.#add(pair.slice(colon + 1));
  }

  /** Nothing is known of it but how it looks. */
  plain(value: string): void {
    this.#parts(value);
    if (isUrl(value)) return;
    for (const word of value.split(/\s+/)) if (this.#looksSecret(word)) this.#add(word);
  }

  /** `isOurs`: it is the server's own address, whose query is for nobody else. */
  url(text: string, isOurs: boolean): void {
    if (!URL.canParse(text)) return;
    const { username, password, pathname, searchParams, hash } = new URL(text);
    if (password !== "") {
      this.#add(`${username}:${password}`);
      this.#both(password);
    } else if (this.#looksSecret(username)) this.#both(username);
    for (const [name, value] of searchParams) {
      if ((isOurs && this.#isByLooks) || SECRET_NAME.test(name)) this.named(name, value);
      else this.plain(value);
    }
    for (const part of pathname.split("/")) if (this.#looksSecret(part)) this.#both(part);
    if (this.#looksSecret(hash.slice(1))) this.#both(hash.slice(1));
  }

  /** What a value is made of: its lines, the members of JSON, `name=value` and `Name: value`, and a URL's parts. */
  #parts(value: string): void {
    if (isUrl(value)) this.url(value, false);
    for (const line of linesOf(value)) if (this.#looksSecret(line)) this.#add(line);
    if (/^\s*[[{]/.test(value)) this.#json(value);
    for (const [, name = "", quoted = ""] of value.matchAll(PAIR)) {
      const inner = quoted.replace(/^(["'])(.*)\1$/s, "$2").trim();
      if (!SECRET_NAME.test(name)) continue;
      if (/^\w+ +\S/.test(inner)) this.header(name, inner);
      else if (!isPlaceUnder(name, inner)) this.#add(inner);
    }
  }

  #json(value: string): void {
    let parsed: unknown;
    try {
      parsed = JSON.parse(value);
    } catch {
      return;
    }
    this.#leaves(parsed, "", 0);
  }

  #leaves(value: unknown, name: string, depth: number): void {
    if (depth > MAX_JSON_DEPTH) return;
    if (typeof value === "string") {
      if (SECRET_NAME.test(name)) this.header(name, value);
      else this.plain(value);
    } else if (value !== null && typeof value === "object") {
      for (const [key, inner] of Object.entries(value)) {
        this.#leaves(inner, Array.isArray(value) ? name : key, depth + 1);
      }
    }
  }

  /** As it stands in the URL, and as it is meant. */
  #both(text: string): void {
    this.#add(text);
    try {
      this.#add(decodeURIComponent(text));
    } catch {
      // It is no encoding, and stands as it is.
    }
  }

  #add(value: string): void {
    const text = value.trim();
    const isMixed = !/^\p{L}*$/u.test(text) && !isNumber(text);
    if (text.length < (isMixed ? MIN_MIXED_CHARACTERS : MIN_CHARACTERS) || isTrivial(text)) return;
    this.values.add(text);
  }
}

/** Of a value that has several. */
function linesOf(value: string): string[] {
  return value.includes("\n") ? value.split("\n").map((line) => line.trim()) : [];
}

/**
 * The token of a gateway or a broker, that of a run, those of clients that were set up, the key of an engine. Whoever has one
 * could call every server.
 */
const OWN_SECRET = /^TOOLWAY_.*(?:TOKEN|KEY)$/i;

export function isOwnSecret(variable: string): boolean {
  return OWN_SECRET.test(variable);
}
