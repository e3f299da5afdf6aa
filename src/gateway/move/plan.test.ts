import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { digestOf, mergeByTime, planList, planMap, sumOfLists, sumOfMap } from "./plan.js";

const keys = fc.constantFrom("a", "b", "c", "d", "e");
const values = fc.constantFrom("1", "2", "3");
const index = fc.array(fc.tuple(keys, values), { maxLength: 8 }).map((entries) => new Map<string, string>(entries));
const list = fc.array(values, { maxLength: 8 });
const RUNS = { numRuns: histories(5_000) };

describe("a plan for a map", () => {
  it("comes to what the source has, and writes nothing that is the same, where the target has a copy", () => {
    fc.assert(
      fc.property(index, index, (source, target) => {
        const plan = planMap("m", source, target, true);
        const after = new Map(target);
        for (const key of plan.put) {
          expect(after.get(key)).not.toBe(source.get(key));
          after.set(key, source.get(key) ?? "");
        }
        for (const key of plan.remove) after.delete(key);
        expect(sumOfMap(after)).toEqual(sumOfMap(source));
        expect(plan.conflicts).toEqual([]);
        expect(plan.same + plan.put.length).toBe(source.size);
        // Once more there is nothing to do.
        expect(planMap("m", source, after, true)).toMatchObject({ put: [], remove: [] });
      }),
      RUNS,
    );
  });

  it("touches nothing that is another's, and names each of it", () => {
    fc.assert(
      fc.property(index, index, (source, target) => {
        const plan = planMap("m", source, target, false);
        const others = [...target].filter(([key, value]) => source.get(key) !== value).map(([key]) => key);
        expect(new Set(plan.conflicts.map(({ key }) => key))).toEqual(new Set(others));
        expect(plan.conflicts).toHaveLength(others.length);
        expect(plan.remove).toEqual([]);
        for (const key of plan.put) expect(target.has(key)).toBe(false);
      }),
      RUNS,
    );
  });
});

describe("a plan for a list", () => {
  const nameOf = (at: number) => `item ${at}`;

  it("keeps what is the same from the start, and comes to the source's order", () => {
    fc.assert(
      fc.property(list, list, (source, target) => {
        const { same, remove, append } = planList("l", source, target, true, nameOf);
        const kept = target.slice(0, target.length - remove);
        expect(kept).toHaveLength(same);
        expect([...kept, ...source.slice(source.length - append)]).toEqual(source);
      }),
      RUNS,
    );
  });

  it("goes on behind what is there, and names the first that is another's", () => {
    expect(planList("l", ["1", "2", "3"], ["1"], false, nameOf)).toEqual({
      same: 1,
      remove: 0,
      append: 2,
      conflicts: [],
    });
    const { conflicts } = planList("l", ["1", "2"], ["1", "3", "4"], false, nameOf);
    expect(conflicts).toEqual([
      { kind: "l", key: "item 1", why: "is there already, and not in this place at the source" },
    ]);
  });
});

describe("several lists that become one", () => {
  it("keep each its order, lose nothing, and are by time where each is", () => {
    const times = fc.array(fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 6 }), { maxLength: 5 });
    fc.assert(
      fc.property(times, (lists) => {
        const turns = mergeByTime(lists);
        for (const [n, own] of lists.entries()) {
          expect(turns.filter((turn) => turn.list === n).map((turn) => turn.index)).toEqual([...own.keys()]);
        }
        if (lists.every((own) => own.every((at, n) => n === 0 || at >= (own[n - 1] ?? 0)))) {
          const merged = turns.map((turn) => lists[turn.list]?.[turn.index] ?? 0);
          expect(merged).toEqual([...merged].sort((a, b) => a - b));
        }
      }),
      RUNS,
    );
  });
});

describe("a sum", () => {
  it("tells what differs in a key, a value, the order, the place or a part that is missing, and no empty list", () => {
    const sums = [
      sumOfMap(new Map([["a", "1"]])),
      sumOfMap(new Map([["b", "1"]])),
      sumOfMap(new Map([["a", "2"]])),
      sumOfLists(new Map([[0, ["1", "2"]]])),
      sumOfLists(new Map([[0, ["2", "1"]]])),
      sumOfLists(new Map([[1, ["1", "2"]]])),
    ];
    expect(new Set(sums.map(({ hash }) => hash)).size).toBe(sums.length);
    const withEmpty = new Map([
      [3, []],
      [0, ["1", "2"]],
    ]);
    expect(sumOfLists(withEmpty)).toEqual(sumOfLists(new Map([[0, ["1", "2"]]])));
    expect(
      new Set([digestOf(["a", undefined]), digestOf(["a"]), digestOf(["a", "null"]), digestOf(["a", ""])]).size,
    ).toBe(4);
  });
});
