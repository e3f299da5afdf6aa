// Finds where the values of a JSON text stand, without building them: the spans that splicing replaces.
// Works on text that JSON.parse has accepted; it does not validate.

import { BACKSLASH, CLOSE_BRACE, CLOSE_BRACKET, COMMA, OPEN_BRACE, OPEN_BRACKET, QUOTE } from "./bytes/codes.js";

/** Where a value stands: [start, end). */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** The span is the value's. */
export interface Member extends Span {
  readonly key: string;
}

/**
 * So many characters in which nothing is found are looked at one by one; then the rest is searched, which takes a third of the time
 * for each, and costs as much as thirty of them to begin.
 */
const SEARCHED_FROM = 64;

const NO_SPACE = /[^ \n\r\t]/g;
const STRUCTURE = /["[\]{}]/g;
const PLAIN_END = /[,\]}\0- ]/g;

/** The index of the first match from `at` on; the end of the text where there is none. */
function search(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex - 1 : text.length;
}

function skipSpace(text: string, at: number): number {
  const near = at + SEARCHED_FROM;
  for (let i = at; i < near; i++) if (!isSpace(text.charCodeAt(i))) return i;
  return search(NO_SPACE, text, near);
}

/** Of JSON; the end of a text is none. */
export function isSpace(c: number | undefined): boolean {
  return c === 0x20 || c === 0x0a || c === 0x0d || c === 0x09;
}

/** Whether `c` stands behind a number, true, false or null. */
function endsPlain(c: number): boolean {
  return c === COMMA || c === CLOSE_BRACE || c === CLOSE_BRACKET || c <= 0x20;
}

/** More backslashes than these before a quote are not counted from the quote. */
const NEAR_CHARS = 256;
/** A number of escapes and what stands between them, up to a quote. It always matches. */
const ESCAPES = /[^"\\]*(?:\\.[^"\\]*){0,64}/sy;

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
    while (slashes < NEAR_CHARS && text.charCodeAt(quote - 1 - slashes) === BACKSLASH) slashes++;
    // There may be millions: those are not counted from the end, but walked over from `i`, of which `until` has a say.
    const isRun = slashes === NEAR_CHARS;
    if (!isRun && slashes % 2 === 0) return quote + 1;
    if (!isRun) i = quote + 1;
    // A search for each of millions of quotes takes many times as long as going over a number of escapes at once.
    let from: number;
    do {
      from = i;
      ESCAPES.lastIndex = i;
      ESCAPES.test(text);
      i = ESCAPES.lastIndex;
      if (text.charCodeAt(i) === QUOTE) return i + 1;
    } while (isRun && i < until && i > from);
    if (i >= until) return ~i;
  }
}

/** `at` is the first character of a value; the index behind its last. */
export function skipValue(text: string, at: number): number {
  const first = text.charCodeAt(at);
  if (first === QUOTE) return skipString(text, at);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) {
    const near = Math.min(text.length, at + SEARCHED_FROM);
    for (let i = at; i < near; i++) if (endsPlain(text.charCodeAt(i))) return i;
    return search(PLAIN_END, text, near);
  }
  let depth = 0;
  let i = at;
  let searchAt = at + SEARCHED_FROM;
  while (i < text.length) {
    const c = text.charCodeAt(i);
    if (c === QUOTE) {
      i = skipString(text, i);
      searchAt = i + SEARCHED_FROM;
      continue;
    }
    i++;
    // Digits, commas, colons and white space are most of what is left, and all before the brackets.
    if (c < OPEN_BRACKET) {
      if (i < searchAt) continue;
      i = search(STRUCTURE, text, i);
      searchAt = i + SEARCHED_FROM;
      continue;
    }
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
const CHARS_A_TURN = 1024 * 1024;

/** A member or an element takes as long as so many characters in the midst of a value, however short it is. */
const MEMBER_CHARS = 128;

/** The same as scanMessage for a text of megabytes, where `pause` lets others have their turn. */
export async function scanLongMessage(
  text: string,
  pause: () => Promise<void>,
  charsATurn: number = CHARS_A_TURN,
): Promise<{ members: Member[]; params: Member[] | undefined }> {
  const members: Member[] = [];
  const params: Member[] = [];
  await inTurns(scanLongObject(text, 0, members, params, new LongWalk(text, charsATurn)), pause);
  return { members, params: params.length === 0 ? undefined : params };
}

/** The same as scanElements for a text of megabytes. */
export async function scanLongElements(
  text: string,
  pause: () => Promise<void>,
  charsATurn: number = CHARS_A_TURN,
): Promise<Span[]> {
  const elements: Span[] = [];
  await inTurns(scanLongArray(text, elements, new LongWalk(text, charsATurn)), pause);
  return elements;
}

/** A walk that yields where its turn is over. */
type Walking<T> = Generator<undefined, T, undefined>;

async function inTurns(walking: Walking<unknown>, pause: () => Promise<void>): Promise<void> {
  while (walking.next().done !== true) await pause();
}

/** As scanObject does it. */
function* scanLongObject(
  text: string,
  at: number,
  members: Member[],
  inner: Member[] | undefined,
  walk: LongWalk,
): Walking<number> {
  let i = yield* walk.space(at);
  if (text.charCodeAt(i) !== OPEN_BRACE) return i;
  i = yield* walk.space(i + 1);
  while (text.charCodeAt(i) === QUOTE) {
    const keyEnd = yield* walk.skip(i);
    const rawKey = text.slice(i + 1, keyEnd - 1);
    // To parse a long one is a turn's work.
    walk.spend(rawKey.length);
    const colon = yield* walk.space(keyEnd);
    const key = rawKey.includes("\\") ? (JSON.parse(text.slice(i, keyEnd)) as string) : rawKey;
    walk.spend(MEMBER_CHARS + rawKey.length);
    const start = yield* walk.space(colon + 1);
    const inside = inner?.length === 0 && key === "params" && text.charCodeAt(start) === OPEN_BRACE;
    const end = yield* inside ? scanLongObject(text, start, inner, undefined, walk) : walk.skip(start);
    members.push({ key, start, end });
    i = yield* walk.space(end);
    if (text.charCodeAt(i) !== COMMA) break;
    i = yield* walk.space(i + 1);
  }
  return i + 1;
}

/** As scanElements does it. */
function* scanLongArray(text: string, elements: Span[], walk: LongWalk): Walking<void> {
  let i = yield* walk.space(0);
  if (text.charCodeAt(i) !== OPEN_BRACKET) return;
  i = yield* walk.space(i + 1);
  while (i < text.length && text.charCodeAt(i) !== CLOSE_BRACKET) {
    const end = yield* walk.skip(i);
    elements.push({ start: i, end });
    walk.spend(MEMBER_CHARS);
    i = yield* walk.space(end);
    if (text.charCodeAt(i) !== COMMA) break;
    i = yield* walk.space(i + 1);
  }
}

/** skipSpace and skipValue in turns. */
class LongWalk {
  readonly #text: string;
  readonly #charsATurn: number;
  /** Where this turn ends. */
  #until: number;

  constructor(text: string, charsATurn: number) {
    this.#text = text;
    this.#charsATurn = charsATurn;
    this.#until = charsATurn;
  }

  /** What takes as long as walking over `chars` was done on the way. */
  spend(chars: number): void {
    this.#until -= chars;
  }

  *space(at: number): Walking<number> {
    const text = this.#text;
    let i = at;
    for (;;) {
      if (i >= this.#until) yield this.#nextTurn(i);
      if (!isSpace(text.charCodeAt(i))) return i;
      i++;
    }
  }

  *skip(at: number): Walking<number> {
    const text = this.#text;
    const first = text.charCodeAt(at);
    const isPlain = first !== QUOTE && first !== OPEN_BRACE && first !== OPEN_BRACKET;
    let depth = 0;
    let i = at;
    while (i < text.length) {
      if (i >= this.#until) yield this.#nextTurn(i);
      const c = text.charCodeAt(i);
      if (isPlain) {
        if (endsPlain(c)) return i;
        i++;
        continue;
      }
      if (c === QUOTE) {
        let end = leaveString(text, i + 1, this.#until);
        while (end < 0) {
          yield this.#nextTurn(~end);
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

  #nextTurn(at: number): undefined {
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
export function scanElements(text: string, at: number, max = Number.POSITIVE_INFINITY): Span[] {
  const elements: Span[] = [];
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

/** Puts members in front of those of the object at `at`. No more is looked at than what stands before the first of them. */
export function insertFirst(text: string, at: number, members: string): Edit {
  const isEmpty = text.charCodeAt(skipSpace(text, at + 1)) === CLOSE_BRACE;
  return { start: at + 1, end: at + 1, text: isEmpty ? members : `${members},` };
}

/** Members of an object and their values as JSON text; undefined takes one out. */
export type MemberTexts = readonly (readonly [key: string, json: string | undefined])[];

/** Gives the object at `at`, whose members are `present`, these members. All else in it stays as it was written. */
export function memberEdits(text: string, at: number, present: readonly Member[], wanted: MemberTexts): Edit[] {
  const edits: Edit[] = [];
  const added: string[] = [];
  const taken = new Set<string>();
  for (const [key, json] of wanted) {
    const found = present.find((member) => member.key === key);
    if (found === undefined) {
      if (json !== undefined) added.push(`${JSON.stringify(key)}:${json}`);
    } else if (json === undefined) taken.add(key);
    else edits.push({ start: found.start, end: found.end, text: json });
  }
  const kept = present.filter(({ key }) => !taken.has(key)).length;
  if (taken.size > 0) edits.unshift(...cuts(text, at, present, taken));
  if (added.length > 0) edits.unshift({ start: at + 1, end: at + 1, text: `${added.join(",")}${kept > 0 ? "," : ""}` });
  return edits;
}

/** Each member goes with the comma before it, or with the one behind it where none before it stays. */
function cuts(text: string, at: number, present: readonly Member[], taken: ReadonlySet<string>): Edit[] {
  const edits: Edit[] = [];
  let begin = at + 1;
  let isAnyKept = false;
  for (const [i, { key, end }] of present.entries()) {
    const next = i + 1 < present.length ? text.indexOf(",", end) + 1 : end;
    if (!taken.has(key)) isAnyKept = true;
    else if (isAnyKept) edits.push({ start: begin - 1, end, text: "" });
    else edits.push({ start: begin, end: next, text: "" });
    begin = next;
  }
  return edits;
}

/** Where members stand after these edits of their text. Each edit is of a whole value, or within one. */
export function movedBy(edits: readonly Edit[], members: readonly Member[]): Member[] {
  const moved = (at: number) => {
    let to = at;
    for (const { start, end, text } of edits) if (end <= at) to += text.length - (end - start);
    return to;
  };
  return members.map(({ key, start, end }) => ({ key, start: moved(start), end: moved(end) }));
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
