// The past over a restart: saved, read again, and what becomes of a file that is none.

import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { until } from "../../../test/fixtures/wait.js";
import { emptyRecord } from "../../observe/call-record.js";
import { CaughtDay } from "../../observe/calls/caught-day.js";
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
  const caught = new CaughtDay(clock.wall());
  const warned: string[] = [];
  const saved = new SavedHistory({ history, caught, stateDir, clock, warn: (text) => warned.push(text) });
  const call = () => history.take({ ...emptyRecord(), server: "files", tool: "read", endedAt: clock.wall(), ms: 5 });
  return { saved, history, caught, clock, warned, call };
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

it("what nobody noticed is there after a restart, also where nothing was called [calls-recorded]", async () => {
  const one = open();
  one.caught.add("pin", 2, one.clock.wall());
  await one.saved.close();
  const two = open();
  await two.saved.close();
  expect(two.caught.read(two.clock.wall()).counts).toEqual({ pin: 2 });
});

it("the past is saved once a minute, where something was called since [calls-recorded]", async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  try {
    const one = open();
    const path = join(dir, "history");
    const isSaved = () => !one.history.isChanged && existsSync(path);
    one.call();
    vi.advanceTimersByTime(59_000);
    expect(isSaved()).toBe(false);
    vi.advanceTimersByTime(1_000);
    await until("the past to be saved", isSaved);
    await one.saved.save();
    const first = statSync(path).ino;
    vi.advanceTimersByTime(60_000);
    // What the timer began is done before this.
    await one.saved.save();
    expect(statSync(path).ino).toBe(first);
    one.call();
    vi.advanceTimersByTime(60_000);
    await until("the past to be saved again", () => isSaved() && statSync(path).ino !== first);
    await one.saved.close();
    vi.advanceTimersByTime(600_000);
    expect(vi.getTimerCount()).toBe(0);
  } finally {
    vi.useRealTimers();
  }
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
    caught: one.caught,
    stateDir: undefined,
    clock: new TestClock(),
    warn: () => expect.unreachable(),
  });
  await memory.close();
});
