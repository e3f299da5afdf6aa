// The body of a request that comes in pieces: a Readable for the HTTP request, which grants the client its credit. It
// never holds more than was granted.

import { Readable } from "node:stream";
import { PieceQueue } from "../../runtime/containers/piece-queue.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { CreditAccount, type CreditBook } from "../../sockets/credit.js";
import { MAX_STREAMED_BODY_BYTES } from "../wire/limits.js";
import type { BodyDelta } from "../wire/protocol.js";

/** What the stream itself keeps ready for the socket; the rest waits in our queue, where it counts as unread. */
const READY_BYTES = 64 * KIB;

export class UploadBody extends Readable {
  readonly #uploads: CreditBook;
  readonly #grant: (bytes: number) => void;
  #nextSeq = 1;
  /** Pieces that came and were not asked for yet. */
  readonly #queue = new PieceQueue();
  #wanted: boolean = false;
  readonly #account = new CreditAccount();
  #total = 0;
  #done: boolean = false;

  /** `uploads`: what all of the session may have unread. `grant` tells the client. */
  constructor(uploads: CreditBook, grant: (bytes: number) => void) {
    super({ highWaterMark: READY_BYTES });
    this.#uploads = uploads;
    this.#grant = grant;
    uploads.open(this.#account);
    // Its reader listens for errors itself; without a reader nobody needs to hear of them.
    this.on("error", () => {});
  }

  /** Takes the next piece. Returns what is wrong with it, if anything is: then the request cannot go on. */
  accept(delta: BodyDelta): string | undefined {
    // This is the rest of a body that nobody reads any more.
    if (this.#done || this.destroyed) return undefined;
    if (delta.error !== undefined) return `the request's body broke off: ${delta.error}`;
    if (delta.seq !== this.#nextSeq)
      return `the request's body has a gap: piece ${delta.seq} in place of ${this.#nextSeq}`;
    this.#nextSeq++;
    const { data } = delta;
    if (!this.#uploads.arrived(this.#account, data.length)) return `the request's body came faster than it was granted`;
    this.#total += data.length;
    if (this.#total > MAX_STREAMED_BODY_BYTES) {
      return `the request's body has more than ${MAX_STREAMED_BODY_BYTES / MIB} MiB`;
    }
    this.#done = delta.done;
    if (data.length > 0) this.#queue.push(data, true);
    if (this.#wanted) this.#deliver();
    return undefined;
  }

  /** Nobody needs the rest. */
  stop(): void {
    this.#queue.clear();
    this.#uploads.close(this.#account);
    if (!this.readableEnded) this.destroy();
  }

  override _read(): void {
    this.#wanted = true;
    this.#deliver();
  }

  #deliver(): void {
    let taken = 0;
    while (this.#wanted) {
      const chunk = this.#queue.shift();
      if (chunk === undefined) break;
      taken += chunk.length;
      // _read() may be called from within push().
      this.#wanted = false;
      if (this.push(chunk)) this.#wanted = true;
    }
    const granted = taken === 0 ? 0 : this.#uploads.taken(this.#account, taken);
    if (!this.#done) {
      if (granted > 0) this.#grant(granted);
    } else if (this.#queue.size === 0 && this.#wanted) {
      this.#wanted = false;
      this.push(null);
    }
  }
}
