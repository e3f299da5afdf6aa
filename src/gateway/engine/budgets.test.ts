// What a gateway holds of a budget that several have together, where the engine does not take it back, and what calls are told.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { WindowFull } from "../../contracts/engine/budgets.js";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import { budgetFault } from "../../policy/budget.js";
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

/** A budget of an hour, counted in `map`. */
function hourly(map: MemoryMap<BudgetGrants>, calls: number) {
  const options = { map, gateways: () => ["a"], self: "a", now: () => 1_000_000, wall: () => 1_000_000 };
  const budgets = new SharedBudgets({ ...options, status: () => ({ state: "connected" }) as never });
  const window = budgets.window("principal", "ann", { calls, windowMs: 3_600_000 });
  return { budgets, window, full: () => window.full(1_000_000) };
}

it("is never called unanswered because other gateways were faster: whoever waits looks again [budget-slices]", async () => {
  let races = 0;
  const map = new (class extends MemoryMap<BudgetGrants> {
    override async create(key: string, value: BudgetGrants) {
      return ++races < 200 ? undefined : super.create(key, value);
    }
  })("budgets");
  const { budgets, full } = hourly(map, 1_600);
  for (let asked = full(); asked !== undefined; asked = full()) {
    if (!("answered" in asked)) throw new Error(JSON.stringify(asked));
    await asked.answered;
  }
  expect(races).toBe(200);
  await budgets.close();
});

it("names limit, spent and reset in whatever it refuses, also where too many calls wait for the engine [budget-slices]", async () => {
  let answer = () => {};
  const map = new (class extends MemoryMap<BudgetGrants> {
    override async create(key: string, value: BudgetGrants) {
      await new Promise<void>((resolve) => {
        answer = resolve;
      });
      return super.create(key, value);
    }
  })("budgets");
  const { budgets, window, full } = hourly(map, 1_600);
  const waits: Promise<void>[] = [];
  let refused = full();
  for (; refused !== undefined && "answered" in refused; refused = full()) waits.push(refused.answered);
  if (refused === undefined) throw new Error("it was let through");
  const { calls: limit, windowMs } = window;
  const told = budgetFault({ scope: "principal", limit, windowMs, ...refused }, "any").message;
  expect(told).toBe(
    "Your call budget (1600 calls in 3600 s, 0 made) has 1000 calls that wait for what is left of it. Nothing was sent. Try again in 1 s.",
  );
  answer();
  await Promise.all(waits);
  expect(full()).toBeUndefined();
  await budgets.close();
});

it("is spent to the end of what was taken of it without the engine, and then refused with the time of the next try [engine-away] [budget-slices]", async () => {
  const nowMs = 1_000_000;
  const engine: { now: Pick<EngineStatus, "state" | "nextTryMs"> & Partial<EngineStatus> } = {
    now: { state: "connected", nextTryMs: undefined },
  };
  const map = new (class extends MemoryMap<BudgetGrants> {
    override async update(key: string, value: BudgetGrants, revision: number) {
      if (engine.now.state !== "connected") throw new StoreError("away", "nobody answers");
      return super.update(key, value, revision);
    }
  })("budgets");
  const budgets = new SharedBudgets({
    map,
    gateways: () => ["a"],
    self: "a",
    status: () => engine.now as EngineStatus,
    now: () => nowMs,
    wall: () => nowMs,
  });
  const window = budgets.window("principal", "ann", { calls: 1_600, windowMs: 3_600_000 });
  const asked = window.full(nowMs);
  if (asked === undefined || !("answered" in asked)) throw new Error("it was not asked");
  await asked.answered;
  for (const state of ["away", "refused"] as const) {
    engine.now = { state, nextTryMs: nowMs + 700 };
    let made = 0;
    for (; window.full(nowMs) === undefined && made < 1_600; made++) window.add();
    // The first finds a slice, and leaves nothing of it.
    expect(made > 0).toBe(state === "away");
    const refused = window.full(nowMs);
    expect(refused).toMatchObject({ resetsInMs: 700, isUnanswered: true });
    const { calls: limit, windowMs } = window;
    const told = budgetFault({ scope: "principal", limit, windowMs, ...(refused as WindowFull) }, "any").message;
    expect(told).toMatch(
      /^Your call budget \(1600 calls in 3600 s, \d+ made\) cannot be asked for: the engine that counts it does not answer\. Nothing was sent\. Try again in 700 ms\.$/,
    );
  }
  // It is connected, and nobody there leads.
  engine.now = { state: "connected", nextTryMs: undefined, mute: { sinceMs: 0, why: "It tells nothing." } };
  expect(window.full(nowMs)).toMatchObject({ resetsInMs: 1_000, isUnanswered: true });
  await budgets.close();
});
