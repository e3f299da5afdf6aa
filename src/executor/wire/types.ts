// What the parts of an executor hand to each other: a request that is to be made, what hears of its answer, and what
// steers it. The same shapes at both ends, so that a gateway cannot tell an executor from its own network.

import { CodedError } from "../../runtime/expected-error.js";
import type { HttpHeader } from "./protocol.js";

/** Where the parts of an executor say what happens, such as the gateway's log. Never bodies, headers or queries. */
export interface ExecutorLog {
  debug(text: string, fields?: Readonly<Record<string, unknown>>): void;
  info(text: string, fields?: Readonly<Record<string, unknown>>): void;
  warn(text: string, fields?: Readonly<Record<string, unknown>>): void;
}

export type RedirectPolicy = "follow" | "stop";

/** A request as a user of the client makes it. */
export interface ExecutorRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: readonly HttpHeader[];
  /** A stream is sent as it comes where the executor can take it, and is collected first where it cannot. */
  readonly body?: Buffer | string | AsyncIterable<Uint8Array> | undefined;
  readonly timeoutMs?: number | undefined;
  /** Default: follow. */
  readonly redirect?: RedirectPolicy | undefined;
}

/** Hears of an answer: head, data, then exactly one of end and error. After abort() it hears nothing more. */
export interface AnswerHandler {
  onHead(status: number, headers: readonly HttpHeader[]): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  onError(error: ExecutorError): void;
}

/** Steers a request that was made, at the client and at the executor. */
export interface RequestHandle {
  /** What comes meanwhile is kept, within the stream's window; then the far end waits. */
  pause(): void;
  resume(): void;
  /** Ends the request. The far end is told to stop, where it knows how to be told. */
  abort(): void;
}

export type ExecutorErrorCode =
  /** The connection to the executor ended, and with it what was under way. */
  | "disconnected"
  /** No executor is connected, so nothing was sent. */
  | "unavailable"
  /** More came than the reader took, from an executor that cannot be slowed down. */
  | "overflow"
  /** The executor broke the protocol: a gap in a body, a message that means nothing. */
  | "protocol"
  /** The executor refused the request: a bad request, or a destination that it may not reach. */
  | "refused"
  /** The executor tried, and the request failed there: refused connection, reset, timeout. */
  | "failed"
  /** A bound of ours was hit. */
  | "limit"
  /** The caller took the request back. */
  | "cancelled"
  /** The client was closed. */
  | "closed";

export class ExecutorError extends CodedError<ExecutorErrorCode> {
  override readonly name = "ExecutorError";
  /** False where it is certain that the server at the end saw nothing of the request. */
  readonly sent: boolean;
  /** What the executor's network said, as Node names it: `ECONNREFUSED`. */
  readonly networkCode: string | undefined;
  /** The HTTP status that the other end answered in place of a WebSocket. */
  readonly status: number | undefined;
  /** What happened, and what to do about it; `message` is both. */
  readonly fact: string;
  readonly remedy: string | undefined;

  constructor(
    code: ExecutorErrorCode,
    fact: string,
    options: { sent: boolean; networkCode?: string | undefined; status?: number; remedy?: string | undefined },
  ) {
    super(code, options.remedy === undefined ? fact : `${fact} ${options.remedy}`);
    this.fact = fact;
    this.remedy = options.remedy;
    this.sent = options.sent;
    this.networkCode = options.networkCode;
    this.status = options.status;
  }
}
