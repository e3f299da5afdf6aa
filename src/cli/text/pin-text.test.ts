import { expect, it } from "vitest";
import { definitionLines } from "./pin-text.js";

it("a hidden character cannot be forged: what is written as an escape is told from what is one", () => {
  expect(definitionLines(JSON.stringify("\\u{202E}"))).not.toEqual(definitionLines(JSON.stringify("\u202e")));
});
