// Calls of the program or the operator that are under way: a gateway that closes lets them end.

import { resultWithin } from "../runtime/wait.js";

export class CallsInFlight {
  readonly #calls = new Set<Promise<unknown>>();

  async add<T>(call: Promise<T>): Promise<T> {
    this.#calls.add(call);
    try {
      return await call;
    } finally {
      this.#calls.delete(call);
    }
  }

  /** Resolves when all have ended, after `drainMs` at the latest. */
  async ended(drainMs: number): Promise<void> {
    await resultWithin(Promise.allSettled(this.#calls), drainMs);
  }
}
