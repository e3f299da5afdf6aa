// The past over a restart: saved, read again, and what becomes of a file that is none.

import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { emptyRecord } from "../../observe/call-record.js";
import { History } from "../../observe/calls/history.js";
import { SavedHistory } from "./saved-history.js";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "toolway-history-"));
});

afterEach(() => rmSync(dir, { recursive: true, force: true }));

function open(stateDir: string | undefined = dir) {
  const clock = new TestClock();
  const history = new History((_, tool) => tool);
  const warned: string[] = [];
  const saved = new SavedHistory({ history, stateDir, clock, warn: (text) => warned.push(text) });
  const call = () => history.take({ ...emptyRecord(), server: "files", tool: "read", endedAt: clock.wall(), ms: 5 });
  return { saved, history, warned, call };
}

it("what was called is there after a restart, readable by its owner alone [calls-recorded]", async () => {
  const one = open();
  one.call();
  one.call();
  await one.saved.close();
  expect(statSync(join(dir, "history")).mode & 0o777).toBe(0o600);
  const two = open();
  // Before what was saved has been read.
  two.call();
  await two.saved.close();
  expect(two.history.servers.get("files")?.tools.get("read")?.calls).toBe(3);
  expect(two.warned).toEqual([]);
});

it("a file that cannot be read is told once, and written over when something was called [told-why]", async () => {
  writeFileSync(join(dir, "history"), "nonsense");
  const one = open();
  await one.saved.close();
  expect(one.warned).toHaveLength(1);
  expect(one.warned[0]).toContain(join(dir, "history"));
  expect(readFileSync(join(dir, "history"), "utf8")).toBe("nonsense");
  const two = open();
  two.call();
  await two.saved.close();
  const three = open();
  await three.saved.close();
  expect(three.warned).toEqual([]);
  expect(three.history.servers.get("files")?.tools.get("read")?.calls).toBe(1);
});

it("where nothing outlives the process nothing is saved, and a folder that is gone is told once [told-why]", async () => {
  const one = open(join(dir, "none"));
  one.call();
  await one.saved.save();
  await one.saved.save();
  expect(one.warned).toHaveLength(1);
  await one.saved.close();
  const memory = new SavedHistory({
    history: one.history,
    stateDir: undefined,
    clock: new TestClock(),
    warn: () => expect.unreachable(),
  });
  await memory.close();
});
