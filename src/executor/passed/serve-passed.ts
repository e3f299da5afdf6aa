// The other end of a request that a gateway passes to the one at which an executor dialled in: makes it there, and sends the
// answer back no faster than it is read.

import type { Duplex } from "node:stream";
import { MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import type { HttpHeader } from "../wire/protocol.js";
import { type AnswerHandler, ExecutorError, type ExecutorRequest, type RequestHandle } from "../wire/types.js";
import { dataFrames, endFrame, Frame, FrameReader, jsonFrame } from "./frames.js";
import type { PassedError, PassedHead } from "./passed-client.js";

/** The executors of that name which are here; undefined where there is no such name. */
export type ExecutorsHere = (
  name: string,
) => ((request: ExecutorRequest, handler: AnswerHandler) => RequestHandle) | undefined;

export function servePassed(stream: Duplex, here: ExecutorsHere): void {
  new ServedRequest(stream, here);
}

class ServedRequest implements AnswerHandler {
  readonly #stream: Duplex;
  readonly #here: ExecutorsHere;
  #head: PassedHead | undefined;
  readonly #body: Buffer[] = [];
  #bodyBytes = 0;
  #handle: RequestHandle | undefined;
  #isOver = false;

  constructor(stream: Duplex, here: ExecutorsHere) {
    this.#stream = stream;
    this.#here = here;
    const reader = new FrameReader({
      onJson: (type, value) => {
        if (type === Frame.head) this.#head ??= value as PassedHead;
      },
      onData: (piece) => this.#gather(piece),
      onEnd: () => this.#begin(),
    });
    stream.on("data", (bytes: Buffer) => {
      try {
        reader.push(bytes);
      } catch (error) {
        this.#refuse("protocol", (error as Error).message);
      }
    });
    stream.on("drain", () => this.#handle?.resume());
    stream.on("error", () => {});
    // The other gateway took it back, is gone, or has all of it.
    stream.on("close", () => this.#end());
  }

  onHead(status: number, headers: readonly HttpHeader[]): void {
    this.#write(jsonFrame(Frame.head, { status, headers }));
  }

  onData(chunk: Buffer): void {
    for (const frame of dataFrames(chunk)) this.#write(frame);
  }

  onEnd(): void {
    this.#finish(endFrame());
  }

  onError({ code, fact, remedy, sent, networkCode }: ExecutorError): void {
    const told: PassedError = { code, fact, remedy, sent, networkCode };
    this.#finish(jsonFrame(Frame.error, told));
  }

  #gather(piece: Buffer): void {
    this.#bodyBytes += piece.length;
    if (this.#bodyBytes > MAX_WHOLE_BODY_BYTES) {
      this.#refuse("limit", `A body of more than ${MAX_WHOLE_BODY_BYTES} bytes is not passed to another gateway.`);
    } else if (!this.#isOver) this.#body.push(piece);
  }

  #begin(): void {
    const head = this.#head;
    if (head === undefined || this.#isOver || this.#handle !== undefined) return;
    const { name, method, url, headers, hasBody, timeoutMs, redirect } = head;
    const start = this.#here(name);
    if (start === undefined) {
      this.#refuse("unavailable", `There is no executor "${name}" in the config of the gateway that was asked.`);
      return;
    }
    const body = hasBody ? Buffer.concat(this.#body.splice(0), this.#bodyBytes) : undefined;
    this.#handle = start({ method, url, headers, body, timeoutMs, redirect }, this);
  }

  #refuse(code: "limit" | "protocol" | "unavailable", text: string): void {
    this.onError(new ExecutorError(code, text, { sent: false }));
  }

  #write(frame: Buffer): void {
    if (this.#isOver) return;
    if (!this.#stream.write(frame)) this.#handle?.pause();
  }

  #finish(frame: Buffer): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body.length = 0;
    this.#stream.end(frame);
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#body.length = 0;
    this.#handle?.abort();
  }
}
