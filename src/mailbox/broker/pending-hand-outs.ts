// Hand-outs to one consumer that have not left: the store must know first whom a message was handed to. They leave in the
// order in which the queue gave them, so what needs no write of its own waits behind what does. A state machine without
// I/O: the broker writes, and says here what came of it.

import type { HandOut, QueuedMessage } from "./queue-terms.js";

/** One write to the store: whom these messages were handed to. */
export class BindWrite {
  readonly given: HandOut[] = [];
  /** It is on disk. */
  isStored = false;
}

interface Pending {
  readonly given: HandOut;
  /** Undefined: the store knew it before. */
  readonly write: BindWrite | undefined;
}

/** Not more than the consumer's window, once for each of the leases that ran out before a write came back. */
export class PendingHandOuts {
  #pending: Pending[] = [];

  get isEmpty(): boolean {
    return this.#pending.length === 0;
  }

  push(given: HandOut, write: BindWrite | undefined): void {
    this.#pending.push({ given, write });
  }

  /** The next one that may leave now. */
  next(): HandOut | undefined {
    const [first] = this.#pending;
    if (first === undefined || first.write?.isStored === false) return undefined;
    this.#pending.shift();
    return first.given;
  }

  /** The write failed: what waited for it does not leave, nor does what the queue gave after it. */
  giveUp(write: BindWrite): HandOut[] {
    const at = this.#pending.findIndex((one) => one.write === write);
    return at < 0 ? [] : this.#pending.splice(at).map(({ given }) => given);
  }

  /** The consumer has gone: nothing leaves any more. */
  takeAll(): HandOut[] {
    return this.#pending.splice(0).map(({ given }) => given);
  }

  /** Takes a message out. False: it has left, or was never here. */
  take(message: QueuedMessage): boolean {
    const before = this.#pending.length;
    if (before === 0) return false;
    this.#pending = this.#pending.filter(({ given }) => given.message !== message);
    return this.#pending.length < before;
  }
}
