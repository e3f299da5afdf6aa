import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { type BudgetGrants, largestSlice, Slice, type SlicePlan } from "./slices.js";

/** A small generator of numbers, the same for each seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 374_761_393) >>> 0;
    return ((state >>> 8) / 0x1000000) * below;
  };
}

/** What the gateways write to, each on what it has read. */
class Ledger {
  record: BudgetGrants | undefined;
  revision = 0;

  write(record: BudgetGrants, on: number): boolean {
    if (on !== this.revision) return false;
    this.record = record;
    this.revision++;
    return true;
  }
}

interface Pending {
  readonly plan: SlicePlan;
  readonly revision: number;
}

/** One gateway of a run: its slice, its clock, and a write that is on its way. */
class Gateway {
  slice: Slice;
  pending: Pending | undefined;
  readonly skewMs: number;

  readonly budget: { readonly calls: number; readonly windowMs: number };

  constructor(budget: Gateway["budget"], skewMs: number) {
    this.budget = budget;
    this.slice = new Slice(budget);
    this.skewMs = skewMs;
  }

  restart(): void {
    this.slice = new Slice(this.budget);
    this.pending = undefined;
  }
}

/** An `expect` for each step of thousands of runs would take minutes. */
function demand(holds: boolean, seed: number, what: string): void {
  if (!holds) throw new Error(`seed ${seed}: ${what}`);
}

function run(seed: number): { over: number; slack: number; least: number; limit: number } {
  const random = randomOf(seed);
  const pick = (below: number) => Math.floor(random(below));
  const budget = { calls: 1 + pick(400), windowMs: 600 + pick(6_000) };
  const slotMs = Math.ceil(budget.windowMs / 60);
  const count = 1 + pick(4);
  const gateways = Array.from({ length: count }, () => new Gateway(budget, random(slotMs) - slotMs / 2));
  const ledger = new Ledger();
  const made: number[] = [];
  let nowMs = 1_000_000 + random(10_000);
  for (let step = 0; step < 700; step++) {
    nowMs += random(1) < 0.01 ? random(budget.windowMs) : random(4);
    const gateway = gateways[pick(count)] as Gateway;
    const wallMs = nowMs + gateway.skewMs;
    const { slice } = gateway;
    const what = random(1);
    if (what < 0.6) {
      if (slice.rest(wallMs) > 0) {
        slice.spend();
        made.push(nowMs);
        // Some calls are not sent after all.
        if (random(1) < 0.03) {
          made.pop();
          slice.refund(wallMs);
        }
      } else if (slice.spent(ledger.record, wallMs) >= budget.calls) {
        demand(slice.resetsInMs(ledger.record, wallMs) > 0, seed, "an end of the wait");
      }
      if (gateway.pending === undefined && (slice.rest(wallMs) === 0 || slice.isLow())) {
        const facts = { record: ledger.record, gateways: count, waiting: pick(3), wallMs };
        const plan = slice.exchange(facts);
        if (plan !== undefined) gateway.pending = { plan, revision: ledger.revision };
      }
    } else if (what < 0.95 && gateway.pending !== undefined) {
      const { plan, revision } = gateway.pending;
      gateway.pending = undefined;
      const isWritten = ledger.write(plan.record, revision);
      if (random(1) < 0.02) {
        // No answer came, whether it was written or not.
        slice.forfeit();
      } else if (isWritten) slice.taken(plan);
    } else if (what < 0.97 && gateway.pending === undefined) {
      const left = slice.giveBack(ledger.record, wallMs);
      if (left !== undefined) ledger.write(left, ledger.revision);
      slice.forfeit();
    } else if (what > 0.999) {
      gateway.restart();
    }
    const granted = slice.spent(ledger.record, wallMs);
    demand(granted <= budget.calls, seed, "no more granted than the budget");
    demand((ledger.record?.slots.length ?? 0) <= 63, seed, "no more slots than a window has");
  }
  // The window with the most calls.
  let over = 0;
  for (let from = 0, to = 0; to < made.length; to++) {
    while ((made[to] as number) - (made[from] as number) >= budget.windowMs) from++;
    over = Math.max(over, to - from + 1 - budget.calls);
  }
  return {
    over,
    slack: count * largestSlice(budget.calls, count),
    least: made.length,
    limit: budget.calls,
  };
}

describe("a budget of several gateways", () => {
  it("lets no window have more calls than it and a slice a gateway, in every run with lost answers, kills and clocks apart [budget-slices]", () => {
    let full = 0;
    for (let seed = 1; seed <= histories(3_000); seed++) {
      const { over, slack, least, limit } = run(seed);
      demand(over <= slack, seed, `over by ${over}, of ${slack}`);
      if (least >= limit) full++;
    }
    // It is no budget that lets nobody through.
    expect(full).toBeGreaterThan(histories(500));
  });

  it("is granted to the last call, in pieces that become smaller", () => {
    const budget = { calls: 1_000, windowMs: 60_000 };
    const ledger = new Ledger();
    const slices = [0, 1, 2].map(() => new Slice(budget));
    let made = 0;
    let writes = 0;
    for (let isMore = true; isMore; ) {
      isMore = false;
      for (const slice of slices) {
        if (slice.rest(5_000) === 0) {
          const plan = slice.exchange({ record: ledger.record, gateways: 3, waiting: 1, wallMs: 5_000 });
          if (plan === undefined) continue;
          ledger.write(plan.record, ledger.revision);
          slice.taken(plan);
          writes++;
        }
        slice.spend();
        made++;
        isMore = true;
      }
    }
    expect(made).toBe(1_000);
    expect(writes).toBeLessThan(120);
    expect(slices[0]?.spent(ledger.record, 5_000)).toBe(1_000);
    const waitMs = slices[0]?.resetsInMs(ledger.record, 5_000) ?? 0;
    expect(waitMs).toBeGreaterThan(60_000);
    expect(waitMs).toBeLessThanOrEqual(63_000);
    expect(slices[0]?.spent(ledger.record, 5_000 + waitMs)).toBe(0);
  });

  it("is not blocked for good by what a clock dated that was far ahead", () => {
    const slice = new Slice({ calls: 5, windowMs: 60_000 });
    const record: BudgetGrants = { v: 1, slots: [[1_000_000, 5]] };
    expect(slice.spent(record, 5_000)).toBe(0);
    const plan = slice.exchange({ record, gateways: 1, waiting: 0, wallMs: 5_000 });
    expect(plan?.record.slots).toEqual([[5, 1]]);
  });
});
