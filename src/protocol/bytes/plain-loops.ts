// The loops of scan-bytes.wat without WebAssembly, for machines and builds that have none, or none with SIMD. They say
// the same, and take longer.

/** What a loop remembers between two chunks; a reader may set it. */
export interface LoopValue {
  value: number;
}

export interface Loops {
  readonly bytes: Uint8Array;
  readonly find: (at: number, end: number) => number;
  readonly walk: (at: number, end: number, name: number, room: number) => number;
  readonly state: readonly LoopValue[];
  readonly shape: (at: number, end: number, bits: number, seed: number) => void;
  readonly shapeState: readonly LoopValue[];
  readonly named: LoopValue;
  readonly nameLength: LoopValue;
}

const TAB_TO_SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const SLASH = 0x5c;
const LETTER_D = 0x64;
const LETTER_U = 0x75;
const OPEN = 0x7b;
const CLOSE = 0x7d;
/** The bit by which [ and ] differ from { and }, and capitals from small letters. */
const SMALL = 0x20;

const BETWEEN = 0;
const IN_STRING = 1;
const IN_NAME = 2;

const SHAPE_VALUES = 8;
const FNV_PRIME = 0x01000193;
const NAME_BITS = 0x1ffff;

/** `size`: of the memory. The order of `state` is that of scan-bytes.ts. */
export function plainLoops(size: number): Loops {
  const bytes = new Uint8Array(size);
  const made = () => ({ value: 0 });
  const [depth, mode, escaped, wantsName, nameLength] = [made(), made(), made(), made(), made()];
  const [trailing, closed, named] = [made(), made(), made()];

  function find(from: number, end: number): number {
    for (let at = from; at < end; at++) {
      const c = bytes[at] as number;
      if ((c | SMALL) === LETTER_D ? bytes[at + 1] === QUOTE : c === SLASH && bytes[at + 1] === LETTER_U) return at;
    }
    return -1;
  }

  function walk(from: number, end: number, name: number, room: number): number {
    for (let at = from; at < end; ) {
      const c = bytes[at++] as number;
      if (mode.value === IN_STRING) {
        if (escaped.value === 1) escaped.value = 0;
        else if (c === SLASH) escaped.value = 1;
        else if (c === QUOTE) mode.value = BETWEEN;
      } else if (mode.value === IN_NAME) {
        if (c === QUOTE && escaped.value === 0) {
          mode.value = BETWEEN;
          named.value = 1;
          return at;
        }
        if (nameLength.value < room) bytes[name + nameLength.value] = c;
        nameLength.value++;
        escaped.value = c === SLASH && escaped.value === 0 ? 1 : 0;
      } else between(c);
    }
    return end;
  }

  function between(c: number): void {
    if (closed.value === 1 && c > TAB_TO_SPACE) trailing.value = 1;
    if (c === QUOTE) {
      const isName = wantsName.value === 1 && depth.value === 1;
      mode.value = isName ? IN_NAME : IN_STRING;
      if (!isName) return;
      wantsName.value = 0;
      nameLength.value = 0;
    } else if ((c | SMALL) === OPEN) {
      if (++depth.value === 1) wantsName.value = c === OPEN ? 1 : 0;
    } else if ((c | SMALL) === CLOSE) {
      if (--depth.value === 0) closed.value = 1;
    } else if (c === COMMA && depth.value === 1) wantsName.value = 1;
  }

  const shapeState = Array.from({ length: SHAPE_VALUES }, made);

  function shape(from: number, end: number, bits: number, seed: number): void {
    let [level, deepest, values, names, isString, isEscaped, fresh, hash] = shapeState.map(({ value }) => value) as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ];
    for (let at = from; at < end; at++) {
      const c = bytes[at] as number;
      if (isString === 1) {
        if (isEscaped === 0 && c === QUOTE) {
          isString = 0;
          continue;
        }
        isEscaped = isEscaped === 0 && c === SLASH ? 1 : 0;
        hash = Math.imul(hash ^ c, FNV_PRIME);
      } else if (c === COMMA) values++;
      else if ((c | SMALL) === CLOSE) {
        fresh = 0;
        level--;
      } else if (c > TAB_TO_SPACE) {
        values += fresh;
        fresh = 0;
        if (c === QUOTE) {
          isString = 1;
          hash = seed | 0;
        } else if ((c | SMALL) === OPEN) {
          fresh = 1;
          deepest = Math.max(deepest, ++level);
        } else if (c === COLON) {
          const bit = (hash ^ (hash >>> 15)) & NAME_BITS;
          const mask = 1 << (bit & 7);
          const place = bits + (bit >>> 3);
          if (((bytes[place] as number) & mask) === 0) names++;
          bytes[place] = (bytes[place] as number) | mask;
        }
      }
    }
    const after = [level, deepest, values, names, isString, isEscaped, fresh, hash];
    for (let i = 0; i < SHAPE_VALUES; i++) (shapeState[i] as LoopValue).value = after[i] as number;
  }

  const state = [depth, mode, escaped, wantsName, nameLength, trailing, closed];
  return { bytes, find, walk, state, shape, shapeState, named, nameLength };
}
