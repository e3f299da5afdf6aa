import { describe, expect, it } from "vitest";
import { KIB, MIB } from "../sizes.js";
import { SMALL_WORK_BYTES, TURN_BYTES, Turns } from "./turns.js";

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

  it("have no more than that together, where each of them is most of a turn [bounded]", () => {
    const { ask, done, next } = virtual();
    for (const name of ["a", "b", "c"]) ask(name, 700 * KIB);
    expect(done).toEqual(["a"]);
    expect(next()).toEqual(["b"]);
    expect(next()).toEqual(["c"]);
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

  it("are had one after the other by those who do long work piece by piece [bounded]", async () => {
    const { turns, done, due, next } = virtual();
    const work = async (name: string, pieces: number) => {
      for (let n = 0; n < pieces; n++) {
        await turns.wait(TURN_BYTES);
        done.push(name);
      }
    };
    const all = Promise.all([work("a", 3), work("b", 1), work("c", 2)]);
    const seen: string[] = [];
    while (due.length > 0) {
      await new Promise((settled) => setImmediate(settled));
      seen.push(done.splice(0).join(""));
      next();
    }
    await all;
    expect([...seen, done.join("")].join(" ").trim()).toBe("a b c a c a");
  });
});
