import { describe, expect, it } from "vitest";
import { isGone, ownMark } from "./life.js";

describe("the mark of a process", () => {
  it("is gone where nobody has its id, or another process has it by now [run-own]", () => {
    const mark = ownMark();
    expect(isGone(mark)).toBe(false);
    // No system gives ids so high.
    expect(isGone({ ...mark, pid: 2 ** 30 })).toBe(true);
    if (mark.began !== undefined) expect(isGone({ ...mark, began: "1" })).toBe(true);
  });

  it("says nothing to whoever sees other processes, or where it makes no sense [run-own]", () => {
    expect(isGone({ ...ownMark(), pid: 2 ** 30, space: "pid:[1]" })).toBe(false);
    for (const pid of [0, -1, 1.5, Number.NaN]) expect(isGone({ ...ownMark(), pid })).toBe(false);
  });

  it("without a time of its beginning goes by the id alone [run-own]", () => {
    const { pid, space } = ownMark();
    expect(isGone({ pid, space })).toBe(false);
    expect(isGone({ pid: 2 ** 30, space })).toBe(true);
  });
});
