import { createHash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { canonicalizeText, hashText } from "./canonical.js";

/** RFC 8785's text of a parsed value, written as plainly as can be, to compare with. */
function plainly(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(plainly).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${members.map(([key, member]) => `${JSON.stringify(key)}:${plainly(member)}`).join(",")}}`;
}

/** RFC 8785, appendix B: a double by its bits, and its text. */
const NUMBERS: readonly (readonly [bits: string, text: string])[] = [
  ["0000000000000000", "0"],
  ["8000000000000000", "0"],
  ["0000000000000001", "5e-324"],
  ["8000000000000001", "-5e-324"],
  ["7fefffffffffffff", "1.7976931348623157e+308"],
  ["ffefffffffffffff", "-1.7976931348623157e+308"],
  ["4340000000000000", "9007199254740992"],
  ["c340000000000000", "-9007199254740992"],
  ["4430000000000000", "295147905179352830000"],
  ["44b52d02c7e14af5", "9.999999999999997e+22"],
  ["44b52d02c7e14af6", "1e+23"],
  ["44b52d02c7e14af7", "1.0000000000000001e+23"],
  ["444b1ae4d6e2ef4e", "999999999999999700000"],
  ["444b1ae4d6e2ef4f", "999999999999999900000"],
  ["444b1ae4d6e2ef50", "1e+21"],
  ["3eb0c6f7a0b5ed8c", "9.999999999999997e-7"],
  ["3eb0c6f7a0b5ed8d", "0.000001"],
  ["41b3de4355555553", "333333333.3333332"],
  ["41b3de4355555554", "333333333.33333325"],
  ["41b3de4355555555", "333333333.3333333"],
  ["41b3de4355555556", "333333333.3333334"],
  ["41b3de4355555557", "333333333.33333343"],
  ["becbf647612f3696", "-0.0000033333333333333333"],
  ["43143ff3c1cb0959", "1424953923781206.2"],
];

describe("canonical text, by the vectors of RFC 8785,", () => {
  it.each(NUMBERS)("writes the double %s", (bits, text) => {
    const value = Buffer.from(bits, "hex").readDoubleBE();
    expect(canonicalizeText(JSON.stringify(value))).toBe(text);
    expect(canonicalizeText(text)).toBe(text);
  });

  it("writes the sample of section 3.2.2, to the byte", () => {
    const text = String.raw`{
      "numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
      "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
      "literals": [null, true, false]
    }`;
    // Section 3.2.4.
    const bytes = `
      7b 22 6c 69 74 65 72 61 6c 73 22 3a 5b 6e 75 6c 6c 2c 74 72 75 65 2c 66 61 6c 73 65 5d 2c 22 6e
      75 6d 62 65 72 73 22 3a 5b 33 33 33 33 33 33 33 33 33 2e 33 33 33 33 33 33 33 2c 31 65 2b 33 30
      2c 34 2e 35 2c 30 2e 30 30 32 2c 31 65 2d 32 37 5d 2c 22 73 74 72 69 6e 67 22 3a 22 e2 82 ac 24
      5c 75 30 30 30 66 5c 6e 41 27 42 5c 22 5c 5c 5c 5c 5c 22 2f 22 7d`;
    // Its numbers are doubles; as text, one that a double would change stays as it is written.
    const doubles = JSON.stringify(JSON.parse(text));
    expect(Buffer.from(canonicalizeText(doubles)).toString("hex")).toBe(bytes.replaceAll(/\s/g, ""));
  });

  it("has the order of members of section 3.2.3", () => {
    const text = String.raw`{
      "\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh", "1": "One",
      "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control", "\u00f6": "Latin Small Letter O With Diaeresis"
    }`;
    const order = ["Carriage Return", "One", "Control", "Latin Small", "Euro", "Emoji", "Hebrew"];
    const canonical = canonicalizeText(text);
    const places = order.map((word) => canonical.indexOf(word));
    expect(places).toEqual([...places].sort((a, b) => a - b));
    expect(places).not.toContain(-1);
  });

  it("writes the structures of its reference suite", () => {
    const text =
      '{"1":{"f":{"f":"hi","F":5},"\\n":56.0},"10":{},"":"empty","a":{},"111":[{"e":"yes","E":"no"}],"A":{}}';
    const expected =
      '{"":"empty","1":{"\\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{"E":"no","e":"yes"}],"A":{},"a":{}}';
    expect(canonicalizeText(text)).toBe(expected);
  });
});

describe("canonicalizeText", () => {
  it("refuses halves of surrogate pairs, in values and names", () => {
    expect(() => canonicalizeText('["\\ud800"]')).toThrow("surrogate");
    expect(() => canonicalizeText('{"\\udc00":1}')).toThrow("surrogate");
    expect(canonicalizeText('"\\ud83d\\ude00"')).toBe('"😀"');
  });

  it("refuses what nests too deep, and keeps its stack", () => {
    const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
    expect(() => canonicalizeText(deep)).toThrow("deeper");
  });

  it("counts a member called __proto__", () => {
    expect(canonicalizeText('{"b":1,"__proto__":{"a":2}}')).toBe('{"__proto__":{"a":2},"b":1}');
  });

  it("hashes the UTF-8 of the text", () => {
    const expected = createHash("sha256").update(Buffer.from('{"a":"é","b":1}')).digest("base64url");
    expect(hashText(canonicalizeText('{"b":1,"a":"é"}'))).toBe(expected);
  });

  it.each([
    ["12345678901234567890", "12345678901234567891"],
    ["9007199254740992", "9007199254740993"],
    ["0.1", "0.10000000000000001"],
    ["1e400", "1e401"],
    ["1e-400", "0"],
    ["3e-324", "5e-324"],
    ["-12345678901234567890", "12345678901234567890"],
    ["123456789012345678901e-1", "12345678901234567890.2"],
  ])("keeps %s and %s apart", (a, b) => {
    expect(canonicalizeText(`{"n":[${a}]}`)).not.toBe(canonicalizeText(`{"n":[${b}]}`));
  });

  it.each([
    ["1.0", "1"],
    ["1E2", "100"],
    ["100e-2", "1"],
    ["-0", "0"],
    ["0e999999", "0"],
    ["0.000100", "1e-4"],
    ["1000000000000000000000", "1e21"],
    ["295147905179352830000", "2951479051793528300e2"],
  ])("%s and %s are one", (a, b) => {
    expect(canonicalizeText(a)).toBe(canonicalizeText(b));
    expect(canonicalizeText(a)).toBe(plainly(JSON.parse(a)));
  });

  it("refuses two members of one name, however they are written", () => {
    expect(() => canonicalizeText('{"x":[{"a":1,"b":2,"a":1}]}')).toThrow("Duplicate");
    expect(() => canonicalizeText('{"a":1,"\\u0061":2}')).toThrow("Duplicate");
  });

  it("begins where it is told, and ends with that value", () => {
    const text = '{"params": { "b" : [ 1 , 2 ] , "a" : { } } , "id": 1}';
    expect(canonicalizeText(text, text.indexOf("{", 1))).toBe('{"a":{},"b":[1,2]}');
  });

  it("gives the text of the parsed value, whatever the white space and the order", () => {
    const json = fc.jsonValue({ maxDepth: 4 });
    fc.assert(
      fc.property(json, fc.nat(4), (value, indent) => {
        // What JavaScript writes, it reads back as the same number.
        const text = JSON.stringify(value, undefined, indent);
        const expected = plainly(JSON.parse(text));
        if (/\\u[dD][89a-fA-F]/.test(expected)) {
          expect(() => canonicalizeText(text)).toThrow("surrogate");
          return;
        }
        expect(canonicalizeText(text)).toBe(expected);
        expect(canonicalizeText(expected)).toBe(expected);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("two integers share a text only where they are equal", () => {
    const digits = fc.bigInt({ min: -(10n ** 25n), max: 10n ** 25n });
    fc.assert(
      fc.property(digits, fc.bigInt({ min: -3n, max: 3n }), fc.nat(3), (n, step, zeros) => {
        const other = n + step;
        const spelled = zeros === 0 ? String(other) : `${other}.${"0".repeat(zeros)}`;
        const same = canonicalizeText(String(n)) === canonicalizeText(spelled);
        if (step !== 0n) expect(same).toBe(false);
        else if (BigInt(Number(n)) === n && n < 2n ** 53n && n > -(2n ** 53n)) expect(same).toBe(true);
      }),
      { numRuns: histories(5_000) },
    );
  });
});
