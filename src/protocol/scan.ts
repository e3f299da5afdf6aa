// Finds where the values of a JSON text stand, without building them: the spans that splicing replaces.
// Works on text that JSON.parse has accepted; it does not validate.

export interface Member {
  readonly key: string;
  /** Of the value: [start, end). */
  readonly start: number;
  readonly end: number;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;

function skipSpace(text: string, at: number): number {
  let i = at;
  for (;;) {
    const c = text.charCodeAt(i);
    if (c !== 0x20 && c !== 0x0a && c !== 0x0d && c !== 0x09) return i;
    i++;
  }
}

/** After an escaped quote, so many characters are looked at one by one: where one is, there are more. */
const NEAR_CHARS = 256;

/** `at` is the opening quote; the index behind the closing one. */
function skipString(text: string, at: number): number {
  return leaveString(text, at + 1, Number.POSITIVE_INFINITY);
}

/**
 * `at` is in a string, and in none of its escapes; the index behind the closing quote. Where that was not found before
 * `until`, the complement (~) of where to go on: in the string still, and in no escape.
 */
function leaveString(text: string, at: number, until: number): number {
  let i = at;
  for (;;) {
    const quote = text.indexOf('"', i);
    if (quote < 0) return text.length;
    let slashes = 0;
    while (text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
    if (slashes % 2 === 0) return quote + 1;
    i = quote + 1;
    // A search for each of millions of quotes takes many times as long as a look at each character.
    for (const near = Math.min(i + NEAR_CHARS, text.length); i < near; i++) {
      const c = text.charCodeAt(i);
      if (c === QUOTE) return i + 1;
      if (c === BACKSLASH) i++;
    }
    if (i >= until) return ~i;
  }
}

/** `at` is the first character of a value; the index behind its last. */
export function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    let i = at;
    for (; i < text.length; i++) {
      const c = text.charCodeAt(i);
      if (c === COMMA || c === CLOSE_BRACE || c === CLOSE_BRACKET || c <= 0x20) break;
    }
    return i;
  }
  let depth = 0;
  let i = at;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = skipString(text, i);
      continue;
    }
    i++;
    // Digits, commas, colons and white space are most of what is left, and all before the brackets.
    if (c < OPEN_BRACKET) continue;
    if (c === OPEN_BRACE || c === OPEN_BRACKET) depth++;
    else if ((c === CLOSE_BRACE || c === CLOSE_BRACKET) && --depth === 0) return i;
  }
  return i;
}

/** The members of the object that starts at `at`, in the order in which they stand. */
export function scanMembers(text: string, at: number): Member[] {
  const members: Member[] = [];
  scanObject(text, at, members, undefined, "");
  return members;
}

/** The members of a message, and those of its `params` if that is an object: in one walk over the text. */
export function scanMessage(text: string): { members: Member[]; params: Member[] | undefined } {
  const { members, inner } = scanNested(text, "params");
  return { members, params: inner };
}

/** So many characters are walked over in one turn of the event loop, which takes a few milliseconds. */
const CHARS_A_TURN = 2 * 1024 * 1024;

/** The same as scanMessage for a text of megabytes, where `pause` lets others have their turn. */
export async function scanLongMessage(
  text: string,
  pause: () => Promise<void>,
  charsATurn: number = CHARS_A_TURN,
): Promise<{ members: Member[]; params: Member[] | undefined }> {
  const members: Member[] = [];
  const params: Member[] = [];
  await scanLongObject(text, 0, members, params, new LongWalk(text, pause, charsATurn));
  return { members, params: params.length === 0 ? undefined : params };
}

/** As scanObject does it. */
async function scanLongObject(
  text: string,
  at: number,
  members: Member[],
  inner: Member[] | undefined,
  walk: LongWalk,
): Promise<number> {
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) return i;
  i = skipSpace(text, i + 1);
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = skipString(text, i);
    const rawKey = text.slice(i + 1, keyEnd - 1);
    const key = rawKey.includes("\\") ? (JSON.parse(text.slice(i, keyEnd)) as string) : rawKey;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const inside = inner?.length === 0 && key === "params" && text.charCodeAt(start) === OPEN_BRACE;
    const end = inside ? await scanLongObject(text, start, inner, undefined, walk) : await walk.skip(start);
    members.push({ key, start, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) !== COMMA) break;
    i = skipSpace(text, i + 1);
  }
  return i + 1;
}

/** skipValue in turns. */
class LongWalk {
  readonly #text: string;
  readonly #pause: () => Promise<void>;
  readonly #charsATurn: number;
  /** Where this turn ends. */
  #until: number;

  constructor(text: string, pause: () => Promise<void>, charsATurn: number) {
    this.#text = text;
    this.#pause = pause;
    this.#charsATurn = charsATurn;
    this.#until = charsATurn;
  }

  async skip(at: number): Promise<number> {
    const text = this.#text;
    const first = text.charCodeAt(at);
    if (first !== QUOTE && first !== OPEN_BRACE && first !== OPEN_BRACKET) return skipValue(text, at);
    let depth = 0;
    let i = at;
    while (i < text.length) {
      if (i >= this.#until) await this.#nextTurn(i);
      const c = text.charCodeAt(i);
      if (c === QUOTE) {
        let end = leaveString(text, i + 1, this.#until);
        while (end < 0) {
          await this.#nextTurn(~end);
          end = leaveString(text, ~end, this.#until);
        }
        i = end;
        if (depth === 0) return i;
        continue;
      }
      i++;
      if (c < OPEN_BRACKET) continue;
      if (c === OPEN_BRACE || c === OPEN_BRACKET) depth++;
      else if ((c === CLOSE_BRACE || c === CLOSE_BRACKET) && --depth === 0) return i;
    }
    return i;
  }

  async #nextTurn(at: number): Promise<void> {
    await this.#pause();
    this.#until = at + this.#charsATurn;
  }
}

/** The members of an object, and those of its member `key` if that is an object that is not empty: in one walk. */
export function scanNested(text: string, key: string): { members: Member[]; inner: Member[] | undefined } {
  const members: Member[] = [];
  const inner: Member[] = [];
  scanObject(text, 0, members, inner, key);
  return { members, inner: inner.length === 0 ? undefined : inner };
}

/** The index behind the object; `inner`: where to put the members of the member `innerKey`. */
function scanObject(
  text: string,
  at: number,
  members: Member[],
  inner: Member[] | undefined,
  innerKey: string,
): number {
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACE) return i;
  i = skipSpace(text, i + 1);
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = skipString(text, i);
    const rawKey = text.slice(i + 1, keyEnd - 1);
    const key = rawKey.includes("\\") ? (JSON.parse(text.slice(i, keyEnd)) as string) : rawKey;
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    // Of two members of that name the second is skipped over: the message is refused for it.
    const inside = inner?.length === 0 && key === innerKey && text.charCodeAt(start) === OPEN_BRACE;
    const end = inside ? scanObject(text, start, inner, undefined, "") : skipValue(text, start);
    members.push({ key, start, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) !== COMMA) break;
    i = skipSpace(text, i + 1);
  }
  return i + 1;
}

/** The elements of the array that starts at `at`, as [start, end) pairs; the first `max` of them. */
export function scanElements(
  text: string,
  at: number,
  max = Number.POSITIVE_INFINITY,
): { start: number; end: number }[] {
  const elements: { start: number; end: number }[] = [];
  let i = skipSpace(text, at);
  if (text.charCodeAt(i) !== OPEN_BRACKET) return elements;
  i = skipSpace(text, i + 1);
  while (elements.length < max && i < text.length && text.charCodeAt(i) !== CLOSE_BRACKET) {
    const end = skipValue(text, i);
    elements.push({ start: i, end });
    i = skipSpace(text, end);
    if (text.charCodeAt(i) !== COMMA) break;
    i = skipSpace(text, i + 1);
  }
  return elements;
}

/** True where `text` nests deeper than `limit`. Strings are skipped, so brackets in them do not count. */
export function deeperThan(text: string, limit: number): boolean {
  let depth = 0;
  let i = 0;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = skipString(text, i);
      continue;
    }
    i++;
    if (c === OPEN_BRACE || c === OPEN_BRACKET) {
      if (++depth > limit) return true;
    } else if (c === CLOSE_BRACE || c === CLOSE_BRACKET) depth--;
  }
  return false;
}

export interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** `text` with each span replaced. Edits must not overlap; their order does not matter. */
export function splice(text: string, edits: readonly Edit[]): string {
  const sorted = edits.length > 1 ? [...edits].sort((a, b) => a.start - b.start) : edits;
  let out = "";
  let from = 0;
  for (const edit of sorted) {
    out += text.slice(from, edit.start) + edit.text;
    from = edit.end;
  }
  return out + text.slice(from);
}
