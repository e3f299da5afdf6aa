// What is drawn of a call while it runs, and what waits for the end of a question.

import { describe, expect, it, vi } from "vitest";
import { heldIo } from "../../../test/fixtures/held-io.js";
import { terminalOf } from "../line/ask.js";
import { CallView, logText, progressText } from "./call-view.js";

const ERASE = "\r\u001b[K";

function view(over: { isErrTTY?: boolean; showsProgress?: boolean } = {}) {
  const { isErrTTY = true, showsProgress = isErrTTY } = over;
  const held = heldIo({ isErrTTY });
  let nowMs = 0;
  const one = new CallView(terminalOf(held.io), { server: "demo", tool: "demo__add", showsProgress, now: () => nowMs });
  return {
    ...held,
    view: one,
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe("progress [call-is-live]", () => {
  it.each([
    [{ progress: 4, total: 10, message: "Reading" }, " 40% Reading"],
    [{ progress: 12, total: 10 }, "100%"],
    [{ progress: 3 }, "3"],
    [{ progress: 3, total: 0, message: "x" }, "3 x"],
    [{ message: "two\nlines\u001b[2J" }, "two lines\\u{001B}[2J"],
    [{}, ""],
  ])("of %j is %j", (params, text) => {
    expect(progressText(params, 80)).toBe(text);
  });

  it("never wraps", () => {
    expect(progressText({ progress: 1, total: 2, message: "x".repeat(100) }, 20)).toHaveLength(19);
  });

  it("is one line that is rewritten, not more often than anybody reads, and erased at the end", () => {
    const { view: one, err, pass } = view();
    one.progress({ progress: 1, total: 4 });
    one.progress({ progress: 2, total: 4 });
    pass(60);
    one.progress({ progress: 3, total: 4 });
    one.end();
    expect(err()).toBe(`${ERASE} 25%${ERASE} 75%${ERASE}`);
  });

  it("is not shown where nobody sees it", () => {
    const { view: one, err } = view({ isErrTTY: false });
    one.progress({ progress: 1 });
    one.end();
    expect(err()).toBe("");
  });
});

it("a terminal that does not know its width has the usual one", () => {
  const { io, err } = heldIo({ isErrTTY: true });
  Object.assign(io.stderr, { columns: 0 });
  new CallView(terminalOf(io), { server: "demo", tool: "t", showsProgress: true }).progress({
    progress: 1,
    message: "reading",
  });
  expect(err()).toContain("1 reading");
});

describe("while a question is open", () => {
  it("nothing is written into it, and what came is told after it [call-is-live] [bounded]", () => {
    const { view: one, err } = view();
    one.progress({ progress: 1 });
    one.hold();
    one.progress({ progress: 2 });
    for (let at = 0; at < 103; at++) one.note(`line ${at}`);
    expect(err()).toBe(`${ERASE}1${ERASE}`);
    one.release();
    expect(err()).toContain("line 99\n… and 3 more that came meanwhile.\n");
    one.note("after");
    expect(err()).toMatch(/after\n$/);
  });
});

it("a call of which nothing is heard for a while says that it waits, and one that was heard of does not", () => {
  vi.useFakeTimers();
  try {
    const silent = view();
    const talking = view();
    talking.view.progress({ progress: 1 });
    vi.advanceTimersByTime(2_000);
    expect(silent.err()).toBe("Waiting for demo__add …\n");
    expect(talking.err()).not.toContain("Waiting");
  } finally {
    vi.useRealTimers();
  }
});

it("a log message says whose it is and how grave, in one line that cannot steer the terminal [terminal-inert]", () => {
  const { view: one, err } = view();
  one.log({ level: "warning", logger: "db", data: "slow\u001b[2J" });
  one.log({ level: "info", data: { rows: 3 } });
  expect(err()).toBe('demo [warning] db: slow\\u{001B}[2J\ndemo [info] {"rows":3}\n');
  expect(logText("demo", { data: "x".repeat(9_000) }).length).toBeLessThan(2_100);
});
