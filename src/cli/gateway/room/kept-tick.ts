// What V8 knows of the objects in which Node queues callbacks (process.nextTick), for as long as somebody holds it.

import { executionAsyncResource } from "node:async_hooks";

/** `tick` is one of those objects, from the next turn on. */
export interface TickShape {
  readonly tick: object | undefined;
}

/**
 * Node makes such an object for each callback, some ten for a request over HTTP, in code that V8 made for their shape. Where a
 * marking of the heap finds none of them alive, V8 forgets the shape and does not learn it again: each of them costs a call of
 * its runtime from then on, which is some 4 % of a request. So one is held.
 */
export function keepTickShape(): TickShape {
  const shape: { tick: object | undefined } = { tick: undefined };
  process.nextTick(() => {
    shape.tick = executionAsyncResource();
  });
  return shape;
}
