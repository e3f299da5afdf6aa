// The shape of Node's queued callbacks survives a marking of the heap.

import { executionAsyncResource } from "node:async_hooks";
import { expect, it } from "vitest";
import { keepTickShape } from "./kept-tick.js";

/** One that Node has queued by itself. */
const queued = () =>
  new Promise<object>((resolve) => {
    process.nextTick(() => resolve(executionAsyncResource()));
  });

it("holds one of the objects in which Node queues callbacks", async () => {
  const shape = keepTickShape();
  const other = await queued();
  expect(shape.tick).not.toBe(other);
  // Symbols are among them: it is not the object of whoever called.
  expect(Reflect.ownKeys(shape.tick ?? {})).toEqual(Reflect.ownKeys(other));
  expect(Reflect.ownKeys(other).some((key) => typeof key === "symbol")).toBe(true);
});
