import { describe, expect, it } from "vitest";
import { KIB, MIB } from "../sizes.js";
import { SMALL_WORK_BYTES, Turns } from "./turns.js";

function virtual() {
  const due: (() => void)[] = [];
  const turns = new Turns((turn) => void due.push(turn));
  const done: string[] = [];
  const ask = (name: string, bytes: number) => {
    if (turns.take(bytes, () => void done.push(name))) done.push(name);
  };
  /** What was done in the next turn. */
  const next = () => {
    const before = done.length;
    for (const turn of due.splice(0)) turn();
    return done.slice(before);
  };
  return { turns, due, done, ask, next };
}

describe("turns of large work", () => {
  it("have so much of it each, in order, and small work at once [bounded]", () => {
    const { ask, done, due, next } = virtual();
    for (const name of ["a", "b", "c", "d", "e"]) ask(name, 512 * KIB);
    expect(done).toEqual(["a", "b"]);
    ask("renewal", SMALL_WORK_BYTES - 1);
    expect(done).toEqual(["a", "b", "renewal"]);
    expect(next()).toEqual(["c", "d"]);
    // It does not overtake those that wait, also where there is time left.
    ask("f", 64 * KIB);
    expect(next()).toEqual(["e", "f"]);
    expect(next()).toEqual([]);
    expect(due).toEqual([]);
  });

  it("have one for what is larger than a turn, and what is asked for in a turn waits for the next", () => {
    const { turns, ask, done, next } = virtual();
    ask("large", 40 * MIB);
    ask("a", MIB);
    turns.take(MIB, () => {
      done.push("b");
      ask("c", MIB);
    });
    expect(done).toEqual(["large"]);
    expect(next()).toEqual(["a"]);
    expect(next()).toEqual(["b"]);
    expect(next()).toEqual(["c"]);
  });
});
