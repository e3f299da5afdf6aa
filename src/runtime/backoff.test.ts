import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { TestClock } from "../../test/fixtures/test-clock.js";
import { backoffCeiling, fullJitter } from "./backoff.js";
import { systemClock } from "./clock.js";

const LIMITS = { baseMs: 100, maxMs: 5_000 };

describe("backoff", () => {
  it("doubles to its ceiling and stays there", () => {
    expect([0, 1, 2, 3, 4, 5, 6, 7].map((n) => backoffCeiling(n, LIMITS))).toEqual([
      100, 200, 400, 800, 1600, 3200, 5000, 5000,
    ]);
    expect(backoffCeiling(5_000, LIMITS)).toBe(5_000);
  });

  it("is anywhere below the ceiling, whatever the attempt", () => {
    fc.assert(
      fc.property(fc.nat(), fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (attempt, random) => {
        const wait = fullJitter(attempt, random, LIMITS);
        return wait >= 0 && wait <= backoffCeiling(attempt, LIMITS) && wait <= LIMITS.maxMs;
      }),
      { numRuns: histories(2_000) },
    );
  });
});

describe("the clock of tests", () => {
  it("goes forward", () => {
    const before = systemClock.now();
    expect(systemClock.now()).toBeGreaterThanOrEqual(before);
    expect(Math.abs(systemClock.wall() - Date.now())).toBeLessThan(1_000);
  });

  it("stands still until moved, and its wall jumps alone", () => {
    const clock = new TestClock(1_000);
    clock.advance(5);
    clock.jumpWall(-500);
    expect([clock.now(), clock.wall()]).toEqual([5, 505]);
    expect(() => clock.advance(-1)).toThrow(RangeError);
  });
});
