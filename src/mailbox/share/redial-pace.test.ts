import { describe, expect, it } from "vitest";
import { RedialPace } from "./redial-pace.js";

const LONGEST = 1 - Number.EPSILON;
const ceiling = (redial: RedialPace, lastedMs: number) => Math.round(redial.ended(lastedMs, LONGEST));

describe("when a sharer dials again", () => {
  it("waits longer after each quick end, and begins anew after a line that lasted ten seconds", () => {
    const redial = new RedialPace();
    expect([0, 200, 9_999].map((lasted) => ceiling(redial, lasted))).toEqual([500, 1_000, 2_000]);
    expect(ceiling(redial, 10_000)).toBe(500);
    expect(ceiling(redial, 0)).toBe(1_000);
  });

  it("never waits longer than 30 seconds, however often it failed", () => {
    const redial = new RedialPace();
    const waits = Array.from({ length: 5_000 }, () => ceiling(redial, 0));
    expect(waits.slice(0, 8)).toEqual([500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
    expect(Math.max(...waits)).toBe(30_000);
  });

  it("spreads the waits over all of the time, so that many sharers do not come at once", () => {
    const waits = Array.from({ length: 100 }, (_, n) => new RedialPace().ended(0, n / 100));
    expect(Math.min(...waits)).toBe(0);
    expect(new Set(waits).size).toBe(100);
  });
});
