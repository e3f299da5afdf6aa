// The tiers of the tests: that the list of them is true, and that the guard of the unit tier stops what does not
// belong there.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { runVitest } from "./fixtures/vitest-run.js";
import { INTEGRATION, SAME_ON_ANY_NODE } from "./tiers.js";

const root = new URL("../", import.meta.url);

it.each([
  ["integration tests", INTEGRATION],
  ["tests that one Node is enough for", SAME_ON_ANY_NODE],
])("the list of %s names files that exist, each once", (_what, list) => {
  expect(list.filter((path) => !existsSync(fileURLToPath(new URL(path, root))))).toEqual([]);
  expect(list).toHaveLength(new Set(list).size);
});

it("a unit test that starts a process or opens a socket fails, even where its refusal was caught", async () => {
  const { code, output } = await runVitest("test/fixtures/tiers/vitest.config.ts");
  const failed = new Set([...output.matchAll(/FAIL\s+forbidden\.case\.ts > (.+)/g)].map(([, name]) => name));
  expect([...failed]).toEqual([
    "spawns",
    "spawns and waits",
    "runs a file, and catches what that throws",
    "listens",
    "connects",
  ]);
  expect(output).toContain("A unit test must not start a process (spawn).");
  expect(output).toMatch(/5 failed \| 1 passed/);
  expect(code).toBe(1);
});
