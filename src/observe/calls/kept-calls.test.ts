// The last calls: which are kept, which fit a question, and what is shown of them.

import fc from "fast-check";
import { expect, it } from "vitest";
import { type CallRecord, emptyRecord } from "../call-record.js";
import { KeptCalls } from "./kept-calls.js";
import { callsAnswer, shownCalls } from "./shown-calls.js";

const record = (more: Partial<CallRecord>): CallRecord => ({
  ...emptyRecord(),
  principal: { id: "ann", role: "dev" },
  method: "tools/call",
  server: "files",
  tool: "read",
  ...more,
});

const all = { limit: 1_000 };

it("the last calls are kept, oldest first, under numbers that go on, and no more of them [calls-recorded] [bounded]", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 0, max: 60 }), (size, count) => {
      const kept = new KeptCalls((_, name) => name, size);
      const used = record({});
      // The record is used again, as a ring's are.
      for (let i = 1; i <= count; i++) kept.take(Object.assign(used, { ms: i }));
      const expected = Array.from({ length: Math.min(size, count) }, (_, i) => count - Math.min(size, count) + i + 1);
      expect(shownCalls(kept, all).map(({ seq }) => seq)).toEqual(expected);
      expect(shownCalls(kept, all).map(({ ms }) => ms)).toEqual(expected);
      expect(shownCalls(kept, { limit: 3 }).map(({ seq }) => seq)).toEqual(expected.slice(-3));
      expect(shownCalls(kept, { ...all, after: count - 1 })).toHaveLength(Math.min(1, count));
      expect(kept.last).toBe(count);
    }),
  );
});

it("a question is answered with the calls that fit, and says where their time went [calls-recorded]", () => {
  const kept = new KeptCalls((_, name) => name);
  kept.take(record({ ms: 900, serverMs: 100, startingMs: 790 }));
  kept.take(record({ ms: 5, outcome: "timeout", server: "other" }));
  kept.take(record({ ms: 5, outcome: "cancelled", principal: { id: "bob", role: "dev" }, tool: "write" }));
  const seqs = (filter: object) => shownCalls(kept, { ...all, ...filter }).map(({ seq }) => seq);
  expect(seqs({ slowerMs: 500 })).toEqual([1]);
  expect(seqs({ failed: true })).toEqual([2]);
  expect(seqs({ server: "other" })).toEqual([2]);
  expect(seqs({ principal: "bob" })).toEqual([3]);
  expect(seqs({ tool: "write", failed: true })).toEqual([]);
  expect(shownCalls(kept, all)[0]).toMatchObject({
    startingMs: 790,
    serverMs: 100,
    ownMs: 10,
    principal: "ann",
    role: "dev",
    failed: false,
  });
});

it("the slowest, and what failed for what, are of all that are kept, and say which rule or code it was [calls-recorded] [bounded]", () => {
  const kept = new KeptCalls((_, name) => name);
  kept.take(record({ ms: 9_000, outcome: "denied", refusedBy: "menu" }));
  kept.take(record({ ms: 7, receipt: "r1" }));
  for (let i = 0; i < 4_000; i++) kept.take(record({ ms: 1, outcome: i % 2 === 0 ? "ok" : "timeout" }));
  kept.take(record({ ms: 5, outcome: "rpc-error", errorCode: -32_602 }));
  const answer = (query: string) => callsAnswer(new URLSearchParams(query), kept, [], 0);
  const slowest = answer("slowest=true&limit=3").calls;
  expect(slowest.map(({ ms, refusedBy, errorCode, receipt }) => [ms, refusedBy, errorCode, receipt])).toEqual([
    [9_000, "menu", undefined, undefined],
    [7, undefined, undefined, "r1"],
    [5, undefined, -32_602, undefined],
  ]);
  const { calls, reasons } = answer("reasons=true&limit=0");
  expect(calls).toEqual([]);
  expect(reasons?.map(({ count, last }) => [count, last.outcome, last.refusedBy, last.seq])).toEqual([
    [2_000, "timeout", undefined, 4_002],
    [1, "rpc-error", undefined, 4_003],
    [1, "denied", "menu", 1],
  ]);
  expect(answer("reasons=true&outcome=denied").reasons).toMatchObject([{ count: 1 }]);
  expect(answer("").reasons).toBeUndefined();
  for (let code = 1; code <= 200; code++) kept.take(record({ outcome: "rpc-error", errorCode: code }));
  expect(answer("reasons=true").reasons).toHaveLength(100);
});

it("names are shown without the secrets of entries, and long ones are cut after that [secrets-unseen] [bounded]", () => {
  const kept = new KeptCalls((_, name) => name.replaceAll("hunter2", "[redacted]"));
  kept.take(record({ tool: "say-hunter2", clientInfo: { name: "x".repeat(10_000), more: "y".repeat(10_000) } }));
  kept.take(record({ tool: `${"a".repeat(125)}hunter2`, method: "m".repeat(10_000), id: "i".repeat(10_000) }));
  const text = JSON.stringify(shownCalls(kept, all));
  expect(text).toContain("say-[redacted]");
  expect(text).not.toContain("hun");
  expect(text.length).toBeLessThan(2_000);
});

it("a question of nonsense is answered as one that narrows nothing, and never with more than is kept [bounded]", () => {
  const kept = new KeptCalls((_, name) => name, 3);
  for (let i = 0; i < 5; i++) kept.take(record({ ms: i }));
  for (const text of ["limit=-1", "limit=x", "after=-5", "slowerMs=x", "after=Infinity", "limit=1e9", ""]) {
    const { calls, last } = callsAnswer(new URLSearchParams(text), kept, [], 0);
    expect(calls.map(({ seq }) => seq)).toEqual([3, 4, 5]);
    expect(last).toBe(5);
  }
  expect(callsAnswer(new URLSearchParams("after=9"), kept, [], 0).calls).toEqual([]);
});
