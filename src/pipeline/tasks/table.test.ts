import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { ownName } from "../../contracts/names.js";
import { type TaskRecord, TaskTable } from "./table.js";

const DAY_MS = 24 * 60 * 60 * 1000;

function record(principal: string, at: number, more: Partial<TaskRecord> = {}): TaskRecord {
  const own = ownName("1");
  return { server: "s", place: "", own, tool: null, principal, era: "legacy", at, until: null, ended: false, ...more };
}

/** The same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed + 1;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

describe("the table of tasks", () => {
  it("lets go of the oldest that has ended, and of none that has not [bounded]", () => {
    const table = new TaskTable({ ofPrincipal: 3, all: 10 });
    const [one, two, three] = [record("ann", 1), record("ann", 2, { ended: true }), record("ann", 3, { ended: true })];
    for (const [key, of] of [
      ["one", one],
      ["two", two],
      ["three", three],
    ] as const)
      table.put(key, of, 3);
    expect(table.put("four", record("ann", 4), 4)).toEqual({ kind: "put", evicted: ["two"] });
    expect(table.put("five", record("ann", 5), 5)).toEqual({ kind: "put", evicted: ["three"] });
    expect(table.put("six", record("ann", 6), 6)).toEqual({ kind: "full", whose: "principal" });
    expect(table.hasRoom("ann", 6)).toBe(false);
    expect(table.put("bob's", record("bob", 6), 6)).toEqual({ kind: "put", evicted: [] });
    one.ended = true;
    expect(table.put("six", record("ann", 6), 6)).toEqual({ kind: "put", evicted: ["one"] });
  });

  it("takes a task to have ended when its time is over, when it is a week old, and when the clock was set back", () => {
    const table = new TaskTable({ ofPrincipal: 1, all: 10 });
    table.put("timed", record("ann", 0, { until: 100 }), 0);
    expect(table.hasRoom("ann", 99)).toBe(false);
    expect(table.hasRoom("ann", 100)).toBe(true);
    table.put("endless", record("bob", 0), 0);
    expect(table.hasRoom("bob", 7 * DAY_MS)).toBe(false);
    expect(table.hasRoom("bob", 7 * DAY_MS + 1)).toBe(true);
    table.put("future", record("cid", 30 * DAY_MS), 30 * DAY_MS);
    expect(table.hasRoom("cid", 0)).toBe(true);
  });

  it("gives a key to whoever began a task under it last", () => {
    const table = new TaskTable();
    table.put("key", record("ann", 1), 1);
    table.put("key", record("bob", 2), 2);
    expect(table.get("key")?.principal).toBe("bob");
    expect([...table.of("ann", undefined)]).toEqual([]);
    expect([...table.of("bob", undefined)]).toHaveLength(1);
  });

  it("stays within its bounds, and lists what it has from any position on, whatever comes [bounded]", () => {
    for (let seed = 0; seed < histories(100); seed++) expect(flawOf(seed), `seed ${seed}`).toBeUndefined();
  });
});

/** What is wrong with a table after some random event; undefined where nothing ever is. */
function flawOf(seed: number): string | undefined {
  const roll = random(seed);
  const limits = { ofPrincipal: 4, all: 9 };
  const table = new TaskTable(limits);
  const live = new Set<string>();
  for (let nowMs = 0; nowMs < 120; nowMs++) {
    const key = `k${Math.floor(roll() * 40)}`;
    const principal = `p${Math.floor(roll() * 4)}`;
    const known = table.get(key);
    live.delete(key);
    if (roll() < 0.4 && known !== undefined) known.ended = true;
    else {
      const admitted = table.put(key, record(principal, nowMs), nowMs);
      if (admitted.kind === "put" && admitted.evicted.some((one) => live.has(one))) return "a live one had to go";
      if (admitted.kind === "put") live.add(key);
    }
    const all = ["p0", "p1", "p2", "p3"].map((of) => [...table.of(of, undefined)]);
    if (all.flat().length !== table.size || table.size > limits.all) return "too many, or not listed";
    if ([...live].some((one) => table.get(one) === undefined)) return "a live one is gone";
    for (const own of all) {
      if (own.length > limits.ofPrincipal) return "too many of one principal";
      const [first, ...rest] = own;
      if (first === undefined) continue;
      const behind = [...table.of(first[1].principal, { at: first[1].at, key: first[0] })];
      if (JSON.stringify(behind) !== JSON.stringify(rest)) return "a position does not hold";
    }
  }
  return undefined;
}
