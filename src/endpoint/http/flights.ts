// POSTs that wait for their answers: what keep-alive comments and a drain have to know.

import type { Bag, Placed } from "../../runtime/bag.js";

/** A POST that waits for its answer. */
export interface Posted extends Placed {
  keepAlive(nowMs: number, quietMs: number): void;
}

/** What is in flight at an endpoint, for keep-alive and for the drain. */
export interface Flight {
  readonly posts: Bag<Posted>;
  now(): number;
}
