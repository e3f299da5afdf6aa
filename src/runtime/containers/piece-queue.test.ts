// What waits for a reader, in order, and at what cost.

import { expect, test } from "vitest";
import { PieceQueue } from "./piece-queue.js";

const numbered = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => Buffer.from(`${from + i},`));

test("a few pieces stay as they came", () => {
  const queue = new PieceQueue();
  const pieces = numbered(0, 10);
  for (const piece of pieces) queue.push(piece, true);
  expect(queue.size).toBe(10);
  for (const piece of pieces) expect(queue.shift()).toBe(piece);
  expect(queue.shift()).toBeUndefined();
});

test("many small ones are put together, and nothing is lost, doubled or overwritten", () => {
  const queue = new PieceQueue();
  const told: Buffer[] = [];
  const big = Buffer.alloc(5_000, "b");
  let expected = "";
  for (let round = 0; round < 50; round++) {
    for (const piece of numbered(round * 1_000, round * 1_000 + 1_000)) {
      queue.push(piece, true);
      expected += piece;
    }
    queue.push(big, true);
    expected += big;
    // The reader takes a few, the last of them filled only in part.
    for (let i = 0; i < 7; i++) told.push(queue.shift() as Buffer);
  }
  expect(queue.size).toBeLessThan(500);
  expect(Buffer.concat([...told, ...queue.takeAll()]).toString()).toBe(expected);
  expect(queue.size).toBe(0);
});

test("where their number counts they stay apart", () => {
  const queue = new PieceQueue();
  for (const piece of numbered(0, 300)) queue.push(piece, false);
  expect(queue.size).toBe(300);
});

test("a queue that is never empty does not grow with what went through it", () => {
  const queue = new PieceQueue();
  let next = 0;
  for (let i = 0; i < 5_000; i++) {
    queue.push(Buffer.from(`${i}`), false);
    if (i >= 3) expect(queue.shift()?.toString()).toBe(`${next++}`);
  }
  expect(queue.takeAll().map(String)).toEqual(["4997", "4998", "4999"]);
});
