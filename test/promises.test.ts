// Every promise that is made has a test that cites it, and no test cites one that does not exist. What a run did not
// show of them is said at its end.

import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { citationsIn } from "./citations.js";
import { runVitest } from "./fixtures/vitest-run.js";
import { PROMISES } from "./promises.js";

const root = fileURLToPath(new URL("..", import.meta.url));
const cited = new Set(citationsIn(root, ["src", "test"], ".test.ts").keys());

describe("promises", () => {
  it.each(PROMISES.filter(({ status }) => status === "made"))("$id is cited by a test", ({ id }) => {
    expect(cited).toContain(id);
  });

  it("are not cited by a test before they exist", () => {
    const known = new Set(PROMISES.map(({ id }) => id));
    expect([...cited].filter((id) => !known.has(id))).toEqual([]);
  });
});

describe("the end of a run", () => {
  const notShown = (output: string) => output.split("\n").filter((line) => line.startsWith("not shown in this run"));

  it("names the promises whose tests were all skipped, or of which one failed", async () => {
    const { code, output } = await runVitest("test/fixtures/promises/vitest.config.ts");
    expect(notShown(output)).toEqual([
      'not shown in this run: skipped-1 (skipped: skipped.case.ts, "is not shown where a program is missing [skipped-1]", there is no such program; and 1 more)',
      'not shown in this run: failed-1 (failed: failed.case.ts, "is not shown by one that passes beside one that fails [failed-1]")',
      "not shown in this run: absent-1 (no test of absent.case.ts cited it)",
    ]);
    expect(code).toBe(1);
  });

  it("says nothing of a promise that files outside of the run cite too, and leaves the exit code alone", async () => {
    const { code, output } = await runVitest("test/fixtures/promises/vitest.config.ts", "shown.case.ts");
    expect(notShown(output)).toEqual([]);
    expect(code).toBe(0);
    const alone = await runVitest("test/fixtures/promises/vitest.config.ts", "skipped.case.ts", "shown.case.ts");
    expect(notShown(alone.output)).toHaveLength(1);
    expect(alone.code).toBe(0);
  });

  it("says nothing where only tests of some names were asked for", async () => {
    const { output } = await runVitest("test/fixtures/promises/vitest.config.ts", "--testNamePattern", "no such name");
    expect(notShown(output)).toEqual([]);
  });
});
