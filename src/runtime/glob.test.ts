import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { fits, readGlob } from "./glob.js";

it.each([
  ["abc", "abc", true],
  ["abc", "abcd", false],
  ["", "", true],
  ["", "a", false],
  ["*", "", true],
  ["*", "anything", true],
  ["**", "anything", true],
  ["a*", "a", true],
  ["a*", "ba", false],
  ["*a", "ba", true],
  // The two ends may not share a character.
  ["ab*ba", "aba", false],
  ["ab*ba", "abba", true],
  ["a*b*c", "a-b-b-c", true],
  ["a*b*c", "a-c", false],
  ["a.c", "abc", false],
])("the pattern %j and the text %j fit: %s", (pattern, text, is) => {
  expect(fits(readGlob(pattern), text)).toBe(is);
});

it("fits what the same pattern as a regular expression fits", () => {
  const of = (letters: string) => fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 });
  fc.assert(
    fc.property(of("ab*"), of("ab"), (pattern, text) => {
      const same = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
      expect(fits(readGlob(pattern), text)).toBe(same.test(text));
    }),
    { numRuns: histories(5_000) },
  );
});

it("takes no longer for a pattern of many stars than for one of none", () => {
  const glob = readGlob(`${"*a".repeat(20_000)}*b`);
  const began = performance.now();
  expect(fits(glob, "a".repeat(200_000))).toBe(false);
  expect(fits(glob, `${"a".repeat(200_000)}b`)).toBe(true);
  // A matcher that takes steps back would be at it for years.
  expect(performance.now() - began).toBeLessThan(1_000);
});
