// The level of the log, changed while a gateway runs.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { stderrLog } from "../../observe/debug-log.js";
import { createLog } from "../../observe/log.js";
import { LogLevels } from "./log-level.js";

beforeEach(() => void vi.useFakeTimers());

afterEach(() => void vi.useRealTimers());

function world() {
  const lines: string[] = [];
  const log = createLog({ write: (text) => lines.push(text) });
  let changes = 0;
  const levels = new LogLevels(log, () => changes++);
  const request = (body?: unknown) => ({
    params: {},
    query: new URLSearchParams(),
    body,
    signal: new AbortController().signal,
  });
  const get = () => levels.routes["GET /log-level"]?.(request());
  const post = (body: unknown) => levels.routes["POST /log-level"]?.(request(body));
  return { lines, log, levels, get, post, changes: () => changes };
}

it("a level is taken at once, also by those who asked for it at the start, and for a time only where that is wanted [told-why]", () => {
  const { lines, log, get, post, changes } = world();
  const stderr = stderrLog(log);
  stderr?.("files", ["unseen"]);
  expect(post({ level: "debug", forMs: 60_000 })).toMatchObject({ level: "debug", after: "info" });
  stderr?.("files", ["seen"]);
  // A second one goes back to where the first began.
  post({ level: "warn", forMs: 120_000 });
  vi.advanceTimersByTime(119_999);
  expect(get()).toMatchObject({ level: "warn", after: "info" });
  vi.advanceTimersByTime(1);
  expect(get()).toEqual({ level: "info", until: undefined, after: undefined });
  expect(changes()).toBe(3);
  post({ level: "error" });
  vi.advanceTimersByTime(1e9);
  expect(get()).toMatchObject({ level: "error" });
  const text = lines.join("");
  expect(text).toContain('line="seen"');
  expect(text).not.toContain("unseen");
  expect(text).toContain("the log is at debug now, for 60 s");
});

it("what is no level or no time is refused, and the log of another program is that program's [told-why]", () => {
  const { post, get } = world();
  for (const body of [{}, { level: "loud" }, { level: "debug", forMs: 0 }, { level: "debug", forMs: 1e9 }, undefined]) {
    expect(() => post(body)).toThrow(/"level" is one of|"forMs" is a number/);
  }
  expect(get()).toMatchObject({ level: "info" });
  const own = () => {};
  const other = new LogLevels({ debug: own, info: own, warn: own, error: own }, own);
  expect(() => other.set("debug", undefined)).toThrow("that of the program");
});
