// The loops without WebAssembly say what those of scan-bytes.wat say, of any bytes, however they are cut.

import { afterEach, expect, it, vi } from "vitest";
import { histories } from "../../../test/faults/length.js";
import * as assembled from "./scan-bytes.js";

type Scan = typeof assembled;

const SEEDS = histories(3_000);
/** What the loops look at, and some that mean nothing to them. */
const ALPHABET = '{}[],:"\\ \n\tdDuiImethoMETHO0469x\u00e9';
const WORDS = [
  '"id":1',
  '"method":',
  '"ID"',
  "\\u0069",
  '"\\u0049d"',
  '","',
  '"}',
  "{}",
  '{"a":[1,{"id":2}],',
  "x".repeat(70),
];

afterEach(() => {
  vi.unstubAllGlobals();
  vi.resetModules();
});

/** So many quotes at once that the loops are used; where they are few, they are looked for one by one. */
const MANY_MARKS = Buffer.from('"" '.repeat(20));

/** As on a machine whose WebAssembly refuses the program, or is not there. */
async function without(engine: object | undefined): Promise<Scan> {
  vi.resetModules();
  vi.stubGlobal("WebAssembly", engine);
  const plain = await import("./scan-bytes.js");
  // It is loaded with the first text.
  plain.mayNameIdOrMethod([MANY_MARKS]);
  vi.unstubAllGlobals();
  return plain;
}

const NO_SIMD = {
  Module: class {
    constructor() {
      throw new Error("CompileError: Wasm SIMD unsupported");
    }
  },
};

function randomPieces(seed: number): Buffer[] {
  let state = seed;
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  let text = random(4) === 0 ? "" : "{";
  const length = seed % 100 === 0 ? 40_000 : random(300);
  while (text.length < length)
    text += random(3) === 0 ? WORDS[random(WORDS.length)] : ALPHABET[random(ALPHABET.length)];
  if (random(3) > 0) text += "}".repeat(1 + random(3));
  const bytes = Buffer.from(text + " ".repeat(random(3)));
  const pieces: Buffer[] = [];
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + 1 + random(seed % 100 === 0 ? 30_000 : 60));
    pieces.push(bytes.subarray(from, to));
    from = to;
  }
  return pieces;
}

function verdict({ JsonShape, MemberWalk, mayNameIdOrMethod }: Scan, pieces: readonly Buffer[]) {
  const names: (string | undefined)[] = [];
  const walk = new MemberWalk((name) => void names.push(name));
  const states = pieces.map((piece) => {
    walk.push(piece);
    return [walk.isClosed, walk.hasMore, walk.isWhole];
  });
  const shape = new JsonShape();
  for (const piece of pieces) shape.push(piece);
  // Not the names: which of them share a bit differs by chance. There are some where there are some.
  const counts = [shape.depth, shape.values, shape.names > 0];
  const mayName = [mayNameIdOrMethod(pieces), mayNameIdOrMethod([Buffer.concat([MANY_MARKS, ...pieces])])];
  return { names, states, counts, mayName };
}

it.each([
  ["a WebAssembly without SIMD", NO_SIMD],
  ["no WebAssembly", undefined],
])("with %s long replies are judged all the same, in thousands of texts", async (_name, engine) => {
  const plain = await without(engine);
  let closed = 0;
  let named = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const pieces = randomPieces(seed);
    const expected = verdict(assembled, pieces);
    expect(verdict(plain, pieces), `seed ${seed}`).toEqual(expected);
    if (expected.states.at(-1)?.[0] === true) closed++;
    if (expected.names.length > 1) named++;
  }
  // The texts are worth it: many are whole, and many have members.
  expect(closed).toBeGreaterThan(SEEDS / 20);
  expect(named).toBeGreaterThan(SEEDS / 20);
});
