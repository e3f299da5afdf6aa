// Answers as promises: whole, or as a stream that holds the sender back.

import { Readable } from "node:stream";
import { FIRST_WINDOW_BYTES } from "../../sockets/limits.js";
import type { HttpHeader } from "../wire/protocol.js";
import type { AnswerHandler, ExecutorError, ExecutorRequest, RequestHandle } from "../wire/types.js";

/** What makes requests: a client, or several of them under one name. */
export interface Starter {
  /** With `whole`, the answer's body comes in one message. */
  start(request: ExecutorRequest, handler: AnswerHandler, whole?: boolean): RequestHandle;
}

export interface WholeAnswer {
  readonly status: number;
  readonly headers: readonly HttpHeader[];
  readonly body: Buffer;
}

export interface StreamedAnswer {
  readonly status: number;
  readonly headers: readonly HttpHeader[];
  /** Errors come after all that arrived before them; destroy() takes the request back. */
  readonly body: Readable;
}

export interface WaitOptions {
  /** Takes the request back. */
  readonly signal?: AbortSignal | undefined;
}

export function wholeAnswer(starter: Starter, request: ExecutorRequest, options: WaitOptions): Promise<WholeAnswer> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const chunks: Buffer[] = [];
    let head: { status: number; headers: readonly HttpHeader[] } | undefined;
    const handle = starter.start(
      request,
      {
        onHead(status, headers) {
          head = { status, headers };
        },
        onData: (chunk) => chunks.push(chunk),
        onEnd() {
          signal?.removeEventListener("abort", abort);
          const { status, headers } = head as { status: number; headers: readonly HttpHeader[] };
          resolve({ status, headers, body: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks) });
        },
        onError(error) {
          signal?.removeEventListener("abort", abort);
          reject(error);
        },
      },
      true,
    );
    const abort = (): void => {
      handle.abort();
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
  });
}

export function streamedAnswer(
  starter: Starter,
  request: ExecutorRequest,
  options: WaitOptions,
): Promise<StreamedAnswer> {
  const { signal } = options;
  return new Promise((resolve, reject) => {
    if (signal?.aborted === true) {
      reject(signal.reason);
      return;
    }
    const body = new AnswerBody(
      (status, headers) => resolve({ status, headers, body }),
      (error) => reject(error),
    );
    body.begin(starter, request);
    if (signal === undefined) return;
    const abort = (): void => {
      reject(signal.reason);
      body.takeBack(signal.reason);
    };
    signal.addEventListener("abort", abort, { once: true });
    body.once("close", () => signal.removeEventListener("abort", abort));
  });
}

/**
 * What is kept for a reader that has not come yet. A small answer is here in full by then, and its request over: one
 * that nobody reads costs no more than its bytes.
 */
const AHEAD_BYTES = FIRST_WINDOW_BYTES;

/** Hands on one piece at a time: an error would discard what waits in the stream itself. */
class AnswerBody extends Readable implements AnswerHandler {
  readonly #onHead: (status: number, headers: readonly HttpHeader[]) => void;
  readonly #onRefused: (error: ExecutorError) => void;
  #handle: RequestHandle | undefined;
  #hasHead: boolean = false;
  #ahead: Buffer[] = [];
  #aheadBytes = 0;
  #wanted: boolean = false;
  /** How it ends; null is a good end. It is told after all that is ahead. */
  #ending: ExecutorError | null | undefined;

  constructor(
    onHead: (status: number, headers: readonly HttpHeader[]) => void,
    onRefused: (error: ExecutorError) => void,
  ) {
    super({ highWaterMark: 1 });
    this.#onHead = onHead;
    this.#onRefused = onRefused;
  }

  begin(starter: Starter, request: ExecutorRequest): void {
    this.#handle = starter.start(request, this);
  }

  /** Nobody has it before its head has come, so nobody would hear of its error. */
  takeBack(reason: Error): void {
    this.destroy(this.#hasHead ? reason : undefined);
  }

  onHead(status: number, headers: readonly HttpHeader[]): void {
    this.#hasHead = true;
    this.#onHead(status, headers);
  }

  onData(chunk: Buffer): void {
    if (this.#wanted && this.#ahead.length === 0) {
      this.#wanted = this.push(chunk);
      return;
    }
    this.#ahead.push(chunk);
    this.#aheadBytes += chunk.length;
    if (this.#aheadBytes >= AHEAD_BYTES) this.#handle?.pause();
  }

  onEnd(): void {
    this.#ending = null;
    this.#deliver();
  }

  onError(error: ExecutorError): void {
    this.#ending = error;
    if (this.#hasHead) {
      this.#deliver();
      return;
    }
    this.#onRefused(error);
    this.destroy();
  }

  override _read(): void {
    // Not at once: within read() a piece may still be on its way to the reader.
    queueMicrotask(this.#goOn);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#ahead = [];
    this.#wanted = false;
    if (this.#ending === undefined) this.#handle?.abort();
    callback(error);
  }

  readonly #goOn = (): void => {
    if (this.destroyed) return;
    this.#wanted = true;
    this.#deliver();
  };

  #deliver(): void {
    while (this.#wanted) {
      const chunk = this.#ahead.shift();
      if (chunk === undefined) break;
      this.#aheadBytes -= chunk.length;
      this.#wanted = this.push(chunk);
    }
    if (this.#ending === undefined) {
      if (this.#aheadBytes < AHEAD_BYTES) this.#handle?.resume();
      return;
    }
    // Only where more is wanted has all that was pushed been taken.
    if (!this.#wanted) return;
    this.#wanted = false;
    if (this.#ending === null) this.push(null);
    else this.destroy(this.#ending);
  }
}
