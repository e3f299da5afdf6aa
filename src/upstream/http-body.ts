// The rest of a reply that is too large to hold: read from the socket no faster than somebody reads it here.

import { Readable } from "node:stream";
import { Fault } from "../protocol/errors.js";
import type { Exchange } from "./http-wire.js";

/** Replies up to this size are held and given as one buffer; the design's figure for what is worth streaming. */
export const LARGE_REPLY_BYTES = 1024 * 1024;
/** A reply that is larger is a mistake or an attack: no agent reads a gigabyte. */
const MAX_REPLY_BYTES = 1024 * 1024 * 1024;
/** What waits here for its reader: two reads of the socket. */
const HELD_BYTES = 128 * 1024;

export class LargeBody extends Readable {
  readonly #exchange: Exchange;
  #left: number;

  /** `seen` bytes have come already, and are not part of this stream. */
  constructor(exchange: Exchange, seen: number) {
    super({ highWaterMark: HELD_BYTES });
    this.#exchange = exchange;
    this.#left = MAX_REPLY_BYTES - seen;
    // Nobody may be listening yet when the connection breaks; that must not end the process.
    this.on("error", () => {});
  }

  feed(chunk: Buffer): void {
    this.#left -= chunk.length;
    if (this.#left < 0) {
      this.destroy(new Fault("limit", `The reply is larger than ${MAX_REPLY_BYTES} bytes.`));
    } else if (!this.push(chunk)) {
      this.#exchange.pause();
    }
  }

  finish(): void {
    this.push(null);
  }

  override _read(): void {
    this.#exchange.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#exchange.abort();
    callback(error);
  }
}
