// Messages that are not whole yet, of all connections of one token together: each may be as large as a message can be, and one
// token may have many connections.

import type { EventEmitter } from "node:events";
import { KIB } from "../runtime/sizes.js";
import { MAX_HALF_READ_BYTES } from "./limits.js";

/** A connection with less is not the one that is ended: it is reading small messages, or has just begun. */
const SMALL_BYTES = 256 * KIB;

export class HalfRead {
  /** Bytes by whose they are; nothing where there are none. */
  readonly #held = new Map<string, number>();

  /** Counts what a connection has read since its last whole message, and tells where `owner` has too much with it. */
  watch(owner: string, wire: EventEmitter, messages: EventEmitter, tooMuch: (why: string) => void): void {
    let own = 0;
    const forget = () => {
      this.#count(owner, -own);
      own = 0;
    };
    // Before whoever reads: a message that ends with this piece is not half read.
    wire.prependListener("data", (piece: Buffer) => {
      own += piece.length;
      const all = this.#count(owner, piece.length);
      if (all <= MAX_HALF_READ_BYTES || own <= SMALL_BYTES) return;
      forget();
      tooMuch(
        `The connections of this token hold more than ${MAX_HALF_READ_BYTES} bytes of messages that have not ended.`,
      );
    });
    messages.on("message", forget);
    wire.once("close", forget);
  }

  #count(owner: string, change: number): number {
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
    return held;
  }
}
