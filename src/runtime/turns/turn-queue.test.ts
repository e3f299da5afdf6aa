import { expect, it } from "vitest";
import { TurnQueue } from "./turn-queue.js";

const drained = (queue: TurnQueue<{ by?: string; n: number }>) => {
  const all: number[] = [];
  while (queue.size > 0) {
    const next = queue.peek();
    expect(queue.shift()).toBe(next);
    all.push(next?.n ?? Number.NaN);
  }
  expect(queue.peek()).toBeUndefined();
  return all;
};

it("gives each owner its turn, each in its order, and what is nobody's first", () => {
  const queue = new TurnQueue<{ by?: string; n: number }>();
  for (const n of [1, 2, 3, 4]) queue.push({ by: "flood", n });
  queue.push({ by: "ann", n: 10 });
  queue.push({ by: "bob", n: 20 });
  queue.push({ by: "ann", n: 11 });
  queue.push({ n: 0 });
  expect(drained(queue)).toEqual([0, 1, 10, 20, 2, 11, 3, 4]);
});

it("has what was put back first again, in its order", () => {
  const queue = new TurnQueue<{ by?: string; n: number }>();
  for (const n of [1, 2, 3]) queue.push({ by: "ann", n });
  queue.push({ by: "bob", n: 10 });
  const taken = [queue.shift(), queue.shift()].flatMap((one) => one ?? []);
  queue.push({ n: 0 });
  queue.putBack(taken);
  expect([queue.size, drained(queue)]).toEqual([5, [1, 10, 0, 2, 3]]);
});

it("gives out of turn what is asked for, and never what stands behind another of its owner", () => {
  const queue = new TurnQueue<{ by?: string; n: number }>();
  for (const n of [100, 1]) queue.push({ by: "flood", n });
  queue.push({ by: "ann", n: 2 });
  const isSmall = ({ n }: { n: number }) => n < 100;
  expect([queue.shift(isSmall)?.n, queue.shift(isSmall), drained(queue)]).toEqual([2, undefined, [100, 1]]);
});

it("tells whoever waits of what comes", async () => {
  const queue = new TurnQueue<{ by?: string; n: number }>();
  const pushed = queue.pushed();
  queue.push({ n: 1 });
  await pushed;
  expect(queue.size).toBe(1);
});
