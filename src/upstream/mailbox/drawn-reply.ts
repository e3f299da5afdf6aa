// A large reply as it is drawn from the machine that made it, piece by piece: held as a whole where it is small enough,
// else given on as a stream that is drawn no faster than it is read. Its hash is checked before it counts as whole.

import { createHash } from "node:crypto";
import { Fault } from "../../protocol/errors.js";
import { type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { LARGE_REPLY_BYTES, LargeBody, type ReplySource } from "../link/large-body.js";
import type { LinkEvents, Ticket } from "../link/link.js";

export interface DrawnReplyOptions {
  readonly ticket: Ticket;
  readonly bytes: number;
  readonly sha256: string;
  readonly holder: Holder;
  readonly events: Pick<LinkEvents, "onPieces" | "onLargeReply" | "onFailed">;
  /** `abort` says that nobody wants the rest. */
  readonly source: ReplySource;
  /** It is whole, or has failed: nothing more of it is needed. Said before anybody is told of it. */
  onEnd(): void;
}

export class DrawnReply {
  readonly #options: DrawnReplyOptions;
  readonly #hash = createHash("sha256");
  readonly #pieces: Buffer[] = [];
  #received = 0;
  #body: LargeBody | undefined;
  #isOver = false;

  constructor(options: DrawnReplyOptions) {
    this.#options = options;
  }

  /** It has been given on: it is no longer bound to its call. */
  get isStreaming(): boolean {
    return this.#body !== undefined;
  }

  /** The next piece, in its place. */
  push(piece: Buffer): void {
    if (this.#isOver) return;
    this.#hash.update(piece);
    this.#received += piece.length;
    if (this.#options.bytes > LARGE_REPLY_BYTES) this.#stream(piece);
    else this.#gather(piece);
  }

  fail(fault: Fault): void {
    if (this.#isOver) return;
    this.#end();
    const { events, ticket } = this.#options;
    if (this.#body === undefined) events.onFailed(ticket, fault, true);
    else this.#body.destroy(fault);
  }

  /** Nobody waits for it any more. */
  drop(): void {
    if (!this.#isOver) this.#end();
  }

  get #isWhole(): boolean {
    return this.#received >= this.#options.bytes;
  }

  #gather(piece: Buffer): void {
    const { holder, events, ticket } = this.#options;
    this.#pieces.push(piece);
    if (!holder.hold(this.#received)) {
      const message = `The answer of ${this.#options.bytes} bytes was thrown away: ${NO_ROOM}`;
      this.fail(new Fault("limit", message, { wire: { left: true } }));
      return;
    }
    if (!this.#isWhole) return;
    if (!this.#isGenuine()) return;
    this.#end();
    events.onPieces(this.#pieces, ticket);
  }

  #stream(piece: Buffer): void {
    if (this.#body === undefined) {
      const { events, ticket, bytes, source } = this.#options;
      const body = new LargeBody(source, piece);
      if (body.destroyed) {
        this.fail(body.errored as Fault);
        return;
      }
      this.#body = body;
      events.onLargeReply(ticket, body.head, body, bytes);
    } else this.#body.feed(piece);
    if (!this.#isWhole || !this.#isGenuine()) return;
    this.#end();
    this.#body.finish(() => new Fault("protocol", "The answer ended within a message."));
  }

  #isGenuine(): boolean {
    if (this.#hash.digest("hex") === this.#options.sha256.toLowerCase()) return true;
    this.fail(new Fault("protocol", "The answer came in pieces that do not make what was announced."));
    return false;
  }

  #end(): void {
    this.#isOver = true;
    this.#options.holder.release();
    this.#options.onEnd();
  }
}
