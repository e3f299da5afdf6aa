import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { lineDiff } from "./line-diff.js";

describe("lineDiff", () => {
  it("finds what stayed, what went and what came", () => {
    const diff = lineDiff(["a", "b", "c", "d"], ["a", "c", "x", "d"]);
    expect(diff.map(({ kind, line }) => `${kind} ${line}`)).toEqual(["same a", "old b", "same c", "new x", "same d"]);
  });

  it("gives both texts back, whatever they are", () => {
    for (let seed = 1; seed < histories(300); seed++) {
      const lines = (salt: number) =>
        Array.from({ length: (seed * salt) % 23 }, (_, i) => String((seed * salt * (i + 7)) % 5));
      const [before, after] = [lines(3), lines(7)];
      const diff = lineDiff(before, after);
      expect(diff.filter(({ kind }) => kind !== "new").map(({ line }) => line)).toEqual(before);
      expect(diff.filter(({ kind }) => kind !== "old").map(({ line }) => line)).toEqual(after);
    }
  });
});
