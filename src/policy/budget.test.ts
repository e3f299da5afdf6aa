import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import type { CallBudget } from "../contracts/settings.js";
import { toRpcError } from "../protocol/errors.js";
import { type BudgetExceeded, budgetFault, compileBudgets, isCharged } from "./budget.js";

const ME = { id: "me", role: "dev" };
const OTHER = { id: "other", role: "dev" };
const GUEST = { id: "guest", role: "guest" };

const budgetsOf = (dev: CallBudget | undefined, server: CallBudget | undefined = undefined) => {
  const made = compileBudgets(
    { roles: { dev: { budget: dev }, guest: {} }, servers: [{ name: "s", budget: server }] },
    undefined,
  );
  if (made === undefined) throw new Error("no budget");
  return made;
};

describe("budgets", () => {
  it("are none where none is configured", () => {
    expect(compileBudgets({ roles: { dev: {} }, servers: [{ name: "s" }] }, undefined)).toBeUndefined();
  });

  it("are for each principal of a role, and for nobody else", () => {
    const budgets = budgetsOf({ calls: 2, windowMs: 60_000 });
    for (let i = 0; i < 2; i++) expect(budgets.charge(ME, "s", 10)).toBeUndefined();
    expect(budgets.charge(ME, "s", 10)).toMatchObject({ scope: "principal", limit: 2, spent: 2 });
    expect(budgets.charge(ME, "elsewhere", 10)).toMatchObject({ scope: "principal" });
    expect(budgets.charge(OTHER, "s", 10)).toBeUndefined();
    for (let i = 0; i < 9; i++) expect(budgets.charge(GUEST, "s", 10)).toBeUndefined();
  });

  it("of a server are shared by all, and a refusal there costs the principal nothing", () => {
    const budgets = budgetsOf({ calls: 3, windowMs: 60_000 }, { calls: 2, windowMs: 60_000 });
    expect(budgets.charge(ME, "s", 0)).toBeUndefined();
    expect(budgets.charge(GUEST, "s", 0)).toBeUndefined();
    for (let i = 0; i < 5; i++)
      expect(budgets.charge(ME, "s", 0)).toMatchObject({ scope: "server", limit: 2, spent: 2 });
    for (let i = 0; i < 2; i++) expect(budgets.charge(ME, "other", 0)).toBeUndefined();
    expect(budgets.charge(ME, "other", 0)).toMatchObject({ scope: "principal", spent: 3 });
  });

  it("get back what was not sent, and nothing that their window has left behind", () => {
    const budgets = budgetsOf({ calls: 2, windowMs: 60_000 }, { calls: 2, windowMs: 60_000 });
    budgets.charge(ME, "s", 0);
    budgets.charge(ME, "s", 30_000);
    budgets.refund(ME, "s", 30_000, 31_000);
    expect(budgets.charge(ME, "s", 31_000)).toBeUndefined();
    expect(budgets.charge(ME, "s", 31_000)).toMatchObject({ scope: "principal", spent: 2 });
    // What it was charged for is over by itself.
    budgets.refund(ME, "s", 31_000, 200_000);
    for (let i = 0; i < 2; i++) expect(budgets.charge(ME, "s", 200_000)).toBeUndefined();
    budgets.refund(ME, "s", 31_000, 200_000);
    expect(budgets.charge(ME, "s", 200_000)).toMatchObject({ scope: "principal", spent: 2 });
  });

  it("refuse with limit, spent and when it resets, in words that an agent can act on", () => {
    const budgets = budgetsOf({ calls: 1, windowMs: 60_000 });
    budgets.charge(ME, "s", 0);
    const over = budgets.charge(ME, "s", 30_000) as BudgetExceeded | undefined;
    if (over === undefined) throw new Error("not refused");
    const error = toRpcError(budgetFault(over, "s"));
    expect(error.code).toBe(-31006);
    expect(error.message).toBe(
      "Your call budget is spent: 1 calls in 60 s, 1 made. Nothing was sent. Try again in 31 s.",
    );
    expect(error.data).toEqual({
      fault: "budget",
      scope: "principal",
      limit: 1,
      spent: 1,
      windowMs: 60_000,
      resetsInMs: 31_000,
    });
    expect(budgetFault({ ...over, scope: "server" }, "wiki").message).toContain('Server "wiki"\'s call budget');
  });

  it("go on counting over a reload, with the new limit", () => {
    const config = (calls: number, windowMs = 60_000) => ({
      roles: { dev: { budget: { calls, windowMs } } },
      servers: [],
    });
    const first = compileBudgets(config(5), undefined);
    for (let i = 0; i < 4; i++) expect(first?.charge(ME, "s", i * 10_000)).toBeUndefined();
    const lower = compileBudgets(config(2), first);
    const over = lower?.charge(ME, "s", 30_000) as BudgetExceeded | undefined;
    expect(over).toMatchObject({ limit: 2, spent: 4 });
    // Three have to leave the window before one more fits.
    expect(lower?.charge(ME, "s", 30_000 + (over?.resetsInMs ?? 0) - 1)).toBeDefined();
    expect(lower?.charge(ME, "s", 30_000 + (over?.resetsInMs ?? 0))).toBeUndefined();
    expect(compileBudgets(config(1, 5_000), lower)?.charge(ME, "s", 90_000)).toBeUndefined();
  });

  it("know ten thousand principals, and refuse more until a window is over [bounded]", () => {
    const budgets = budgetsOf({ calls: 1, windowMs: 1000 });
    for (let i = 0; i < 10_000; i++) expect(budgets.charge({ id: `p${i}`, role: "dev" }, "s", 0)).toBeUndefined();
    expect(budgets.charge(ME, "s", 0)).toMatchObject({ scope: "principal" });
    expect(budgets.charge(ME, "s", 2000)).toBeUndefined();
  });

  it("charge calls, reads and what is unknown, not what belongs to a call", () => {
    for (const method of ["tools/call", "prompts/get", "resources/read", "vendor/thing"]) {
      expect(isCharged(method)).toBe(true);
    }
    for (const method of ["tasks/get", "completion/complete", "logging/setLevel"])
      expect(isCharged(method)).toBe(false);
  });
});

describe("for every budget and every history of calls", () => {
  const budget = fc.record({ calls: fc.integer({ min: 0, max: 12 }), windowMs: fc.integer({ min: 1, max: 5000 }) });
  // Steps from nothing to beyond a window, with fractions as a real clock has them.
  const steps = fc.array(fc.oneof(fc.integer({ min: 0, max: 40 }), fc.double({ min: 0, max: 6000, noNaN: true })), {
    minLength: 1,
    maxLength: 120,
  });

  it("no span of a window has more calls than the limit, and a refusal ends when it says", () => {
    fc.assert(
      fc.property(budget, fc.double({ min: 0, max: 1e9, noNaN: true }), steps, (limits, start, gaps) => {
        const budgets = budgetsOf(undefined, limits);
        const admitted: number[] = [];
        let now = start;
        for (const gap of gaps) {
          now += gap;
          const over = budgets.charge(ME, "s", now) as BudgetExceeded | undefined;
          if (over === undefined) {
            admitted.push(now);
          } else {
            expect(over.spent).toBeGreaterThanOrEqual(over.limit);
            // Never refused for longer than a slot beyond what an exact window would.
            const slotMs = Math.max(1, Math.ceil(limits.windowMs / 60));
            const counted = admitted.filter((at) => at > now - limits.windowMs - 2 * slotMs);
            expect(counted.length).toBeGreaterThanOrEqual(limits.calls);
            if (limits.calls > 0) {
              const probe = now + over.resetsInMs;
              expect(over.resetsInMs).toBeLessThanOrEqual(limits.windowMs + 2 * slotMs + 1);
              now = probe;
              expect(budgets.charge(ME, "s", now)).toBeUndefined();
              admitted.push(now);
            }
          }
        }
        for (let i = limits.calls; i < admitted.length; i++) {
          expect((admitted[i] ?? 0) - (admitted[i - limits.calls] ?? 0)).toBeGreaterThanOrEqual(limits.windowMs);
        }
        if (limits.calls === 0) expect(admitted).toEqual([]);
      }),
      { numRuns: histories(3000) },
    );
  }, 60_000);

  it("a clock that goes back frees nothing", () => {
    fc.assert(
      fc.property(budget, fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 60 }), (limits, times) => {
        const budgets = budgetsOf(limits);
        const latest = Math.max(0, ...times);
        for (const time of times) budgets.charge(ME, "s", time);
        // At one frozen moment the whole budget is all there is.
        let more = 0;
        while (budgets.charge(ME, "s", latest) === undefined) more++;
        expect(more).toBeLessThanOrEqual(limits.calls);
        expect(budgets.charge(ME, "s", 0)).toBeDefined();
      }),
      { numRuns: histories(2000) },
    );
  }, 60_000);
});
