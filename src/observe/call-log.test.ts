// Calls in the log: the ring, the recorder that fills it, and the lines that are made of it.

import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { histories } from "../../test/faults/length.js";
import { TestClock } from "../../test/fixtures/test-clock.js";
import type { AgentCall } from "../contracts/service.js";
import { PiecedReply } from "../protocol/arrived.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../protocol/reply.js";
import { CallLines } from "./call-lines.js";
import { type CallRecord, CallRing, emptyRecord } from "./call-record.js";
import { CallRecorder } from "./call-recorder.js";
import { boundedWrite, createLog, type LogLevel } from "./log.js";
import { CallObserver } from "./observed-call.js";
import { readOutcome } from "./outcome.js";
import type { Tracer } from "./traces.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("a ring of records", () => {
  it("gives every record once, in order, and counts those that found no room [calls-recorded] [bounded]", () => {
    const act = fc.constantFrom("end", "end", "end", "read");
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9 }), fc.array(act, { maxLength: 120 }), (size, acts) => {
        const ring = new CallRing(size);
        const used = new Set<CallRecord>();
        let expected: number[] = [];
        let dropped = 0;
        for (const [at, what] of [...acts, "read"].entries()) {
          if (what === "end") {
            const record = ring.next();
            if (expected.length === size) dropped++;
            else expected.push(at);
            expect(record === undefined).toBe(used.size === size && expected.at(-1) !== at);
            if (record !== undefined) {
              record.ms = at;
              used.add(record);
            }
            continue;
          }
          const got: number[] = [];
          ring.read((record) => got.push(record.ms));
          expect(got).toEqual(expected);
          expect(ring.takeDropped()).toBe(dropped);
          expected = [];
          dropped = 0;
        }
        // The objects are the ring's own, and used again.
        expect(used.size).toBeLessThanOrEqual(size);
      }),
      { numRuns: histories(500) },
    );
  });

  it("holds nothing of an agent once it was read", () => {
    const ring = new CallRing(1);
    const record = ring.next() as CallRecord;
    Object.assign(record, {
      ...{ clientInfo: { name: "somebody" }, tool: "t", id: "an id" },
      ...{ method: "made up", version: "as it says" },
    });
    ring.read(() => {});
    expect(JSON.stringify(record)).not.toMatch(/somebody|an id|made up|as it says/);
  });
});

function outcomeOf(reply: Reply): CallRecord["outcome"] {
  const record = emptyRecord();
  readOutcome(reply, record);
  return record.outcome;
}

const SECRET = "nobody-may-see-this";

interface Asked {
  readonly method?: string;
  readonly name?: string;
  readonly clientInfo?: JsonObject;
  readonly id?: string;
}

function call({ method = "tools/call", name = "files__read", clientInfo, id = "7" }: Asked = {}): AgentCall {
  const params = JSON.stringify({ name, uri: `file:///${SECRET}`, arguments: { key: SECRET } });
  const message = parseMessage(`{"jsonrpc":"2.0","id":${id},"method":"${method}","params":${params}}`);
  const caller = {
    principal: { id: "ann", role: "dev" },
    clientInfo: clientInfo ?? { name: "claude-code", version: "2.1.0" },
  };
  return {
    caller: caller as unknown as AgentCall["caller"],
    message: message as RequestMessage,
    scope: undefined,
    reply: () => {},
    onCancel: undefined,
  };
}

function observing(recorder: CallRecorder | undefined, clock: TestClock, tracer?: Tracer): CallObserver {
  const observer = new CallObserver({ clock, tracer, eraOf: () => "legacy" });
  observer.setRecorder(recorder);
  return observer;
}

function logged(format: "text" | "json" = "json", level: LogLevel = "info", size?: number) {
  const clock = new TestClock(Date.parse("2026-03-04T05:06:07.089Z"));
  const written: string[] = [];
  const write = vi.fn((text: string) => void written.push(text));
  const log = createLog({ write, format, level, now: () => clock.wall() });
  const recorder = new CallRecorder([new CallLines(log)], size);
  const observer = observing(recorder, clock);
  const make = (asked?: Asked, to: { server?: string; tool?: string } = { server: "files", tool: "read" }) => {
    const one = observer.observed(call(asked));
    if (to.server !== undefined) one.notes?.reaches(to.server, to.tool);
    return one;
  };
  const lines = () => written.join("").split("\n").slice(0, -1);
  return { clock, make, lines, write, recorder, json: () => lines().map((line) => JSON.parse(line) as JsonObject) };
}

const OK = resultBytes(`{"content":[{"type":"text","text":"${SECRET}"}]}`);

describe("a call in the log", () => {
  it("names no tool that is named like a secret, whoever named it, and looks at each name once [secrets-unseen]", () => {
    const clock = new TestClock(0);
    const written: string[] = [];
    const log = createLog({ write: (text) => void written.push(text), now: () => clock.wall() });
    const redact = vi.fn((_: string | undefined, name: string) => name.replaceAll(SECRET, "[redacted]"));
    const recorder = new CallRecorder([new CallLines(log, redact)]);
    const end = ({ server, tool }: { server?: string; tool: string }) => {
      const observer = observing(recorder, clock);
      for (let i = 0; i < 4; i++) {
        const one = observer.observed(call({ name: tool }));
        if (server !== undefined) one.notes?.reaches(server, tool);
        one.reply(OK);
      }
      recorder.flush();
    };
    // It is cut in the middle of the secret, had that not been taken out before.
    end({ server: "files", tool: `${"x".repeat(120)}${SECRET}` });
    expect(redact).toHaveBeenCalledTimes(1);
    end({ tool: SECRET });
    expect(written.join("")).not.toContain(SECRET.slice(0, 6));
    expect(written.join("")).toContain("[redacted]");
  });

  it("is escaped in JSON as well, with the controls that JSON leaves as they are [terminal-inert]", () => {
    const { make, lines, json } = logged();
    make({ clientInfo: { name: "c\u009b31m\u007f\u2028\u001b[2J" } }, { server: "files", tool: "t\u0085" }).reply(OK);
    vi.runAllTimers();
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).not.toMatch(/\p{Cc}|\u2028/u);
    expect(json()).toMatchObject([{ client: "c\u009b31m\u007f\u2028\u001b[2J", tool: "t\u0085" }]);
  });

  it("has every fact in a field of its own, and nothing of arguments or results [calls-recorded]", () => {
    const { clock, make, json, lines } = logged();
    const one = make();
    one.notes?.enter("starting");
    clock.advance(8.26);
    one.notes?.enter("server");
    clock.advance(4.08);
    one.notes?.enter("returning");
    one.reply(OK);
    vi.runAllTimers();
    expect(json()).toEqual([
      {
        time: "2026-03-04T05:06:07.101Z",
        level: "info",
        text: "call",
        principal: "ann",
        role: "dev",
        client: "claude-code/2.1.0",
        method: "tools/call",
        server: "files",
        tool: "read",
        outcome: "ok",
        ms: 12,
        startingMs: 8.3,
        serverMs: 4.1,
        bytesIn: 156,
        bytes: 92,
        id: 7,
      },
    ]);
    expect(lines().join()).not.toContain(SECRET);
  });

  it("reads as a sentence where a person reads it [calls-recorded]", () => {
    const { clock, make, lines } = logged("text");
    const one = make();
    clock.advance(0.44);
    one.reply(faultReply(new Fault("denied", SECRET)));
    make({ method: "resources/read" }, { server: "files" }).reply(OK);
    vi.runAllTimers();
    const who = 'principal="ann" role="dev" client="claude-code/2.1.0"';
    expect(lines()).toEqual([
      `05:06:07.089 info  call files/read: denied, 0.4 ms ${who}`,
      `05:06:07.089 info  call files/resources/read: ok, 0 ms ${who} bytes=92`,
    ]);
  });

  it("is written with others in one piece, off its own turn, and at its first reply only [calls-recorded]", () => {
    const { make, lines, write } = logged();
    const all = Array.from({ length: 50 }, () => make());
    for (const one of all) one.reply(OK);
    all[0]?.reply(faultReply(new Fault("timeout", "late")));
    expect(write).not.toHaveBeenCalled();
    vi.runAllTimers();
    expect(write).toHaveBeenCalledTimes(1);
    expect(lines()).toHaveLength(50);
    expect(vi.getTimerCount()).toBe(0);
  });

  it("that finds no room in the ring is counted, and the count is logged [calls-recorded] [bounded]", () => {
    const { make, json } = logged("json", "info", 4);
    for (let i = 0; i < 10; i++) make().reply(OK);
    vi.runAllTimers();
    expect(json().map(({ text, dropped }) => dropped ?? text)).toEqual(["call", "call", "call", "call", 6]);
  });

  it("cannot forge a line or the rest of its own, however it is named", () => {
    const name = 'x: ok, 1 ms principal="root"\n05:06:07.000 info  call forged';
    const { make, lines } = logged("text");
    make({ name, clientInfo: { name: '\u001b[31mred"\n', version: "v".repeat(9_929) } }, {}).reply(OK);
    vi.runAllTimers();
    expect(lines()).toHaveLength(1);
    expect(lines()[0]).toMatch(
      /^05:06:07\.089 info {2}call "x: ok, 1 ms principal=\\"root\\".*": ok, 0 ms principal="ann"/,
    );
    expect(lines()[0]?.length).toBeLessThan(500);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there.
    expect(lines()[0]).not.toMatch(/[\u0000-\u001f]/);
  });

  it("that only asks for a list is told at debug", () => {
    for (const level of ["info", "debug"] as const) {
      const { make, json } = logged("json", level);
      make({ method: "tools/list" }, {}).reply(OK);
      vi.runAllTimers();
      expect(json().map((line) => [line["level"], line["method"]])).toEqual(
        level === "info" ? [] : [["debug", "tools/list"]],
      );
    }
  });

  it("is given to a log that is not ours one by one", () => {
    const info = vi.fn();
    const other = { debug: vi.fn(), info, warn: vi.fn(), error: vi.fn() };
    const recorder = new CallRecorder([new CallLines(other)]);
    observing(recorder, new TestClock()).observed(call()).reply(OK);
    recorder.flush();
    expect(info).toHaveBeenCalledWith("call files__read: ok, 0 ms", expect.objectContaining({ principal: "ann" }));
  });
});

describe("a log whose reader is stuck", () => {
  it("drops lines and says how many, and neither waits nor grows [calls-recorded] [bounded]", () => {
    const stream = new PassThrough({ highWaterMark: 10 });
    const log = createLog({ write: boundedWrite(stream, 1_000), format: "json" });
    for (let i = 0; i < 100; i++) log.info(`line ${i}`);
    const held = stream.writableLength + stream.readableLength;
    expect(held).toBeLessThan(1_200);
    const read = () =>
      String(stream.read() ?? "")
        .split("\n")
        .filter(Boolean);
    let before: string[] = [];
    for (let more = read(); more.length > 0; more = read()) before = [...before, ...more];
    log.info("it reads again");
    const [said, last] = read().map((line) => JSON.parse(line) as JsonObject);
    expect(last).toMatchObject({ text: "it reads again" });
    expect(said).toMatchObject({ level: "warn", dropped: 100 - before.length });
  });
});

describe("the outcome of a long reply", () => {
  const long = "x".repeat(9_000);
  const failed = (text: string) =>
    `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${text}"}],"isError":true}}`;
  const pieces = (text: string, at: number): Reply => {
    const bytes = Buffer.from(text);
    return new PiecedReply([bytes.subarray(0, at), bytes.subarray(at)], { idStart: 22, idEnd: 23 }, undefined);
  };

  it.each([
    ["tool-error", failed(long)],
    ["ok", failed(long).replace("true", "false")],
    ["ok", failed(`${long}\\"isError\\":true`).replace(',"isError":true', "")],
    ["rpc-error", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"${long}"}}`],
  ])("%s is found at its ends, in whatever pieces it came", (outcome, text) => {
    const whole: Reply = { kind: "bytes", bytes: Buffer.from(text), idStart: 22, idEnd: 23 };
    expect(outcomeOf(whole)).toBe(outcome);
    for (const at of [200, 5_000, text.length - 3]) expect(outcomeOf(pieces(text, at))).toBe(outcome);
  });

  it("is looked for without joining the pieces of one that is fine", () => {
    const reply = pieces(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"${long}"}]}}`, 2_000);
    const concat = vi.spyOn(Buffer, "concat");
    expect(outcomeOf(reply)).toBe("ok");
    expect(concat).not.toHaveBeenCalled();
    concat.mockRestore();
  });
});

describe("a call that is observed [calls-recorded]", () => {
  const traced = () => {
    const kept: CallRecord[] = [];
    const copies: CallRecord[] = [];
    const end = (record: CallRecord) => {
      kept.push(record);
      copies.push({ ...record });
    };
    const tracer: Tracer = {
      begin: () => ({
        traceId: "a",
        sent: () => {},
        received: () => {},
        metaTraceparent: "00-a-b-01",
        metaTracestate: undefined,
        end,
      }),
    };
    return { tracer, kept, copies };
  };

  it("ends with one record, from which its line in the log and its span are made", () => {
    const taken: CallRecord[] = [];
    const recorder = new CallRecorder([{ take: (record) => void taken.push({ ...record }), batchEnded: () => {} }]);
    const { tracer, copies } = traced();
    const clock = new TestClock();
    const one = observing(recorder, clock, tracer).observed(call());
    one.notes?.reaches("files", "read");
    if (one.notes !== undefined) Object.assign(one.notes, { cache: "miss", attempt: 2 });
    clock.advance(5);
    one.reply(OK);
    // What comes late is no second end.
    one.reply(OK);
    recorder.flush();
    expect(copies).toEqual(taken);
    expect(copies).toMatchObject([
      { server: "files", tool: "read", cache: "miss", attempt: 2, era: "legacy", ms: 5, outcome: "ok" },
    ]);
  });

  it("has its span also where no record is kept of it, and nothing of the agent's is held after", () => {
    const { tracer, kept, copies } = traced();
    const full = new CallRecorder([{ take: () => {}, batchEnded: () => {} }], 0);
    for (const recorder of [undefined, full]) {
      const one = observing(recorder, new TestClock(), tracer).observed(call());
      one.notes?.reaches("files", "read");
      one.reply(OK);
    }
    full.flush();
    expect(copies).toMatchObject([{ principal: { id: "ann" } }, { principal: { id: "ann" } }]);
    expect(JSON.stringify(kept)).not.toMatch(/ann|claude-code/);
  });

  it("is the agent's own where nobody wants to know of it", () => {
    const own = call();
    expect(observing(undefined, new TestClock()).observed(own)).toBe(own);
  });
});
