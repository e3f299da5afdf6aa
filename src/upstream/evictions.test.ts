import { describe, expect, it } from "vitest";
import { Evictions } from "./evictions.js";

const SHARED = { name: "shared" };
const BESIDE = Array.from({ length: 4 }, (_, at) => ({ name: `beside ${at}` }));

describe("whether sessions put each other out", () => {
  it("is known where each that is opened ends the one before, three times within a minute [told-truly]", () => {
    const evictions = new Evictions<object>();
    const [other] = BESIDE as [object];
    const told: boolean[] = [];
    let nowMs = 0;
    evictions.opened(SHARED, nowMs);
    for (let n = 0; !told.includes(true) && n < 20; n++) {
      const [opened, forgotten] = n % 2 === 0 ? [other, SHARED] : [SHARED, other];
      evictions.opened(opened, ++nowMs);
      told.push(evictions.gone(forgotten, ++nowMs));
    }
    expect(told.length).toBeLessThanOrEqual(6);
    expect(told.at(-1)).toBe(true);
  });

  it("is not said of a server that was restarted, and forgot all of them, in whatever order that is noticed", () => {
    for (const order of [[...BESIDE, SHARED], [SHARED, ...BESIDE], [...BESIDE].reverse().concat(SHARED)]) {
      const evictions = new Evictions<object>();
      let nowMs = 0;
      for (const session of [SHARED, ...BESIDE]) evictions.opened(session, ++nowMs);
      // Twice within a minute.
      for (let restart = 0; restart < 2; restart++) {
        for (const session of order) {
          expect(evictions.gone(session, ++nowMs)).toBe(false);
          evictions.opened(session, ++nowMs);
        }
      }
    }
  });

  it("is not said where sessions are forgotten once in a while, as idle ones are", () => {
    const evictions = new Evictions<object>();
    const [other] = BESIDE as [object];
    let nowMs = 0;
    for (let n = 0; n < 20; n++) {
      evictions.opened(SHARED, nowMs);
      evictions.opened(other, ++nowMs);
      nowMs += 60_000;
      expect(evictions.gone(SHARED, nowMs)).toBe(false);
    }
  });
});
