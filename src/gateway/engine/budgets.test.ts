// What a gateway holds of a budget that several have together, where the engine does not take it back.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { BudgetGrants } from "../../policy/slices.js";
import { MemoryMap } from "../../store/memory-map.js";
import { StoreError } from "../../store/store-error.js";
import { SharedBudgets } from "./budgets.js";

beforeEach(() => vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] }));
afterEach(() => vi.useRealTimers());

it("is handed back when the engine is there again, also where it was away at the first try [budget-slices]", async () => {
  let nowMs = 1_000_000;
  let isAway = false;
  const map = new (class extends MemoryMap<BudgetGrants> {
    override async update(key: string, value: BudgetGrants, revision: number) {
      if (isAway) throw new StoreError("away", "nobody answers");
      return super.update(key, value, revision);
    }
  })("budgets");
  const granted = () => {
    const [entry] = [...map.entries()];
    return entry?.[1].slots.reduce((sum, [, calls]) => sum + calls, 0);
  };
  const budgets = new SharedBudgets({
    map,
    gateways: () => ["a"],
    self: "a",
    status: () => ({ state: "connected" }) as never,
    now: () => nowMs,
    wall: () => nowMs,
  });
  const window = budgets.window("principal", "ann", { calls: 1_600, windowMs: 3_600_000 });
  const asked = window.full(nowMs);
  if (asked === undefined || !("answered" in asked)) throw new Error("it was not asked");
  await asked.answered;
  window.add();
  expect(granted()).toBeGreaterThan(1);
  const looks = async (times: number) => {
    for (let n = 0; n < times; n++) {
      nowMs += 1_000;
      vi.advanceTimersByTime(1_000);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
  };
  isAway = true;
  await looks(3);
  expect(granted()).toBeGreaterThan(1);
  isAway = false;
  await looks(3);
  expect(granted()).toBe(1);
  await budgets.close();
});
