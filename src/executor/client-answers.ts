// Answers for those who would rather wait than be called: whole, or as a stream that holds the sender back.

import { Readable } from "node:stream";
import type { HttpHeader } from "./protocol.js";
import type { AnswerHandler, Exchange, ExecutorError, ExecutorRequest } from "./types.js";

/** Whoever makes requests: a client, or several of them under one name. */
export interface Starter {
  /** `whole`: the answer's body in one message. */
  start(request: ExecutorRequest, handler: AnswerHandler, whole?: boolean): Exchange;
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
    const exchange = starter.start(
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
      exchange.abort();
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
 * Holds one piece at most: the rest waits where it is counted, and where an error cannot overtake it, as one would
 * that destroys a stream with pieces in it.
 */
class AnswerBody extends Readable implements AnswerHandler {
  readonly #onHead: (status: number, headers: readonly HttpHeader[]) => void;
  readonly #onRefused: (error: ExecutorError) => void;
  #exchange: Exchange | undefined;
  #hasHead: boolean = false;
  #isOver: boolean = false;

  constructor(
    onHead: (status: number, headers: readonly HttpHeader[]) => void,
    onRefused: (error: ExecutorError) => void,
  ) {
    super({ highWaterMark: 1 });
    this.#onHead = onHead;
    this.#onRefused = onRefused;
  }

  begin(starter: Starter, request: ExecutorRequest): void {
    this.#exchange = starter.start(request, this);
    this.#exchange.pause();
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
    if (!this.push(chunk)) this.#exchange?.pause();
  }

  onEnd(): void {
    this.#isOver = true;
    this.push(null);
  }

  onError(error: ExecutorError): void {
    this.#isOver = true;
    if (this.#hasHead) {
      this.destroy(error);
      return;
    }
    this.#onRefused(error);
    this.destroy();
  }

  override _read(): void {
    // Later: within read() there still is a piece on its way to the reader, which an error would take from it.
    queueMicrotask(this.#goOn);
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    if (!this.#isOver) this.#exchange?.abort();
    callback(error);
  }

  readonly #goOn = (): void => {
    if (!this.destroyed) this.#exchange?.resume();
  };
}
