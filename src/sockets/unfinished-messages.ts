// Messages that are not whole yet, of all connections of one token together: each may be as large as a message can be, and one
// token may have many connections.

import type { EventEmitter } from "node:events";
import { MIB } from "../runtime/sizes.js";
import { MAX_HALF_READ_BYTES } from "./limits.js";

/**
 * Of this each connection of a listener has a share, however many there may be: with less it is not the one that is ended, since it
 * is reading small messages, or has just begun. At 256 connections it is 256 KiB, and at 16,000 it is 4 KiB.
 */
const SMALL_IN_ALL_BYTES = 64 * MIB;

interface Watched {
  /** As many as there may be of such connections. */
  readonly connections: number;
  readonly wire: EventEmitter;
  readonly messages: EventEmitter;
  tooMuch(why: string): void;
}

export class UnfinishedMessages {
  /** Bytes by whose they are; nothing where there are none. */
  readonly #held = new Map<string, number>();

  /**
   * Counts what a connection has read since its last whole message, and tells where its owner has too much with it. What it returns
   * says whose it is from then on.
   */
  watch(first: string, { connections, wire, messages, tooMuch }: Watched): (owner: string) => void {
    const small = SMALL_IN_ALL_BYTES / connections;
    let owner = first;
    let own = 0;
    const forget = () => {
      this.#count(owner, -own);
      own = 0;
    };
    // Before whoever reads: a message that ends with this piece is not half read.
    wire.prependListener("data", (piece: Buffer) => {
      own += piece.length;
      const all = this.#count(owner, piece.length);
      if (all <= MAX_HALF_READ_BYTES || own <= small) return;
      forget();
      tooMuch(
        `The connections of this token hold more than ${MAX_HALF_READ_BYTES} bytes of messages that have not ended.`,
      );
    });
    messages.on("message", forget);
    wire.once("close", forget);
    return (next) => {
      this.#count(owner, -own);
      this.#count(next, own);
      owner = next;
    };
  }

  #count(owner: string, change: number): number {
    const held = (this.#held.get(owner) ?? 0) + change;
    if (held === 0) this.#held.delete(owner);
    else this.#held.set(owner, held);
    return held;
  }
}
