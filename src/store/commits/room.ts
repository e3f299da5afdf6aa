// What all stores of one process that write to one engine may have pending and on its way together: each of 64 partitions has a
// writer of its own, and a bound for each would be none for the process.

import { MIB } from "../../runtime/sizes.js";
import { type Owned, TurnQueue } from "../../runtime/turns/turn-queue.js";
import { SMALL_WORK_BYTES } from "../../runtime/turns/turns.js";

/** What waits in memory for the engine: some seconds of a slow one. Beyond it callers are told, not queued. */
export const MAX_PENDING_BYTES = 64 * MIB;

/**
 * Large commits that are on their way at once. All that a process says to the engine goes over one connection: what is sent behind
 * so much, the renewal of a lease, has its answer long before it would be given up.
 */
const MAX_SENT_BYTES = 4 * MIB;

interface Waiting extends Owned {
  readonly bytes: number;
  readonly enter: () => void;
}

export class CommitRoom {
  #pending = 0;
  #sent = 0;
  readonly #waiting = new TurnQueue<Waiting>();

  get pendingBytes(): number {
    return this.#pending;
  }

  /** False where there is no room for it. One alone always has some. */
  take(bytes: number): boolean {
    if (this.#pending > 0 && this.#pending + bytes > MAX_PENDING_BYTES) return false;
    this.#pending += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#pending -= bytes;
  }

  /**
   * Resolves when it may be sent, in turns between those whose commits wait; the small are not counted, and never wait. Each is
   * followed by `left` with the same bytes.
   */
  async enter(bytes: number, by?: string): Promise<void> {
    if (bytes < SMALL_WORK_BYTES) return;
    if (this.#waiting.size > 0 || (this.#sent > 0 && this.#sent + bytes > MAX_SENT_BYTES)) {
      await new Promise<void>((enter) => this.#waiting.push({ bytes, enter, by }));
      return;
    }
    this.#sent += bytes;
  }

  left(bytes: number): void {
    if (bytes < SMALL_WORK_BYTES) return;
    this.#sent -= bytes;
    for (let next = this.#waiting.peek(); next !== undefined; next = this.#waiting.peek()) {
      if (this.#sent > 0 && this.#sent + next.bytes > MAX_SENT_BYTES) return;
      this.#waiting.shift();
      this.#sent += next.bytes;
      next.enter();
    }
  }
}
