// Sends a request's body as it comes, as far as the executor's credit and the connection's room go.

import { messageOf } from "../../runtime/expected-error.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { renderBrokenDelta, renderDelta } from "../wire/frame.js";
import { MAX_STREAMED_BODY_BYTES } from "../wire/limits.js";
import { UPLOAD } from "../wire/protocol.js";
import { ExecutorError } from "../wire/types.js";

/** The connection, as an upload sees it. */
export interface UploadChannel {
  readonly isFull: boolean;
  send(frame: string | Buffer): void;
}

/** Bytes of a body in one message: messages of other requests wait no longer than it takes to write so much. */
const PIECE_BYTES = 64 * KIB;

const NOTHING = Buffer.alloc(0);

export class UploadSender {
  readonly #id: string;
  readonly #way: UploadChannel;
  readonly #source: AsyncIterator<Uint8Array>;
  #credit: number;
  #seq = 0;
  #stopped: boolean = false;
  #wake: (() => void) | undefined;

  /** `window` is what the executor takes before its first grant. */
  constructor(id: string, source: AsyncIterable<Uint8Array>, way: UploadChannel, window: number) {
    this.#id = id;
    this.#source = source[Symbol.asyncIterator]();
    this.#way = way;
    this.#credit = window;
  }

  /**
   * Resolves when all is sent or nobody wants it; to an error where the body itself failed, which the far end is told.
   */
  async run(): Promise<ExecutorError | undefined> {
    let total = 0;
    try {
      for (;;) {
        const { value, done } = await this.#source.next();
        if (this.#stopped) return undefined;
        if (done === true) break;
        total += value.length;
        if (total > MAX_STREAMED_BODY_BYTES) {
          throw new ExecutorError("limit", `a body of more than ${MAX_STREAMED_BODY_BYTES / MIB} MiB`, { sent: true });
        }
        await this.#send(Buffer.from(value.buffer, value.byteOffset, value.length));
        if (this.#stopped) return undefined;
      }
      this.#way.send(renderDelta(UPLOAD, this.#id, ++this.#seq, NOTHING, true));
      this.#stopped = true;
      return undefined;
    } catch (error) {
      if (this.#stopped) return undefined;
      const why = messageOf(error);
      this.#way.send(renderBrokenDelta(UPLOAD, this.#id, ++this.#seq, why));
      this.stop();
      if (error instanceof ExecutorError) return error;
      return new ExecutorError("cancelled", `the request's body failed: ${why}`, { sent: true });
    }
  }

  grant(bytes: number): void {
    this.#credit += bytes;
    this.wake();
  }

  /** There is room again, or a reason to look. */
  wake(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }

  /** Nobody wants the rest: its source is told, and nothing more is sent. */
  stop(): void {
    if (this.#stopped) return;
    this.#stopped = true;
    this.wake();
    // A source that waits for its next piece may answer late, or never: nobody waits for it.
    this.#source.return?.().then(undefined, () => {});
  }

  async #send(data: Buffer): Promise<void> {
    let at = 0;
    while (at < data.length) {
      while (!this.#stopped && (this.#credit <= 0 || this.#way.isFull)) await this.#nap();
      if (this.#stopped) return;
      const end = Math.min(data.length, at + Math.min(this.#credit, PIECE_BYTES));
      this.#credit -= end - at;
      this.#way.send(renderDelta(UPLOAD, this.#id, ++this.#seq, data.subarray(at, end), false));
      at = end;
    }
  }

  #nap(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }
}

export async function* inOnePiece(body: Buffer): AsyncGenerator<Uint8Array> {
  yield body;
}

/** Collects a body for an executor that cannot take it in pieces. Undefined where it has more than `most` bytes. */
export async function collected(
  source: AsyncIterable<Uint8Array>,
  most: number,
  isOver: () => boolean,
): Promise<Buffer | undefined> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of source) {
    bytes += piece.length;
    if (bytes > most) return undefined;
    pieces.push(piece);
    if (isOver()) break;
  }
  return Buffer.concat(pieces, bytes);
}
