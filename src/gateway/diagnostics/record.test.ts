// Recordings as an operator asks for them: for how long at most, and that what was recorded is gone when their time is over,
// without anybody's doing.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { RecordAnswer, RecordedBodies } from "../../contracts/control/record.js";
import type { AgentCall } from "../../contracts/service.js";
import type { ControlRequest } from "../../control/server.js";
import { CallRecorder } from "../../observe/call-recorder.js";
import { KeptCalls } from "../../observe/calls/kept-calls.js";
import type { CallRecords } from "../../observe/metrics/call-records.js";
import { CallObserver } from "../../observe/observed-call.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { resultBytes } from "../../protocol/reply.js";
import { systemClock } from "../../runtime/clock.js";
import { RecordingControl } from "./record.js";

const HOUR_MS = 3_600_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "hrtime", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function open() {
  const kept = new KeptCalls((_, name) => name);
  const recorder = new CallRecorder([kept]);
  const observer = new CallObserver({ clock: systemClock, tracer: undefined, eraOf: () => "legacy" });
  observer.setRecorder(recorder);
  const records = { kept, flush: () => recorder.flush() } as unknown as CallRecords;
  const control = new RecordingControl({
    records,
    observer,
    redactFor: () => (text) => text,
    servers: () => ["files", "unread"],
    toolsOf: (server) => (server === "files" ? ["read", "write"] : undefined),
  });
  const ask = async <T>(route: string, body?: unknown, params: Record<string, string> = {}) => {
    const request: ControlRequest = {
      ...{ params, body, query: new URLSearchParams() },
      signal: new AbortController().signal,
    };
    return (await control.routes[route]?.(request)) as T;
  };
  const record = (forMs?: number) => ask<RecordAnswer>("POST /record", { server: "files", forMs });
  /** Its number among the last calls. */
  const call = () => {
    const text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"read","arguments":{"path":"/a"}}}';
    const caller = { principal: { id: "ann", role: "dev" }, clientInfo: {}, version: "2025-11-25", sessionKey: "s" };
    const one = observer.observed({
      caller: caller as unknown as AgentCall["caller"],
      message: parseMessage(text) as RequestMessage,
      ...{ scope: undefined, reply: () => {}, onCancel: undefined },
    });
    one.notes?.reaches("files", "read");
    one.reply(resultBytes('{"content":[]}'));
    recorder.flush();
    return kept.last;
  };
  const bodies = (seq: number) => ask<RecordedBodies>("GET /calls/:seq/bodies", undefined, { seq: String(seq) });
  return { control, observer, ask, record, call, bodies };
}

it("a recording is over when its time is, by itself: nothing is kept of later calls, and what was kept is gone [bodies-unkept]", async () => {
  const { control, observer, record, call, bodies } = open();
  const before = call();
  expect((await record(10_000)).recordings).toMatchObject([{ server: "files" }]);
  const during = call();
  expect(JSON.stringify(await bodies(during))).toContain("/a");
  await expect(bodies(before)).rejects.toMatchObject({ code: "not-found" });
  vi.advanceTimersByTime(9_900);
  expect(control.shown).toHaveLength(1);
  expect(JSON.stringify(await bodies(during))).toContain("/a");
  vi.advanceTimersByTime(101);
  // Before anybody looks, calls go past what would keep them.
  expect(observer.recordings).toBeUndefined();
  expect(control.shown).toEqual([]);
  const after = call();
  for (const seq of [during, after]) await expect(bodies(seq)).rejects.toMatchObject({ code: "not-found" });
  expect(vi.getTimerCount()).toBe(0);
});

it("an hour is the longest, ten minutes the usual, and any other time is refused [bodies-unkept] [bounded]", async () => {
  const { control, observer, record } = open();
  for (const forMs of [HOUR_MS + 1, 0, -1, Number.NaN, Number.POSITIVE_INFINITY, "10m"]) {
    await expect(record(forMs as number)).rejects.toMatchObject({ code: "invalid" });
  }
  expect([control.shown, observer.recordings]).toEqual([[], undefined]);
  await record();
  vi.advanceTimersByTime(599_000);
  expect(control.shown).toHaveLength(1);
  vi.advanceTimersByTime(1_001);
  expect([control.shown, observer.recordings]).toEqual([[], undefined]);
  await record(HOUR_MS);
  vi.advanceTimersByTime(HOUR_MS - 1_000);
  expect(control.shown).toHaveLength(1);
  vi.advanceTimersByTime(1_001);
  expect([control.shown, observer.recordings]).toEqual([[], undefined]);
  control.close();
});

it("a tool that its server does not have is refused, since nothing would be recorded [told-why]", async () => {
  const { control, ask } = open();
  const begin = (server: string, tool: string) => ask<RecordAnswer>("POST /record", { server, tool });
  await expect(begin("files", "raed")).rejects.toThrow('Server "files" has no tool "raed". Did you mean read?');
  await expect(begin("files", "remove")).rejects.toThrow("It has read, write.");
  expect(control.shown).toEqual([]);
  // Nobody knows what that one has.
  await begin("unread", "any");
  await begin("files", "read");
  expect(control.shown).toMatchObject([{ server: "unread" }, { server: "files" }]);
  control.close();
});
