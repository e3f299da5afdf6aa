import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { folder, leaveFolder, makeFolder, run } from "../../../test/fixtures/fake-gateway.js";
import { readEngineKeys } from "../../gateway/engine/keys.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

it("[engine-sealed] `engine key` prints a key that a gateway takes, another each time", async () => {
  const [one, two] = [await run(["engine", "key"]), await run(["engine", "key", "--json"])];
  expect(one.code).toBe(0);
  const { key } = JSON.parse(two.out) as { key: string };
  expect(readEngineKeys(`${one.out} ${key}`, "here")).toHaveLength(2);
});

it("[engine-sealed] `engine key --out` makes a file of one's own, and never writes over a key", async () => {
  const made = await run(["engine", "key", "--out", "engine.key"]);
  expect(made).toMatchObject({ code: 0, out: "" });
  const path = join(folder, "engine.key");
  const text = readFileSync(path, "utf8");
  expect(readEngineKeys(text, "here")).toHaveLength(1);
  expect(made.err).not.toContain(text.trim());
  expect(statSync(path).mode & 0o777).toBe(0o600);
  const again = await run(["engine", "key", "--out", "engine.key"]);
  expect(again).toMatchObject({ code: 1, err: expect.stringContaining("not written over") as string });
  expect(readFileSync(path, "utf8")).toBe(text);
});
