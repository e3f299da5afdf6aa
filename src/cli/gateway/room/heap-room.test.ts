// How much a heap may grow before all of it is marked, and how much of it is for what is young.

import { expect, it } from "vitest";
import { MIB } from "../../../runtime/sizes.js";
import { growingPercent, mayYoungGrow } from "./heap-room.js";

it("A small heap grows to four times what it holds, a larger one by 28 MB, and a large one by three tenths [bounded]", () => {
  expect([1, 6, 9].map((size) => growingPercent(size * MIB, false))).toEqual([300, 300, 300]);
  for (let size = 10; size <= 93; size++) {
    const room = (growingPercent(size * MIB, false) * size) / 100;
    expect(room).toBeLessThanOrEqual(28);
    expect(room).toBeGreaterThan(27);
  }
  expect([94, 500, 4_000].map((size) => growingPercent(size * MIB, false))).toEqual([30, 30, 30]);
});

it("While much is held for others, a heap of any size grows by a tenth before it is marked [bounded]", () => {
  expect([1, 30, 94, 500].map((size) => growingPercent(size * MIB, true))).toEqual([10, 10, 10, 10]);
});

it("The part of the heap for what is young stops at 32 MiB [bounded]", () => {
  expect([1, 16, 31, 32, 128].map((size) => mayYoungGrow(size * MIB))).toEqual([true, true, true, false, false]);
});
