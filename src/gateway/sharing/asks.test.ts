// Questions that wait for a person who is not at a terminal.

import { expect, it } from "vitest";
import type { CallStart, Principal } from "../../contracts/caller.js";
import { systemClock } from "../../runtime/clock.js";
import { Asks } from "./asks.js";

const worker: Principal = { id: "mailbox/worker-1", role: "dev" };
const start = { server: "s", tool: "t", message: { params: { arguments: { a: 1 } } } } as unknown as CallStart;

/** Of a call that is not taken back. */
const wanted = () => new AbortController().signal;

function workerOf(n: number): Principal {
  return { id: `mailbox/worker-${n}`, role: "dev" };
}

it("wait until somebody says yes, no or always, and are shown without what they would be called with", async () => {
  const told: string[] = [];
  const asks = new Asks(systemClock, (text) => void told.push(text));
  const first = asks.ask(worker, start, 60_000, wanted());
  expect(told).toEqual([expect.stringContaining("toolway asks")]);
  expect(asks.list()).toMatchObject([{ id: 1, worker: "worker-1", role: "dev", server: "s", tool: "t" }]);
  expect(asks.list()[0]?.arguments).toBe('{"a":1}');
  expect(asks.shown[0]).not.toHaveProperty("arguments");
  asks.answer(1, "yes");
  await first;
  expect(asks.list()).toEqual([]);
  expect(() => asks.answer(1, "yes")).toThrow("Nobody waits");
  const second = asks.ask(worker, start, 60_000, wanted());
  asks.answer(2, "no");
  await expect(second).rejects.toThrow("said no");
  const third = asks.ask(worker, start, 60_000, wanted());
  asks.answer(3, "always");
  await third;
  await asks.ask(worker, start, 60_000, wanted());
  expect(asks.list()).toEqual([]);
});

it("are refused in time, when there are too many, and when the gateway ends [bounded]", async () => {
  const asks = new Asks(systemClock, () => {});
  await expect(asks.ask(worker, start, 1, wanted())).rejects.toThrow("did not answer within");
  const many = Array.from({ length: 64 }, (_, n) => asks.ask(workerOf(Math.floor(n / 8)), start, 60_000, wanted()));
  await expect(asks.ask(workerOf(8), start, 60_000, wanted())).rejects.toThrow("64 questions");
  asks.close();
  const ends = await Promise.allSettled(many);
  expect(ends.every(({ status }) => status === "rejected")).toBe(true);
  expect(asks.list()).toEqual([]);
});

it("of one worker leave places for those of others [bounded]", async () => {
  const asks = new Asks(systemClock, () => {});
  const own = Array.from({ length: 8 }, () => asks.ask(worker, start, 60_000, wanted()));
  await expect(asks.ask(worker, start, 60_000, wanted())).rejects.toThrow("8 questions of this worker");
  const other = asks.ask(workerOf(2), start, 60_000, wanted());
  asks.answer(9, "yes");
  await other;
  asks.answer(1, "yes");
  await own[0];
  const next = asks.ask(worker, start, 60_000, wanted());
  asks.close();
  const ends = await Promise.allSettled([...own.slice(1), next]);
  expect(ends.every(({ status }) => status === "rejected")).toBe(true);
});

it("are withdrawn when their call is taken back: nobody is told that it runs", async () => {
  const asks = new Asks(systemClock, () => {});
  const call = new AbortController();
  const asked = asks.ask(worker, start, 60_000, call.signal);
  expect(asks.list()).toHaveLength(1);
  call.abort();
  expect(asks.list()).toEqual([]);
  expect(() => asks.answer(1, "always")).toThrow("taken back");
  await expect(asked).rejects.toThrow("Nobody waits for this call any more");
  await expect(asks.ask(worker, start, 60_000, call.signal)).rejects.toThrow("Nobody waits for this call any more");
  expect(asks.list()).toEqual([]);
});

it("show the beginning of long arguments, of those that would be sent", async () => {
  const asks = new Asks(systemClock, () => {});
  const params = { _meta: { arguments: { path: "harmless" } }, arguments: { path: "x".repeat(1_000_000) } };
  const asked = asks.ask(worker, { ...start, message: { params } } as unknown as CallStart, 60_000, wanted());
  const shown = asks.list()[0]?.arguments ?? "";
  expect(shown).toHaveLength(4_096);
  expect(shown).toMatch(/^\{"path":"x+$/);
  asks.close();
  await expect(asked).rejects.toThrow("did not answer");
});
