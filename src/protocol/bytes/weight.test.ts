import { describe, expect, it } from "vitest";
import { JsonShape } from "./scan-bytes.js";
import { weightBy, weightOf, weightOfText } from "./weight.js";

const many = (piece: string) => Buffer.from(`{"x":[${piece.repeat(2_000)}1]}`);

/** What V8 takes for each of them, as it was measured (Node 20, 64 bits). */
const TAKEN: readonly [piece: string, bytes: number][] = [
  ["{},", 64],
  ["[],", 40],
  ["1,", 8],
  ['{"a":1},', 41],
  ['{"a":{}},', 96],
  ["[1],", 64],
  ['"ab",', 9],
];

describe("the weight of a text", () => {
  it.each(TAKEN)("is what %j takes when it is parsed, and not many times as much [bounded]", (piece, bytes) => {
    const text = many(piece);
    const shape = new JsonShape();
    shape.push(text);
    for (const weight of [weightOf(text), weightOfText(text.toString()), weightBy(shape.values, shape.names)]) {
      expect(weight).toBeGreaterThanOrEqual(2_000 * bytes);
      expect(weight).toBeLessThan(2_000 * 150);
    }
  });

  it("is nothing for a small call, and little for prose", () => {
    expect(weightOf(Buffer.from('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}'))).toBe(0);
    const prose = Buffer.from(`{"text":"${"Some words, and more of them. ".repeat(1_000)}"}`);
    expect(weightOf(prose)).toBeLessThan(2 * prose.length);
    expect(weightOfText(prose.toString())).toBeLessThan(2 * prose.length);
  });
});
