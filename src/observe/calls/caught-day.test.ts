import fc from "fast-check";
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

it("goes on after a restart, with what is not a day old, and says since when it is counted", () => {
  const before = new CaughtDay(DAY);
  before.add("restart", 1, DAY + 1);
  before.add("queued", 5, DAY + 600_000);
  const saved = JSON.parse(JSON.stringify(before.saved)) as typeof before.saved;
  const after = new CaughtDay(DAY + 900_000);
  after.add("queued", 1, DAY + 900_001);
  after.join(saved, DAY + 900_002);
  expect(after.read(DAY + 900_003)).toEqual({ sinceMs: DAY, counts: { restart: 1, queued: 6 } });
  // The first step of those is over a day ago.
  const later = new CaughtDay(2 * DAY + 400_000);
  later.join(saved, 2 * DAY + 400_000);
  expect(later.read(2 * DAY + 400_000)).toEqual({ sinceMs: DAY + 400_000, counts: { queued: 5 } });
  // The clock was a week ahead when it was saved.
  const right = new CaughtDay(DAY);
  right.join({ sinceMs: 8 * DAY, kinds: { token: [[(8 * DAY) / 300_000, 3]] } }, DAY);
  expect(right.read(DAY)).toEqual({ sinceMs: DAY, counts: {} });
});

it("is the same over any restart as without it", () => {
  const happening = fc.record({
    afterMs: fc.integer({ min: 0, max: 7_000_000 }),
    count: fc.integer({ min: 1, max: 9 }),
  });
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 30 }), fc.nat(30), fc.nat(DAY), (all, cut, downMs) => {
      const whole = new CaughtDay(DAY);
      let one = new CaughtDay(DAY);
      let nowMs = DAY;
      const restart = () => {
        const { saved } = one;
        nowMs += downMs;
        one = new CaughtDay(nowMs);
        one.join(saved, nowMs);
      };
      for (const [i, { afterMs, count }] of all.entries()) {
        if (i === cut) restart();
        nowMs += afterMs;
        for (const day of [whole, one]) day.add("token", count, nowMs);
      }
      if (cut >= all.length) restart();
      expect(one.read(nowMs)).toEqual(whole.read(nowMs));
    }),
    { numRuns: histories(500) },
  );
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
