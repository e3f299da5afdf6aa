// The past: counts by steps of time against plain sums, its bounds, and its way over a restart.

import fc from "fast-check";
import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type CallRecord, emptyRecord } from "../call-record.js";
import { CaughtDay } from "./caught-day.js";
import { History, MAX_TOOLS_OF_SERVER } from "./history.js";
import { historyBytes, joinHistory } from "./history-bytes.js";
import { historyAnswer, toolsAnswer } from "./shown-history.js";
import { bucketOf, quantile, TimeLine } from "./time-line.js";

const START = 1_700_000_000_000;
const named = (_: string, tool: string) => tool;

function call(more: Partial<CallRecord>): CallRecord {
  return { ...emptyRecord(), method: "tools/call", server: "files", tool: "read", endedAt: START, ...more };
}

const ask = (text = "") => new URLSearchParams(text);
const sum = (counts: ArrayLike<number>) => Array.from(counts).reduce((all, one) => all + one, 0);

it("p50 and p95 are within a tenth of what they are [calls-recorded]", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0.06, max: 600_000, noNaN: true }), { minLength: 1 }), (times) => {
      const line = new TimeLine(10_000, 6);
      for (const ms of times) line.add(START, bucketOf(ms), false);
      const sorted = [...times].sort((a, b) => a - b);
      for (const share of [0.5, 0.95]) {
        const right = sorted[Math.ceil(sorted.length * share) - 1] as number;
        expect(Math.abs(line.lately(share) / right - 1)).toBeLessThanOrEqual(0.1);
      }
      const read = line.read(START);
      expect(read.p95.at(-1)).toBeCloseTo(line.lately(0.95), 0);
    }),
    { numRuns: histories(300) },
  );
  expect(quantile(0.5, new Uint32Array(96))).toBe(0);
});

it("a line has what was called in each of its last steps, whenever that was, and nothing older [calls-recorded] [bounded]", () => {
  const step = fc.record({ afterMs: fc.integer({ min: 0, max: 9_000 }), isError: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 0, max: 20_000 }), (steps, lookAfterMs) => {
      const line = new TimeLine(1_000, 8);
      const model = new Map<number, [calls: number, errors: number]>();
      let atMs = START;
      for (const { afterMs, isError } of steps) {
        atMs += afterMs;
        line.add(atMs, bucketOf(5), isError);
        const slot = Math.floor(atMs / 1_000);
        const [calls, errors] = model.get(slot) ?? [0, 0];
        model.set(slot, [calls + 1, errors + (isError ? 1 : 0)]);
      }
      const lookMs = atMs + lookAfterMs;
      const last = Math.floor(lookMs / 1_000);
      const expected = Array.from({ length: 8 }, (_, i) => model.get(last - 7 + i) ?? [0, 0]);
      const { calls, errors, p50 } = line.read(lookMs);
      expect(Array.from(calls)).toEqual(expected.map(([count]) => count));
      expect(Array.from(errors)).toEqual(expected.map(([, count]) => count));
      // A step in which something was called says how long it took, and no other does.
      expect(Array.from(p50, (ms) => ms > 0)).toEqual(expected.map(([count = 0]) => count > 0));
    }),
    { numRuns: histories(500) },
  );
});

it("a clock that was set wrong and right again leaves no line that stands still [calls-recorded]", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: -1e10, max: 1e10 }), { maxLength: 20 }), (jumps) => {
      const line = new TimeLine(1_000, 8);
      let atMs = START;
      for (const jump of jumps) {
        atMs = Math.max(0, atMs + jump);
        line.add(atMs, 1, false);
      }
      line.add(START, 1, false);
      line.add(START + 5_000, 1, false);
      const { calls } = line.read(START + 5_000);
      expect(calls.at(-1)).toBe(1);
      expect(sum(calls)).toBeLessThanOrEqual(jumps.length + 2);
    }),
  );
});

it("the past says of gateway, servers and tools how often they were called, and goes on after a restart [calls-recorded]", () => {
  const times = fc.array(fc.integer({ min: 0, max: 7_200_000 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(times, fc.integer({ min: 0, max: 40 }), fc.nat(3_000_000), (afters, cut, downMs) => {
      const ends = [...afters].sort((a, b) => a - b);
      const whole = new History(named);
      const [before, after] = [new History(named), new History(named)];
      const restartMs = (ends[cut - 1] ?? 0) + downMs;
      const calls = ends.map((ms, i) => ({ ms: i + 1, endedAt: START + (i < cut ? ms : ms + downMs) }));
      for (const [i, one] of calls.entries()) {
        const outcome = i % 3 === 0 ? ("timeout" as const) : ("ok" as const);
        const record = call({ ...one, outcome, bytes: 10, serverMs: 1 });
        whole.take(record);
        if (i === cut) joinHistory(after, historyBytes(before), START + restartMs);
        (i < cut ? before : after).take(record);
      }
      const nowMs = START + (ends.at(-1) as number) + downMs + 1_000;
      if (cut >= calls.length) joinHistory(after, historyBytes(before), nowMs);
      for (const window of ["hour", "day"]) {
        const query = ask(`window=${window}&server=files`);
        const [one, two] = [historyAnswer(query, whole, nowMs), historyAnswer(query, after, nowMs)];
        // As texts: expect() takes its time for thousands of numbers.
        const linesOf = ({ line, total }: typeof one) => JSON.stringify([line?.calls, line?.errors, total.calls]);
        expect(linesOf(two)).toBe(linesOf(one));
        expect(sum(two.total.calls)).toBe(sum(two.line?.calls ?? []));
        expect(two.servers[0]).toMatchObject({ server: "files", calls: one.servers[0]?.calls });
      }
      const one = toolsAnswer(ask(), whole, nowMs).tools;
      expect(toolsAnswer(ask("server=files"), after, nowMs).tools).toEqual(one);
      expect(one).toMatchObject([{ tool: "read", calls: calls.length, resultBytes: 10 * calls.length }]);
    }),
    { numRuns: histories(60) },
  );
});

it("a tool's last day is told by itself, to the hour, also when the clock is set back [calls-recorded]", () => {
  const history = new History(named);
  const day = (nowMs: number) => toolsAnswer(ask(), history, nowMs).tools[0]?.day;
  const hours = (n: number) => START + n * 3_600_000;
  expect(toolsAnswer(ask(), history, START).since).toBeUndefined();
  history.take(call({ endedAt: hours(0), outcome: "timeout" }));
  history.take(call({ endedAt: hours(5) }));
  history.take(call({ endedAt: hours(23) }));
  expect([day(hours(23)), day(hours(24)), day(hours(40)), day(hours(60))]).toEqual([
    { calls: 3, errors: 1 },
    { calls: 2, errors: 0 },
    { calls: 1, errors: 0 },
    { calls: 0, errors: 0 },
  ]);
  history.take(call({ endedAt: hours(90) }));
  expect(day(hours(90))).toEqual({ calls: 1, errors: 0 });
  history.take(call({ endedAt: hours(1) }));
  expect(day(hours(1))).toEqual({ calls: 1, errors: 0 });
  expect(toolsAnswer(ask(), history, hours(90))).toMatchObject({ since: new Date(START).toISOString() });
});

it("restarts stand in the line of their server, and the last minute is told by itself [calls-recorded]", () => {
  const history = new History(named);
  history.restarted("files", START);
  for (let i = 0; i < 12; i++)
    history.take(call({ endedAt: START + i * 1_000, ms: 100, serverMs: 90, outcome: "timeout" }));
  const { now, servers, line } = historyAnswer(ask("server=files"), history, START + 30_000);
  expect(sum(line?.restarts ?? [])).toBe(1);
  expect(servers).toMatchObject([{ server: "files", calls: 12, errors: 12, restarts: 1, callsAMinute: 12 }]);
  expect(now).toMatchObject({ calls: 12, errorsAMinute: 12 });
  // A call counts from its end on, and no longer than a minute.
  history.take(call({ endedAt: START + 30_000, ms: 100 }));
  expect(historyAnswer(ask(), history, START + 30_000).now).toMatchObject({ callsAMinute: 13, errorsAMinute: 12 });
  expect(historyAnswer(ask(), history, START + 80_000).now).toMatchObject({ callsAMinute: 1, errorsAMinute: 0 });
  expect(now.ownP95).toBeGreaterThan(9);
  expect(now.ownP95).toBeLessThanOrEqual(11);
  expect(historyAnswer(ask("server=none"), history, START).line).toBeUndefined();
});

it("more servers and tools than there is room for are counted as others [bounded]", () => {
  const history = new History(named, 3);
  for (let i = 0; i < 9; i++) history.take(call({ server: `s${i}` }));
  const { servers } = historyAnswer(ask(), history, START);
  expect(servers.map(({ server, calls }) => [server, calls])).toEqual([
    ["_other", 6],
    ["s0", 1],
    ["s1", 1],
    ["s2", 1],
  ]);
  for (let i = 0; i < MAX_TOOLS_OF_SERVER + 7; i++) history.take(call({ server: "s1", tool: `t${i}` }));
  const { tools } = toolsAnswer(ask("server=s1"), history, START);
  expect(tools).toHaveLength(MAX_TOOLS_OF_SERVER + 1);
  expect(tools.find(({ tool }) => tool === "_other")?.calls).toBe(8);
  // What no server lists is a name that an agent made up.
  const unlisted = new History(() => undefined);
  unlisted.take(call({}));
  expect(toolsAnswer(ask(), unlisted, START).tools).toEqual([]);
});

it("bytes that are not whole, of another form or wrong in any place end nothing, and add nothing or only counts", () => {
  const source = new History(named);
  for (let i = 0; i < 50; i++) source.take(call({ server: `s${i % 3}`, ms: i }));
  const bytes = historyBytes(source);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: bytes.length - 1 }), (length) => {
      const history = new History(named);
      expect(() => joinHistory(history, bytes.subarray(0, length), START)).toThrow();
      expect(sum(historyAnswer(ask(), history, START).total.calls)).toBe(0);
    }),
  );
  for (const text of ["", "{}", "[]\n", '{"form":2}\n', '{"form":1,"endian":"LE","servers":[{}]}\n', "\n\n"]) {
    expect(() => joinHistory(new History(named), Buffer.from(text), START)).toThrow();
  }
});

it("what agents did not notice is saved with the past, absent in what an earlier version saved, and refused where it is wrong", () => {
  const source = new CaughtDay(START);
  source.add("token", 3, START + 1_000);
  const bytes = historyBytes(new History(named), source);
  const readBy = (text: Buffer) => {
    const caught = new CaughtDay(START + 10_000);
    joinHistory(new History(named), text, START + 10_000, caught);
    return caught.read(START + 10_000);
  };
  expect(readBy(bytes)).toEqual({ sinceMs: START, counts: { token: 3 } });
  expect(readBy(historyBytes(new History(named)))).toEqual({ sinceMs: START + 10_000, counts: {} });
  const [head = ""] = bytes.toString("latin1").split("\n", 1);
  for (const caught of [
    7,
    null,
    {},
    { sinceMs: 1 },
    { sinceMs: 1, kinds: { a: 1 } },
    { sinceMs: 1, kinds: { a: [[1]] } },
  ]) {
    const wrong = `${JSON.stringify({ ...JSON.parse(head), caught })}\n`;
    expect(() => readBy(Buffer.concat([Buffer.from(wrong), bytes.subarray(head.length + 1)]))).toThrow("its head");
  }
});

it("what all steps hold together is what the steps hold, wherever the line is, in 500 histories", () => {
  const happening = fc.record({
    ms: fc.integer({ min: 0, max: 40_000 }),
    kind: fc.constantFrom("ok", "error", "restart", "wait"),
  });
  fc.assert(
    fc.property(fc.array(happening, { maxLength: 80 }), (all) => {
      const line = new TimeLine(10_000, 12);
      let now = 1e12;
      for (const { ms, kind } of all) {
        now += ms;
        if (kind === "restart") line.restarted(now);
        else if (kind !== "wait") line.add(now, 3, kind === "error");
      }
      const { calls, errors, restarts } = line.read(now);
      const sum = (counts: ArrayLike<number>) => Array.from(counts).reduce((whole, one) => whole + one, 0);
      const last = Array.from(restarts).findLastIndex((count) => count > 0);
      expect(line.totals(now)).toEqual({
        calls: sum(calls),
        errors: sum(errors),
        restarts: sum(restarts),
        restartedStepsAgo: last < 0 ? undefined : restarts.length - 1 - last,
      });
      const share = 1 - (now % 10_000) / 10_000;
      const minute = (counts: ArrayLike<number> & { subarray(from: number): ArrayLike<number> }) =>
        sum(counts.subarray(-6)) + Math.round((counts[counts.length - 7] as number) * share);
      expect(line.within(now, 6)).toEqual({ calls: minute(calls), errors: minute(errors) });
    }),
    { numRuns: histories(500) },
  );
});
