import { expect, it } from "vitest";
import { coversUri } from "./resource-uris.js";

it.each([
  ["file:///a", "file:///a", true],
  ["file:///a", "file:///a/b", true],
  ["file:///a/", "file:///a/b", true],
  ["file:///a", "file:///a?x", true],
  ["file:///a", "file:///ab", false],
  ["file:///a/b", "file:///a", false],
])("a subscription to %s hears of %s: %s", (subscribed, uri, isHeard) => {
  expect(coversUri(new Set([subscribed]), uri)).toBe(isHeard);
});

it("a subscription means the same among few others as among many", () => {
  const others = Array.from({ length: 50 }, (_, n) => `file:///other/${n}`);
  for (const [subscribed, uri, isHeard] of [
    ["file:///a/", "file:///a/b", true],
    ["file:///a", "file:///a/b#c", true],
    ["file:///a", "file:///ab", false],
    ["file:///a/b", "file:///a", false],
  ] as const) {
    expect(coversUri(new Set([...others, subscribed]), uri)).toBe(isHeard);
  }
});
