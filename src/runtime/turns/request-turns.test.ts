import { describe, expect, it } from "vitest";
import { RequestTurns, TURN_MS, TURN_REQUESTS } from "./request-turns.js";

function virtual() {
  const due: (() => void)[] = [];
  let nowMs = 0;
  const turns = new RequestTurns(
    (act) => void due.push(act),
    () => nowMs,
  );
  const done: string[] = [];
  const ask = (by: string, name = by, { takesMs = 0, brings = () => {} } = {}) =>
    turns.do({
      by,
      turn: () => {
        done.push(name);
        nowMs += takesMs;
        brings();
      },
    });
  /** What was done in the next turn. */
  const next = () => {
    const before = done.length;
    for (const act of due.splice(0)) act();
    return done.slice(before);
  };
  return { turns, ask, due, done, next };
}

describe("requests that come at once", () => {
  it("are so many in each turn, and the loop is asked for no turn where there are fewer [bounded]", () => {
    const { ask, done, due, next } = virtual();
    for (let n = 0; n < TURN_REQUESTS; n++) ask("flood");
    expect([done.length, due.length]).toEqual([TURN_REQUESTS, 0]);
    for (let n = 0; n < TURN_REQUESTS * 2 + 1; n++) ask("flood");
    expect([done.length, due.length]).toEqual([TURN_REQUESTS, 1]);
    expect(next().length).toBe(TURN_REQUESTS);
    expect(next().length).toBe(TURN_REQUESTS);
    expect(next().length).toBe(1);
    expect(due).toEqual([]);
    // Of that turn something is left.
    ask("ann");
    expect(done.at(-1)).toBe("ann");
  });

  it("are no more in a turn than there is time for, however few that are [bounded]", () => {
    const { ask, done, due, next } = virtual();
    for (let n = 0; n < 8; n++) ask("flood", `${n}`, { takesMs: TURN_MS * 0.4 });
    expect(done).toEqual(["0", "1", "2"]);
    expect(next()).toEqual(["3", "4", "5"]);
    ask("flood", "long", { takesMs: TURN_MS * 20 });
    ask("flood", "last");
    expect(next()).toEqual(["6", "7", "long"]);
    expect(next()).toEqual(["last"]);
    expect(due).toEqual([]);
  });

  it("are done for each principal in turn, in the order in which they came [one-bad-server]", () => {
    const { ask, next } = virtual();
    for (let n = 0; n < TURN_REQUESTS; n++) ask("flood");
    for (let n = 0; n < 1_000; n++) ask("flood", `flood ${n}`);
    for (const n of [1, 2]) ask("ann", `ann ${n}`);
    expect(next().slice(0, 4)).toEqual(["flood 0", "ann 1", "flood 1", "ann 2"]);
  });

  it("wait behind those that wait, also where one of them brings another", () => {
    const { ask, due, next } = virtual();
    for (let n = 0; n < TURN_REQUESTS; n++) ask("flood");
    ask("ann", "first", { brings: () => ask("ann", "third") });
    ask("ann", "second");
    expect(next()).toEqual(["first", "second", "third"]);
    for (const act of due.splice(0)) act();
    expect(due).toEqual([]);
  });
});

describe("steps of long work", () => {
  it("are one in each turn, of each principal in turn, and never in the turn in which they are asked for [bounded]", async () => {
    const { turns, ask, done, next } = virtual();
    const work = async (by: string, name: string) => {
      for (let n = 1; n <= 2; n++) {
        await turns.step(by);
        done.push(`${name} ${n}`);
      }
    };
    const all = [work("flood", "a"), work("flood", "b"), work("flood", "c"), work("ann", "ann")];
    const steps: string[][] = [];
    for (let turn = 0; turn < 9; turn++) {
      next();
      const before = done.length;
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(done.slice(before));
      // A small one that comes meanwhile waits for no more than a step of each.
      if (turn === 1) ask("eve");
    }
    await Promise.all(all);
    expect(steps).toEqual([["a 1"], ["ann 1"], ["b 1"], ["ann 2"], ["c 1"], ["a 2"], ["b 2"], ["c 2"], []]);
    expect(done).toContain("eve");
  });
});
