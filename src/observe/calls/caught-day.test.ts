import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { CaughtDay } from "./caught-day.js";

const DAY = 86_400_000;

it("counts by kind for a day, and says since when", () => {
  const caught = new CaughtDay(DAY);
  caught.add("restart", 1, DAY + 1);
  caught.add("queued", 5, DAY + 600_000);
  expect(caught.read(DAY + 700_000)).toEqual({ sinceMs: DAY, counts: { restart: 1, queued: 5 } });
  const almost = caught.read(2 * DAY + 400_000);
  expect(almost.counts).toEqual({ queued: 5 });
  expect(almost.sinceMs).toBe(DAY + 400_000);
  expect(caught.read(9 * DAY).counts).toEqual({});
});

it("is right whatever the steps between two looks are, and a clock that is set back loses nothing", () => {
  for (let seed = 1; seed <= histories(2_000); seed++) {
    let state = seed;
    const random = (below: number) => {
      state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
      return state % below;
    };
    const caught = new CaughtDay(0);
    const told: { at: number; count: number }[] = [];
    let nowMs = 0;
    for (let n = 0; n < 20; n++) {
      nowMs += random(3) === 0 ? random(2 * DAY) : random(1_000_000);
      const count = 1 + random(9);
      caught.add("token", count, nowMs);
      told.push({ at: nowMs, count });
    }
    const step = (ms: number) => Math.floor(ms / 300_000);
    const wanted = told.filter(({ at }) => step(at) > step(nowMs) - 288).reduce((sum, { count }) => sum + count, 0);
    expect(caught.read(nowMs).counts["token"], `seed ${seed}`).toBe(wanted);
    expect(caught.read(nowMs - DAY).counts["token"], `seed ${seed}`).toBe(wanted);
  }
});
