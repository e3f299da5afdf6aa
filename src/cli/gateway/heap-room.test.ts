// How much a heap may grow before all of it is marked.

import { expect, it } from "vitest";
import { MIB } from "../../runtime/sizes.js";
import { growingPercent } from "./heap-room.js";

it("A small heap grows to four times what it holds, a larger one by 28 MB, and a large one by V8's own measure [bounded]", () => {
  expect([1, 6, 9].map((size) => growingPercent(size * MIB))).toEqual([300, 300, 300]);
  for (let size = 10; size <= 93; size++) {
    const room = (growingPercent(size * MIB) * size) / 100;
    expect(room).toBeLessThanOrEqual(28);
    expect(room).toBeGreaterThan(27);
  }
  expect([94, 500, 4_000].map((size) => growingPercent(size * MIB))).toEqual([0, 0, 0]);
});
