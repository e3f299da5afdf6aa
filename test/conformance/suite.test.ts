// What a run of the official suite is believed by, without the suite.

import { expect, it } from "vitest";

interface Suite {
  tooFewChecks(revision: string, scenarios: ReadonlyMap<string, object>): string | undefined;
}

// The runner is plain JavaScript; a specifier that is no literal leaves its types to the interface above.
const file: string = "./suite.mjs";
const { tooFewChecks } = (await import(file)) as Suite;

it("a run whose scenarios all pass with next to no checks is no good run; checks that fail are checks", () => {
  const ran = (checks: number, failures: number) =>
    new Map(Array.from({ length: 30 }, (_, n) => [`s${n}`, { checks, failures: Array(failures).fill({}) }]));
  expect(tooFewChecks("2025-11-25", ran(1, 0))).toBe("It made 30 checks; 75 are the least of 2025-11-25.");
  expect(tooFewChecks("2025-11-25", ran(3, 0))).toBeUndefined();
  expect(tooFewChecks("2025-11-25", ran(1, 2))).toBeUndefined();
  expect(tooFewChecks("2026-07-28", ran(3, 0))).toContain("145");
});
