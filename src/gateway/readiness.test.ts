import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { seeded } from "../../test/faults/random.js";
import { READY_WITHIN_MS, Readiness } from "./readiness.js";

describe("a gateway's readiness", () => {
  it("is not there before its servers are being started", () => {
    const readiness = new Readiness();
    expect(readiness.isReady(1e9)).toBe(false);
    readiness.begin([], 0);
    expect(readiness.isReady(0)).toBe(true);
  });

  it("comes when the last was tried or the time is over, and stays, in any order of events", () => {
    for (let seed = 1; seed <= histories(2_000); seed++) {
      const random = seeded(seed);
      const readiness = new Readiness();
      const names = Array.from({ length: random.int(6) }, (_, n) => `s${n}`);
      let nowMs = random.int(1_000_000);
      const begunMs = nowMs;
      readiness.begin(names, nowMs);
      const left = new Set(names);
      let wasReady = false;
      for (let step = 0; step < 20; step++) {
        nowMs += random.int(800);
        const name = `s${random.int(8)}`;
        if (random.chance(0.3)) {
          readiness.tried(name);
          left.delete(name);
        }
        // Nobody may have asked while it was ready for the first time.
        if (random.chance(0.5)) continue;
        wasReady ||= left.size === 0 || nowMs - begunMs >= READY_WITHIN_MS;
        expect([seed, step, readiness.isReady(nowMs)]).toEqual([seed, step, wasReady]);
      }
    }
  });
});
