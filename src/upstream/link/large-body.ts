// The rest of a reply that is too large to hold: it comes no faster than somebody reads it here.

import { Readable } from "node:stream";
import { HELD_BACK_BYTES, lastByteOf, MemberCheck, Utf8Check } from "../../protocol/check-reply.js";
import { Fault } from "../../protocol/errors.js";

/** Replies up to this size are held, which costs half of streaming them. A result of 1 MiB fits. */
export const LARGE_REPLY_BYTES = 2 * 1024 * 1024;
/** Replies from this size on are given in the pieces they came in: a few reads of the socket. */
export const PIECED_REPLY_BYTES = 128 * 1024;
/** A reply that is larger is a mistake or an attack: no agent reads a gigabyte. */
const MAX_REPLY_BYTES = 1024 * 1024 * 1024;
/** So much waits here for its reader: two reads of the socket. */
const HELD_BYTES = 128 * 1024;

/** White space that may follow a reply; what was held with it is not much more. */
const MAX_SPACE_BYTES = 1024 * 1024;

/** Where a reply comes from: it can be held up, and given up. */
export interface ReplySource {
  pause(): void;
  resume(): void;
  abort(): void;
}

/** It judges the reply as it passes, and holds its end back until that is done: a bad one never ends well. */
export class LargeBody extends Readable {
  readonly #source: ReplySource;
  readonly #members = new MemberCheck();
  readonly #utf8 = new Utf8Check();
  #left: number;
  #held: Buffer;
  /** What has come already, and is not part of this stream. */
  readonly head: Buffer;

  /** Of `seen`, which has come already, the last HELD_BACK_BYTES before white space are part of this stream. */
  constructor(source: ReplySource, seen: Buffer) {
    super({ highWaterMark: HELD_BYTES });
    this.#source = source;
    this.#left = MAX_REPLY_BYTES - seen.length;
    const cut = Math.max(0, endOfText(seen) - HELD_BACK_BYTES);
    this.head = seen.subarray(0, cut);
    this.#held = seen.subarray(cut);
    this.#judge(seen);
    // Nobody may be listening yet when the connection breaks; that must not end the process.
    this.on("error", () => {});
  }

  feed(chunk: Buffer): void {
    this.#left -= chunk.length;
    if (this.#left < 0) {
      this.destroy(new Fault("limit", `The reply is larger than ${MAX_REPLY_BYTES} bytes.`));
      return;
    }
    const wasClosed = this.#members.isClosed;
    this.#judge(chunk);
    if (this.destroyed) return;
    if (wasClosed) {
      this.#keepSpace(chunk);
      return;
    }
    const before = this.#held;
    if (chunk.length >= HELD_BACK_BYTES) {
      this.#held = chunk;
      if (!this.push(before)) this.#source.pause();
      return;
    }
    const joined = Buffer.concat([before, chunk]);
    this.#held = joined.subarray(-HELD_BACK_BYTES);
    if (!this.push(joined.subarray(0, joined.length - this.#held.length))) this.#source.pause();
  }

  /** White space behind the message: what is held must end with the message's own last brace. */
  #keepSpace(space: Buffer): void {
    this.#held = Buffer.concat([this.#held, space]);
    if (this.#held.length > MAX_SPACE_BYTES) this.destroy(badReply("does not end"));
  }

  #judge(bytes: Buffer): void {
    if (!this.#members.push(bytes)) this.destroy(badReply(this.#members.flaw()));
    else if (!this.#utf8.push(bytes)) this.destroy(badReply("is no UTF-8"));
  }

  /** The body has ended; one that was cut off by the end of the connection is not passed for whole. */
  finish(cut: () => Fault): void {
    if (this.destroyed) return;
    const flaw = this.#members.flaw() ?? (this.#utf8.isWhole ? undefined : "is no UTF-8");
    if (!endsAsJson([this.#held])) this.destroy(cut());
    else if (flaw !== undefined) this.destroy(badReply(flaw));
    else {
      this.push(this.#held);
      this.push(null);
    }
  }

  override _read(): void {
    this.#source.resume();
  }

  override _destroy(error: Error | null, callback: (error: Error | null) => void): void {
    this.#source.abort();
    callback(error);
  }
}

function badReply(flaw: string | undefined): Fault {
  return new Fault("protocol", `The server answered with a reply that ${flaw ?? "is no JSON-RPC message"}.`);
}

/** Behind the last byte that is no white space. */
function endOfText(bytes: Buffer): number {
  let end = bytes.length;
  while (end > 0 && SPACES.has(bytes[end - 1] as number)) end--;
  return end;
}

const SPACES = new Set([0x20, 0x09, 0x0a, 0x0d]);
const CLOSE_BRACE = 0x7d;
const CLOSE_BRACKET = 0x5d;

/**
 * Whether a JSON message can end so, or there is none. A body without a length ends with its connection, however that
 * ended: only its last byte tells.
 */
export function endsAsJson(pieces: readonly Buffer[]): boolean {
  const last = lastByteOf(pieces);
  return last === undefined || last === CLOSE_BRACE || last === CLOSE_BRACKET;
}
