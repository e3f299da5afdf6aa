// A number of rows, as it is typed.

import { describe, expect, it } from "vitest";
import { rowsOf } from "./page-limits.js";

describe("an option that says how many rows", () => {
  it.each([
    [undefined, 50],
    ["1", 1],
    ["1000", 1_000],
  ])("is read: %s is %d", (text, count) => {
    expect(rowsOf("--limit", text, 50, 1_000, 1)).toBe(count);
  });

  it.each(["0", "1001", "-1", "1e3", "5.5", "", "many", "99999999999"])("is refused with its range: %j", (text) => {
    const read = () => rowsOf("--limit", text, 50, 1_000, 1);
    expect(read).toThrow(`--limit ${text}: expected a whole number from 1 to 1000.`);
  });

  it("begins at 0 where nothing else is said", () => {
    expect(rowsOf("--offset", "0", 5, 9)).toBe(0);
    expect(() => rowsOf("--offset", "-3", 5, 9)).toThrow("--offset -3: expected a whole number from 0 to 9.");
  });
});
