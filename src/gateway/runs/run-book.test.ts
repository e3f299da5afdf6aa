import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { RunBook, type RunRecord } from "./run-book.js";

const record = (principal: string, hash = "aa"): RunRecord => ({
  principal,
  role: "default",
  hash,
  client: "claude",
  startedAt: 0,
  isNamed: false,
});

/** A small generator of numbers that a seed repeats. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

describe("the book of runs", () => {
  it("takes 1,000 at once and says what to do with one more [bounded]", () => {
    const book = new RunBook();
    for (let i = 0; i < 1_000; i++) book.begin(`r${i}`, record(`p${i}`));
    expect(() => book.begin("one more", record("p"))).toThrow(/1000 runs already.*Wait/);
    book.end("r0");
    expect(book.begin("one more", record("p"))).toEqual([]);
  });

  it("lets a run come back for 60 seconds after a restart, with its own secret alone [run-own]", () => {
    const book = new RunBook();
    book.restore("r1", record("p1", "11"), 1_000);
    expect(book.resume("r1", "22")).toBe(false);
    expect(book.resume("r2", "11")).toBe(false);
    expect(book.due(1_000 + 59_999)).toEqual([]);
    expect(book.resume("r1", "11")).toBe(true);
    expect(book.due(1_000 + 60_000)).toEqual([]);
    // A second process that knows the secret does not hold it too.
    expect(book.resume("r1", "11")).toBe(false);
  });

  it("refuses a second run of one principal while the first holds its connection, and replaces one that is away [run-own]", () => {
    const book = new RunBook();
    book.begin("r1", record("me"));
    expect(() => book.begin("r2", record("me"))).toThrow(/"me" is under way.*choose another id/);
    book.end("r1");
    book.restore("r3", record("me"), 0);
    expect(book.begin("r4", record("me"))).toEqual(["r3"]);
    expect(book.entries().map(({ run }) => run)).toEqual(["r4"]);
  });

  it("whatever happens, nobody is away for longer than the limit, and one principal is held once [run-own] [bounded]", () => {
    for (let seed = 1; seed <= histories(100); seed++) {
      const next = numbers(seed);
      let book = new RunBook();
      let nowMs = 0;
      let since = 0;
      for (let step = 0; step < 60; step++) {
        nowMs += next(20_000);
        const run = `r${next(8)}`;
        const action = next(5);
        try {
          if (action === 0) book.begin(`r${step}-${seed}`, record(`p${next(4)}`, `h${run}`));
          else if (action === 1) book.end(run);
          else if (action === 2) for (const { run: one, record: kept } of book.entries()) book.resume(one, kept.hash);
          else if (action === 3) {
            const restarted = new RunBook();
            for (const { run: one, record: kept } of book.entries()) restarted.restore(one, kept, nowMs);
            book = restarted;
            since = nowMs;
          }
        } catch {
          // Refused: nothing has changed.
        }
        for (const one of book.due(nowMs)) book.end(one);
        const away = book.entries().filter(({ isHeld }) => !isHeld);
        const held = book.entries().filter(({ isHeld }) => isHeld);
        if (nowMs - since >= 60_000) expect(away, `seed ${seed}`).toEqual([]);
        const principals = held.map(({ record: { principal } }) => principal);
        expect(new Set(principals).size, `seed ${seed}`).toBe(principals.length);
        expect(book.isAwaiting).toBe(away.length > 0);
      }
    }
  });
});
