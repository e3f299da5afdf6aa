// The POSTs of one endpoint that wait for their answers: keep-alive comments go to them, and a drain waits for them.

import type { Clock } from "../../runtime/clock.js";
import { IndexedSet, type Placed } from "../../runtime/containers/table.js";

/** A POST that waits for its answer. */
export interface WaitingPost extends Placed {
  keepAlive(nowMs: number, quietMs: number): void;
}

export class WaitingPosts {
  readonly #posts = new IndexedSet<WaitingPost>();
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get size(): number {
    return this.#posts.size;
  }

  now(): number {
    return this.#clock.now();
  }

  add(post: WaitingPost): void {
    this.#posts.add(post);
  }

  delete(post: WaitingPost): void {
    this.#posts.delete(post);
  }

  keepAlive(nowMs: number, quietMs: number): void {
    for (const post of this.#posts.all()) post.keepAlive(nowMs, quietMs);
  }
}
