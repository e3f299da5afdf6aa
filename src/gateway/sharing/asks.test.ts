// Questions that wait for a person who is not at a terminal.

import { expect, it } from "vitest";
import type { CallStart, Principal } from "../../contracts/caller.js";
import { systemClock } from "../../runtime/clock.js";
import { Asks } from "./asks.js";

const worker: Principal = { id: "mailbox/worker-1", role: "dev" };
const start = { server: "s", tool: "t", message: { params: { arguments: { a: 1 } } } } as unknown as CallStart;

it("wait until somebody says yes, no or always, and are shown without what they would be called with", async () => {
  const told: string[] = [];
  const asks = new Asks(systemClock, (text) => void told.push(text));
  const first = asks.ask(worker, start, 60_000);
  expect(told).toEqual([expect.stringContaining("toolway asks")]);
  expect(asks.list()).toMatchObject([{ id: 1, worker: "worker-1", role: "dev", server: "s", tool: "t" }]);
  expect(asks.list()[0]?.arguments).toBe('{"a":1}');
  expect(asks.shown[0]).not.toHaveProperty("arguments");
  asks.answer(1, "yes");
  await first;
  expect(asks.list()).toEqual([]);
  expect(() => asks.answer(1, "yes")).toThrow("Nobody waits");
  const second = asks.ask(worker, start, 60_000);
  asks.answer(2, "no");
  await expect(second).rejects.toThrow("said no");
  const third = asks.ask(worker, start, 60_000);
  asks.answer(3, "always");
  await third;
  await asks.ask(worker, start, 60_000);
  expect(asks.list()).toEqual([]);
});

it("are refused in time, when there are too many, and when the gateway ends [bounded]", async () => {
  const asks = new Asks(systemClock, () => {});
  await expect(asks.ask(worker, start, 1)).rejects.toThrow("did not answer within");
  const many = Array.from({ length: 64 }, () => asks.ask(worker, start, 60_000));
  await expect(asks.ask(worker, start, 60_000)).rejects.toThrow("64 questions");
  asks.close();
  const ends = await Promise.allSettled(many);
  expect(ends.every(({ status }) => status === "rejected")).toBe(true);
  expect(asks.list()).toEqual([]);
});
