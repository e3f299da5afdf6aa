import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { IndexedSet, NOWHERE, Table } from "./table.js";

const key = fc.oneof(fc.integer({ min: -5, max: 40 }), fc.integer({ min: -5, max: 40 }).map(String), fc.double());
const step = fc.record({ act: fc.constantFrom("set", "set", "delete", "get", "clear"), key, value: fc.integer() });

describe("Table", () => {
  it("does what a Map does", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const table = new Table<string | number, number>();
        const model = new Map<string | number, number>();
        for (const { act, key: at, value } of steps) {
          if (Number.isNaN(at)) continue;
          if (act === "set") {
            table.set(at, value);
            model.set(at, value);
          } else if (act === "delete") expect(table.delete(at)).toBe(model.delete(at));
          else if (act === "get") expect(table.get(at)).toBe(model.get(at));
          else if (value % 10 === 0) {
            table.clear();
            model.clear();
          }
          expect(table.size).toBe(model.size);
        }
        const inOrder = (values: Iterable<number>) => [...values].sort((a, b) => a - b);
        expect(inOrder(table.values())).toEqual(inOrder(model.values()));
        for (const [at, value] of model) expect(table.get(at)).toBe(value);
      }),
      { numRuns: histories(2_000) },
    );
  });

  it("tells 1 from its text", () => {
    const table = new Table<string | number, string>();
    table.set(1, "number");
    table.set("1", "text");
    expect([table.get(1), table.get("1"), table.size]).toEqual(["number", "text", 2]);
  });
});

describe("IndexedSet", () => {
  it("does what a Set does", () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.boolean(), fc.nat(30)), { maxLength: 200 }), (steps) => {
        const items = Array.from({ length: 31 }, (_, id) => ({ id, place: NOWHERE }));
        const set = new IndexedSet<{ id: number; place: number }>();
        const model = new Set<unknown>();
        for (const [isAdd, id] of steps) {
          const item = items[id] as { id: number; place: number };
          if (isAdd) {
            set.add(item);
            model.add(item);
          } else {
            set.delete(item);
            model.delete(item);
          }
          expect(set.size).toBe(model.size);
        }
        expect(new Set(set.all())).toEqual(model);
      }),
      { numRuns: histories(2_000) },
    );
  });
});
