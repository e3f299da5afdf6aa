// What a run of the official suite is believed by, without the suite.

import { expect, it } from "vitest";

interface Suite {
  atOnce<T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void>;
  tooFewChecks(revision: string, scenarios: ReadonlyMap<string, object>): string | undefined;
}

// The runner is plain JavaScript; a specifier that is no literal leaves its types to the interface above.
const file: string = "./suite.mjs";
const { atOnce, tooFewChecks } = (await import(file)) as Suite;

it("a run whose scenarios all pass with next to no checks is no good run; checks that fail are checks", () => {
  const ran = (checks: number, failures: number) =>
    new Map(Array.from({ length: 30 }, (_, n) => [`s${n}`, { checks, failures: Array(failures).fill({}) }]));
  expect(tooFewChecks("2025-11-25", ran(1, 0))).toBe("It made 30 checks; 80 are the least of 2025-11-25.");
  expect(tooFewChecks("2025-11-25", ran(3, 0))).toBeUndefined();
  expect(tooFewChecks("2025-11-25", ran(1, 2))).toBeUndefined();
  expect(tooFewChecks("2026-07-28", ran(3, 0))).toContain("152");
  const made = (checks: number) => new Map([["all in one", { checks, failures: [] }]]);
  for (const [revision, least] of [
    ["2025-11-25", 80],
    ["2026-07-28", 152],
  ] as const) {
    expect(tooFewChecks(revision, made(least - 1))).toBeDefined();
    expect(tooFewChecks(revision, made(least))).toBeUndefined();
  }
});

it("runs are made two at a time, all of them, and none is begun when one could not be made", async () => {
  const [begun, most] = [[] as number[], { now: 0, ever: 0 }];
  const make = (failing?: number) => async (n: number) => {
    begun.push(n);
    most.ever = Math.max(most.ever, ++most.now);
    await new Promise(setImmediate);
    most.now--;
    if (n === failing) throw new Error(`run ${n}`);
  };
  await atOnce([1, 2, 3, 4, 5], make());
  expect([begun.splice(0), most.ever]).toEqual([[1, 2, 3, 4, 5], 2]);
  await expect(atOnce([1, 2, 3, 4, 5], make(1))).rejects.toThrow("run 1");
  await new Promise(setImmediate);
  expect(begun).toEqual([1, 2]);
});
