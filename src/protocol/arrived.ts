// Replies as they came from a server, held whole: in one buffer, or in the pieces that the socket gave, whose id is
// exchanged here. What a copy with other bytes must not take along (the text, the pieces) is behind accessors, so that
// `{ ...reply, bytes }` has neither.

import { giveBack } from "../runtime/memory/read-blocks.js";
import type { BytesReply, Reply } from "./reply.js";
import type { Anchor } from "./reply-id.js";

type Span = Pick<Anchor, "idStart" | "idEnd">;

/** In one buffer. */
export class WholeReply implements BytesReply {
  readonly kind = "bytes";
  readonly era: "modern" | undefined;
  readonly bytes: Buffer;
  readonly idStart: number;
  readonly idEnd: number;
  readonly #latin1: string | undefined;
  readonly #succeeded: boolean;

  constructor(
    bytes: Buffer,
    { idStart, idEnd }: Span,
    era: "modern" | undefined,
    latin1?: string,
    succeeded: boolean = false,
  ) {
    this.era = era;
    this.bytes = bytes;
    this.idStart = idStart;
    this.idEnd = idEnd;
    this.#latin1 = latin1;
    this.#succeeded = succeeded;
  }

  get latin1(): string | undefined {
    return this.#latin1;
  }

  get succeeded(): boolean {
    return this.#succeeded;
  }
}

/** In pieces: joining them costs as much as reading them did, and most replies are only written on. */
export class PiecedReply implements BytesReply {
  readonly kind = "bytes";
  readonly era: "modern" | undefined;
  /** Joined when somebody asks for it. */
  declare readonly bytes: Buffer;
  readonly idStart: number;
  readonly idEnd: number;
  /** Undefined once they were given back. */
  #pieces: readonly Buffer[] | undefined;
  readonly #size: number;
  /** How many asked for the pieces and have not written them yet. */
  #readers = 0;
  #isShared = false;

  /** `pieces` as findAnchorIn left them. */
  constructor(pieces: readonly Buffer[], { idStart, idEnd }: Span, era: "modern" | undefined) {
    const size = sizeOf(pieces);
    this.#pieces = pieces;
    this.#size = size;
    this.idStart = idStart;
    this.idEnd = idEnd;
    this.era = era;
    let joined: Buffer | undefined;
    // A property of its own: a copy of the reply has the bytes too.
    Object.defineProperty(this, "bytes", {
      enumerable: true,
      get: () => {
        joined ??= Buffer.concat(this.#there, size);
        return joined;
      },
    });
  }

  get size(): number {
    return this.#size;
  }

  /** The beginning, long enough to hold an anchor. */
  get first(): Buffer {
    return this.#there[0] as Buffer;
  }

  get last(): Buffer {
    return this.#there.at(-1) as Buffer;
  }

  /**
   * All of it under the asker's id, to be written one after another. Who has written it may say so by `written()`; the
   * pieces of one who never does are the collector's.
   */
  under(idText: string): Buffer[] {
    this.#readers++;
    const out: Buffer[] = [];
    let at = 0;
    for (const piece of this.#there) {
      const start = this.idStart - at;
      // The id stands in one piece: findAnchorIn looks nowhere else.
      if (start >= 0 && start < piece.length) {
        out.push(piece.subarray(0, start), Buffer.from(idText), piece.subarray(this.idEnd - at));
      } else out.push(piece);
      at += piece.length;
    }
    return out;
  }

  /** More than one may ask for it, now or later: it is never given back. */
  share(): void {
    this.#isShared = true;
  }

  /** The kernel has all that one call of `under()` gave. With the last of them the bytes are gone. */
  written(): void {
    this.#readers--;
    if (this.#readers > 0 || this.#isShared) return;
    for (const piece of this.#there) giveBack(piece);
    this.#pieces = undefined;
  }

  /** It fails where it would give the bytes of another reply. */
  get #there(): readonly Buffer[] {
    if (this.#pieces === undefined)
      throw new Error("The reply was written already; who gives it to several shares it.");
    return this.#pieces;
  }
}

/** The same reply, for several to read and to write, each in its own time. */
export function shared<R extends Reply>(reply: R): R {
  if (reply instanceof PiecedReply) reply.share();
  return reply;
}

function sizeOf(pieces: readonly Buffer[]): number {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  return size;
}

/** The reply under the asker's id, not joined, to be written one after another. */
export function spliced(reply: BytesReply, idText: string): Buffer[] {
  if (reply instanceof PiecedReply) return reply.under(idText);
  const { bytes, idStart, idEnd } = reply;
  return [bytes.subarray(0, idStart), Buffer.from(idText), bytes.subarray(idEnd)];
}

/** How long a reply is, without joining it. */
export function replySize(reply: BytesReply): number {
  return reply instanceof PiecedReply ? reply.size : reply.bytes.length;
}
