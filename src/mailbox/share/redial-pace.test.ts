import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { RedialPace } from "./redial-pace.js";

const LONGEST = 1 - Number.EPSILON;
const ceiling = (redial: RedialPace, lastedMs: number, nowMs = 0) => Math.round(redial.ended(lastedMs, nowMs, LONGEST));

describe("when a sharer dials again", () => {
  it("waits longer after each quick end, and begins anew after a line that lasted ten seconds", () => {
    const redial = new RedialPace();
    expect([0, 200, 9_999].map((lasted) => ceiling(redial, lasted))).toEqual([500, 1_000, 2_000]);
    expect(ceiling(redial, 10_000)).toBe(500);
    expect(ceiling(redial, 0)).toBe(1_000);
  });

  it("is there within two seconds of a broker that was away for less than a minute, however often it was dialled", () => {
    let longestMs = 0;
    for (let seed = 0; seed < histories(1_000); seed++) {
      const redial = new RedialPace();
      for (let nowMs = 0, step = 0; nowMs < 60_000; step++) {
        const waitMs = redial.ended(0, nowMs, ((seed * 7_919 + step * 104_729) % 1_000) / 1_000);
        longestMs = Math.max(longestMs, waitMs);
        nowMs += Math.max(waitMs, 1);
      }
    }
    expect(longestMs).toBeGreaterThan(1_500);
    expect(longestMs).toBeLessThanOrEqual(2_000);
  });

  it("looks for a broker that stays away less and less, and never waits longer than 30 seconds", () => {
    const redial = new RedialPace();
    expect([0, 1, 2, 3, 59_999].map((nowMs) => ceiling(redial, 0, nowMs))).toEqual([500, 1_000, 2_000, 2_000, 2_000]);
    const waits = Array.from({ length: 5_000 }, () => ceiling(redial, 0, 60_000));
    expect(waits.slice(0, 6)).toEqual([2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(Math.max(...waits)).toBe(30_000);
    // A good line ends the outage: the next one is a restart again.
    expect(ceiling(redial, 10_000, 100_000)).toBe(500);
    expect([1, 2, 3].map(() => ceiling(redial, 0, 101_000))).toEqual([1_000, 2_000, 2_000]);
  });

  it("spreads the waits over all of the time, so that many sharers do not come at once", () => {
    const waits = Array.from({ length: 100 }, (_, n) => new RedialPace().ended(0, 0, n / 100));
    expect(Math.min(...waits)).toBe(0);
    expect(new Set(waits).size).toBe(100);
  });
});
