// The queue of answers that wait for room on a full connection. They have their turn in the order in which they
// stopped, a few at a time, so that the first does not fill it again before the last has sent a piece.

import { KIB } from "../../runtime/sizes.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import type { RoomWaiter } from "./answer.js";

/** What Node reads from a socket at once. */
const USUAL_PIECE_BYTES = 64 * KIB;

/** How many are woken at once: their next pieces together fill the half that is free when room is told of. */
const WOKEN_AT_ONCE = MAX_UNACKED_BYTES / 2 / USUAL_PIECE_BYTES;

export class SendQueue {
  readonly #isFull: () => boolean;
  #first: RoomWaiter | undefined;
  #last: RoomWaiter | undefined;
  #next: NodeJS.Immediate | undefined;

  constructor(isFull: () => boolean) {
    this.#isFull = isFull;
  }

  join(waiter: RoomWaiter): void {
    if (waiter.inLine) return;
    waiter.inLine = true;
    if (this.#last === undefined) this.#first = waiter;
    else this.#last.nextInLine = waiter;
    this.#last = waiter;
  }

  /** There is room. Those whose turn does not come now come as soon as the others' pieces are there. */
  readonly wake = (): void => {
    this.#cancelNext();
    for (let woken = 0; woken < WOKEN_AT_ONCE && this.#first !== undefined; woken++) {
      // It is full again, so room will be told of again.
      if (this.#isFull()) return;
      const waiter = this.#first;
      this.#first = waiter.nextInLine;
      if (this.#first === undefined) this.#last = undefined;
      waiter.nextInLine = undefined;
      waiter.inLine = false;
      waiter.hasRoom();
    }
    if (this.#first !== undefined) this.#next = setImmediate(this.wake);
  };

  clear(): void {
    this.#cancelNext();
    this.#first = undefined;
    this.#last = undefined;
  }

  #cancelNext(): void {
    clearImmediate(this.#next);
    this.#next = undefined;
  }
}
