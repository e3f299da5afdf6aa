// Reads bytes of JSON too long to be parsed: whether a name may stand in them once more, and which members the
// outermost object has. The loops are WebAssembly (scan-bytes.wat): searching by Buffer.indexOf takes many
// times as long where a text is full of quotes, as JSON in a string is (`npm run bench:replies`).

import { type Loops, type LoopValue, plainLoops } from "./plain-loops.js";
import { PROGRAM } from "./scan-bytes-program.js";

/** What is copied and read in one go: it stays in the first cache. */
const CHUNK_BYTES = 16 * 1024;
/** The loops read so far past the end of a chunk; what lies there is not looked at. */
const SLACK_BYTES = 128;
const NAME_AT = CHUNK_BYTES + SLACK_BYTES;
/** A longer name is none that we look for, however it is escaped: "method" with six letters escaped has 36. */
const NAME_BYTES = 64;

/** Where the bits lie that say which names a count has seen: 128 Ki of them. */
const BITS_AT = 32 * 1024;
const BITS_BYTES = 16 * 1024;

/** What we use of it; Node's types leave it to those of browsers. */
interface Engine {
  readonly Module: new (program: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: Readonly<Record<string, unknown>> };
}

const STATE = ["depth", "mode", "escaped", "wantsName", "nameLength", "trailing", "closed"] as const;

const SHAPE = ["Depth", "Deepest", "Values", "Names", "InString", "Escaped", "Fresh", "Hash"] as const;

const TRAILING = STATE.indexOf("trailing");
const CLOSED = STATE.indexOf("closed");

let loaded: Loops | undefined;

/** Loaded with the first reply that is long. */
function loops(): Loops {
  if (loaded !== undefined) return loaded;
  try {
    loaded = assembled();
  } catch {
    // An old processor has no SIMD, and `node --jitless` no WebAssembly.
    loaded = plainLoops(BITS_AT + BITS_BYTES);
  }
  return loaded;
}

function assembled(): Loops {
  const { Instance, Module } = (globalThis as unknown as { readonly WebAssembly: Engine }).WebAssembly;
  const { exports } = new Instance(new Module(Buffer.from(PROGRAM, "base64")));
  const global = (name: string) => exports[name] as LoopValue;
  return {
    bytes: new Uint8Array((exports["memory"] as { readonly buffer: ArrayBuffer }).buffer),
    find: exports["find"] as Loops["find"],
    walk: exports["walk"] as Loops["walk"],
    state: STATE.map(global),
    shape: exports["shape"] as Loops["shape"],
    shapeState: SHAPE.map((name) => global(`shape${name}`)),
    named: global("named"),
    nameLength: global("nameLength"),
  };
}

const QUOTE = 0x22;
const SLASH = 0x5c;
const LETTER_D = 0x64;
const LETTER_U = 0x75;
const ZERO = 0x30;
const FOUR = 0x34;
const SEVEN = 0x37;
/** The bit that makes a capital letter a small one; a quote has it. */
const SMALL = 0x20;

const BEFORE_D = [Buffer.from('"i'), Buffer.from('"metho')];
/** So many hits that mean nothing are looked at; a text that has more of them is walked. */
const MAX_LOOKS = 256;
/**
 * Up to so many quotes or backslashes, and one more for each KiB that was passed over, are looked for by Buffer.indexOf: an image
 * in base64 or a plain text has next to none, and a search for one byte passes over those many times as fast as the loops.
 */
const FEW_MARKS = 16;
const BYTES_A_MARK_SHIFT = 10;

/**
 * Whether `"id"`, `"method"` or an escaped letter of either may stand in these pieces of one text, in small letters or
 * capitals: there are readers to whom those are the same. No means no; yes is a reason for a walk. Both names end in
 * d", so that one pair of bytes finds them; all their letters are between \u0040 and \u007f.
 */
export function mayNameIdOrMethod(pieces: readonly Buffer[]): boolean {
  let looks = 0;
  let last = 0;
  for (const piece of pieces) {
    if (piece.length === 0) continue;
    // What lies across the border of two pieces is not looked at closely.
    if (((last | SMALL) === LETTER_D && piece[0] === QUOTE) || (last === SLASH && piece[0] === LETTER_U)) return true;
    last = piece[piece.length - 1] as number;
    const seen = nameAtFewMarks(piece);
    if (seen === true) return true;
    if (seen === false) continue;
    looks = looksOfLoops(piece, looks);
    if (looks > MAX_LOOKS) return true;
  }
  return false;
}

/** Whether a name may stand in the piece; undefined where it has so many quotes or backslashes that the loops are faster. */
function nameAtFewMarks(piece: Buffer): boolean | undefined {
  let marks = FEW_MARKS;
  for (let at = piece.indexOf(SLASH); at >= 0; at = piece.indexOf(SLASH, at + 1)) {
    if (--marks + (at >> BYTES_A_MARK_SHIFT) < 0) return undefined;
    // At the very end, what follows is in the next piece, whose first byte is compared.
    if (piece[at + 1] === LETTER_U && isName(piece, at)) return true;
  }
  marks = FEW_MARKS;
  for (let at = piece.indexOf(QUOTE, 1); at >= 0; at = piece.indexOf(QUOTE, at + 1)) {
    if (--marks + (at >> BYTES_A_MARK_SHIFT) < 0) return undefined;
    if (((piece[at - 1] as number) | SMALL) === LETTER_D && isName(piece, at - 1)) return true;
  }
  return false;
}

/** How many hits there have been with those of this piece; more than MAX_LOOKS where one of them may be a name. */
function looksOfLoops(piece: Buffer, before: number): number {
  const { bytes, find } = loops();
  let looks = before;
  for (let from = 0; from < piece.length; from += CHUNK_BYTES - 1) {
    const length = Math.min(CHUNK_BYTES, piece.length - from);
    bytes.set(length === piece.length ? piece : piece.subarray(from, from + length), 0);
    for (let at = find(0, length); at >= 0 && at < length - 1; at = find(at + 1, length)) {
      if (++looks > MAX_LOOKS || isName(piece, from + at)) return MAX_LOOKS + 1;
    }
  }
  return looks;
}

/** `at` is the d of d", or the backslash of \u. */
function isName(piece: Uint8Array, at: number): boolean {
  if (piece[at] === SLASH) {
    const [first, second, third] = [piece[at + 2], piece[at + 3], piece[at + 4]];
    if (third === undefined) return true;
    return first === ZERO && second === ZERO && third >= FOUR && third <= SEVEN;
  }
  return BEFORE_D.some((word) => {
    const start = at - word.length;
    for (let i = 0; i < word.length; i++) {
      // It began in the piece before.
      if (start + i < 0) continue;
      if (((piece[start + i] as number) | SMALL) !== word[i]) return false;
    }
    return true;
  });
}

/** A walk over the members of the outermost object, in pieces as they come. It judges no value. */
export class MemberWalk {
  readonly #onName: (name: string | undefined) => void;
  readonly #state = STATE.map(() => 0);

  /** `onName` is told of each member in its order; undefined for one whose name is too long to matter. */
  constructor(onName: (name: string | undefined) => void) {
    this.#onName = onName;
  }

  push(piece: Uint8Array): void {
    const { bytes, walk, state, named, nameLength } = loops();
    // The loops have one state, and several replies may be on their way.
    for (let i = 0; i < state.length; i++) (state[i] as LoopValue).value = this.#state[i] as number;
    for (let from = 0; from < piece.length; from += CHUNK_BYTES) {
      const length = Math.min(CHUNK_BYTES, piece.length - from);
      bytes.set(length === piece.length ? piece : piece.subarray(from, from + length), 0);
      for (let at = 0; at < length; ) {
        at = walk(at, length, NAME_AT, NAME_BYTES);
        if (named.value === 0) continue;
        named.value = 0;
        this.#onName(nameIn(bytes, nameLength.value));
      }
    }
    for (let i = 0; i < state.length; i++) this.#state[i] = (state[i] as LoopValue).value;
  }

  /** The outermost value has ended. */
  get isClosed(): boolean {
    return this.#state[CLOSED] === 1;
  }

  /** Something other than white space came behind the outermost value. */
  get hasMore(): boolean {
    return this.#state[TRAILING] === 1;
  }

  /** One value has come, all of it, and nothing behind it but white space. */
  get isWhole(): boolean {
    const [depth, mode] = this.#state;
    return depth === 0 && mode === 0 && this.isClosed && !this.hasMore;
  }
}

/** Which names share a bit is different in each process: nobody can choose many that do. */
const SEED = Math.floor(Math.random() * 2 ** 32);

/**
 * How much there is to a JSON text, in pieces as it comes: what parsing it will cost is known before. It works on any
 * text, and does not judge whether that is JSON.
 */
export class JsonShape {
  readonly #state = SHAPE.map(() => 0);
  readonly #bits = new Uint8Array(BITS_BYTES);

  push(piece: Uint8Array): void {
    const { bytes, shape, shapeState } = loops();
    const state = this.#state;
    for (let i = 0; i < state.length; i++) (shapeState[i] as LoopValue).value = state[i] as number;
    bytes.set(this.#bits, BITS_AT);
    for (let from = 0; from < piece.length; from += CHUNK_BYTES) {
      const length = Math.min(CHUNK_BYTES, piece.length - from);
      bytes.set(length === piece.length ? piece : piece.subarray(from, from + length), 0);
      shape(0, length, BITS_AT, SEED);
    }
    for (let i = 0; i < state.length; i++) state[i] = (shapeState[i] as LoopValue).value;
    this.#bits.set(bytes.subarray(BITS_AT, BITS_AT + BITS_BYTES));
  }

  /** The most levels of objects and arrays. */
  get depth(): number {
    return this.#state[1] as number;
  }

  /** Members of all objects and elements of all arrays. */
  get values(): number {
    return this.#state[2] as number;
  }

  /** Different names of members; a few less where there are tens of thousands. */
  get names(): number {
    return this.#state[3] as number;
  }
}

function nameIn(bytes: Uint8Array, length: number): string | undefined {
  if (length > NAME_BYTES) return undefined;
  const raw = Buffer.from(bytes.buffer, NAME_AT, length).toString();
  if (!raw.includes("\\")) return raw;
  try {
    return JSON.parse(`"${raw}"`) as string;
  } catch {
    return undefined;
  }
}
