import { describe, expect, it } from "vitest";
import { RequestTurns, TURN_REQUESTS } from "./request-turns.js";

function virtual() {
  const due: (() => void)[] = [];
  const turns = new RequestTurns((act) => void due.push(act));
  const done: string[] = [];
  const ask = (by: string, name = by, then?: () => void) =>
    turns.do({
      by,
      turn: () => {
        done.push(name);
        then?.();
      },
    });
  /** What was done in the next turn. */
  const next = () => {
    const before = done.length;
    for (const act of due.splice(0)) act();
    return done.slice(before);
  };
  return { ask, due, done, next };
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
    ask("ann", "first", () => ask("ann", "third"));
    ask("ann", "second");
    expect(next()).toEqual(["first", "second", "third"]);
    for (const act of due.splice(0)) act();
    expect(due).toEqual([]);
  });
});
