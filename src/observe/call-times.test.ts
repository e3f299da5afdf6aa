// Where the time of a call goes: the sums, and the record that is made of them.

import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { TestClock } from "../../test/fixtures/test-clock.js";
import type { AgentCall, CallPhase } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../protocol/reply.js";
import { type CallRecord, ownMs } from "./call-record.js";
import { CallRecorder } from "./call-recorder.js";
import { CallTimesPool } from "./call-times.js";
import { CallObserver, type CallObserverOptions } from "./observed-call.js";

const PHASES: readonly CallPhase[] = ["own", "queued", "starting", "credential", "server", "returning"];

it("every millisecond of a call is in one of its phases, also where what counts it was another call's [calls-recorded]", () => {
  const pool = new CallTimesPool();
  const step = fc.tuple(fc.constantFrom(...PHASES), fc.integer({ min: 0, max: 9_999 }));
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 1e6 }), fc.array(step, { maxLength: 30 }), (start, steps) => {
      const times = pool.take(start);
      const expected = new Map<CallPhase, number>();
      let [phase, nowMs]: [CallPhase, number] = ["own", start];
      for (const [next, ms] of steps) {
        expected.set(phase, (expected.get(phase) ?? 0) + ms);
        nowMs += ms;
        times.enter(next, nowMs);
        phase = next;
      }
      for (const one of PHASES) expect(times.of(one)).toBe(expected.get(one) ?? 0);
      pool.giveBack(times);
    }),
    { numRuns: histories(500) },
  );
});

function observed(isAnyAway: CallObserverOptions["isAnyAway"] = () => false) {
  const clock = new TestClock();
  const taken: CallRecord[] = [];
  const recorder = new CallRecorder([{ take: (record) => void taken.push({ ...record }), batchEnded: () => {} }]);
  const observer = new CallObserver({
    clock,
    tracer: undefined,
    eraOf: () => "legacy",
    transportOf: () => "pipe",
    isAnyAway,
  });
  observer.setRecorder(recorder);
  const begin = (text = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é"}}') => {
    const caller = { principal: { id: "ann", role: "dev" }, clientInfo: {}, version: "2025-11-25", sessionKey: "s" };
    const one: AgentCall = observer.observed({
      caller: caller as unknown as AgentCall["caller"],
      message: parseMessage(text) as RequestMessage,
      scope: undefined,
      reply: () => {},
      onCancel: undefined,
    });
    one.notes?.reaches("files", "read");
    return one;
  };
  const records = () => {
    recorder.flush();
    return taken;
  };
  return { clock, begin, records, observer };
}

const OK: Reply = resultBytes("{}");

it("a record says how long its call waited for what, what of it was ours, and how large it was both ways [calls-recorded]", () => {
  const { clock, begin, records } = observed();
  const one = begin();
  const spent: [CallPhase, number][] = [
    ["own", 1],
    ["starting", 20],
    ["queued", 300],
    ["credential", 4_000],
    ["server", 50_000],
    ["returning", 2],
  ];
  for (const [phase, ms] of spent) {
    one.notes?.enter(phase);
    clock.advance(ms);
  }
  one.notes?.mended("restart");
  one.reply(OK);
  // What comes late belongs to no call any more, and least of all to the next.
  const next = begin();
  one.notes?.enter("server");
  clock.advance(7);
  next.reply(OK);
  const [first, second] = records();
  expect(first).toMatchObject({
    ms: 54_323,
    startingMs: 20,
    queuedMs: 300,
    credentialMs: 4_000,
    serverMs: 50_000,
    returningMs: 2,
    mended: "restart",
    transport: "pipe",
    version: "2025-11-25",
    bytesIn: Buffer.byteLength('{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"é"}}'),
    bytes: 36,
  });
  expect(ownMs(first as CallRecord)).toBe(3);
  expect(second).toMatchObject({ ms: 7, serverMs: 0, startingMs: 0, mended: undefined });
});

it("a list that has the tools of a server which is away is what its agent did not have to notice, where it is a list [calls-recorded]", () => {
  let isAway = false;
  const { begin, records } = observed(() => isAway);
  const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
  begin(list).reply(OK);
  isAway = true;
  begin(list).reply(OK);
  begin(list).reply({ kind: "error", error: { code: -32603, message: "no" } });
  begin().reply(OK);
  expect(records().map(({ mended }) => mended)).toEqual([undefined, "menu", undefined, undefined]);
});

it("a record has the code of an error, or the rule of ours that refused its call [calls-recorded]", () => {
  const { begin, records } = observed();
  const rpcError = Buffer.from('{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"no"}}');
  begin().reply({ kind: "bytes", bytes: rpcError, idStart: 22, idEnd: 23 });
  begin().reply({ kind: "error", error: { code: -32601, message: "no" } });
  begin().reply(faultReply(new Fault("denied", "No.", { rule: "menu" })));
  begin().reply(faultReply(new Fault("limit", "Too much.")));
  begin().reply(OK);
  expect(records().map(({ outcome, errorCode, refusedBy }) => [outcome, errorCode, refusedBy])).toEqual([
    ["rpc-error", -32602, undefined],
    ["rpc-error", -32601, undefined],
    ["denied", 0, "menu"],
    ["limit", 0, "limit"],
    ["ok", 0, undefined],
  ]);
});

it("calls under way can be looked at, oldest first, until they are answered, in whatever order that is [calls-recorded]", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 40 }), (steps) => {
      const { begin, observer } = observed();
      const open: AgentCall[] = [];
      for (const step of steps) {
        // Most begin a call; the others end one of those that are open.
        const ended = step > 3 ? open.splice(step % Math.max(1, open.length), 1) : [];
        for (const one of ended) {
          one.reply(OK);
          one.reply(OK);
        }
        if (step <= 3) open.push(begin());
        expect([...observer.underWay()]).toEqual(open);
      }
    }),
  );
  const { begin, observer } = observed();
  begin().notes?.enter("starting");
  expect([...observer.underWay()][0]).toMatchObject({ server: "files", tool: "read", phase: "starting" });
});
