import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CHARACTER } from "../../../test/fixtures/characters.js";
import { jsonStart } from "./json-start.js";

it("the beginning of a value's JSON is what all of it begins with, wherever it is cut", () => {
  const value = fc.jsonValue({ maxDepth: 4, stringUnit: CHARACTER });
  fc.assert(
    fc.property(value, fc.nat(120), (one, characters) => {
      const read: unknown = JSON.parse(JSON.stringify(one));
      const whole = JSON.stringify(read);
      expect(jsonStart(read, characters)).toBe(whole.slice(0, characters));
      expect(jsonStart(read, whole.length + 1)).toBe(whole);
    }),
    { numRuns: histories(2_000) },
  );
  for (const text of ['{"__proto__":{"a":1},"1":-0,"":[[],{}]}', '"\u{1f600}\u{1f600}"', "[1e21,true,null]"]) {
    const whole = JSON.stringify(JSON.parse(text));
    for (let n = 0; n <= whole.length; n++) expect(jsonStart(JSON.parse(text), n)).toBe(whole.slice(0, n));
  }
});

it("what is behind the end is not looked at", () => {
  const values = {
    first: "x".repeat(10),
    get later(): never {
      throw new Error("It was looked at.");
    },
  };
  expect(jsonStart(values, 15)).toBe('{"first":"xxxxx');
  const rows = [
    [1, 2],
    ["x".repeat(50), values],
  ];
  expect(jsonStart(rows, 20)).toBe('[[1,2],["xxxxxxxxxxx');
});
