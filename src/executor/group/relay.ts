// One request at a group of executors: it is at one of them, waits for one, or is handed on where one was lost before
// it got it. The group chooses which one.

import type { HttpHeader } from "../wire/protocol.js";
import type { AnswerHandler, ExecutorError, ExecutorErrorCode, ExecutorRequest, RequestHandle } from "../wire/types.js";

/** How often a request that reached no executor is handed to another: each time one more was lost meanwhile. */
const MAX_TRIES = 3;

/** Of a request that was not sent: another executor may take it. */
const ELSEWHERE: ReadonlySet<ExecutorErrorCode> = new Set(["disconnected", "closed", "unavailable"]);

interface CanStart {
  readonly client: { start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle };
}

/** The group, as its requests see it. */
export interface RelayOwner<M extends CanStart = CanStart> {
  choose(): M | undefined;
  /** False where there is nobody to wait for, or too much waits. */
  park(relay: Relay): boolean;
  unpark(relay: Relay): void;
  /** It has a request more. Those that are no calls, as event streams, do not end by themselves. */
  engaged(member: M, isCall: boolean): void;
  /** A request has left it. */
  relieved(member: M, isCall: boolean): void;
  /** Why there is nobody. */
  none(): ExecutorError;
}

export class Relay<M extends CanStart = CanStart> implements RequestHandle, AnswerHandler {
  /** Bytes of its body, while it waits. */
  readonly bytes: number;
  readonly #request: ExecutorRequest;
  readonly #isCall: boolean;
  readonly #owner: RelayOwner<M>;
  #handler: AnswerHandler | undefined;
  #member: M | undefined;
  #handle: RequestHandle | undefined;
  #paused: boolean = false;
  #tries = 0;

  constructor(request: ExecutorRequest, handler: AnswerHandler, owner: RelayOwner<M>) {
    const { body } = request;
    this.bytes = typeof body === "string" || Buffer.isBuffer(body) ? body.length : 0;
    this.#request = request;
    this.#isCall = request.method !== "GET";
    this.#handler = handler;
    this.#owner = owner;
  }

  begin(): void {
    if (this.#handler === undefined) return;
    const member = this.#owner.choose();
    if (member === undefined) {
      if (!this.#owner.park(this)) queueMicrotask(() => this.fail(this.#owner.none()));
      return;
    }
    this.#tries++;
    this.#member = member;
    this.#owner.engaged(member, this.#isCall);
    this.#handle = member.client.start(this.#request, this);
    if (this.#paused) this.#handle.pause();
  }

  fail(error: ExecutorError): void {
    const handler = this.#handler;
    this.#handler = undefined;
    handler?.onError(error);
  }

  pause(): void {
    this.#paused = true;
    this.#handle?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#handle?.resume();
  }

  abort(): void {
    this.#handler = undefined;
    this.#owner.unpark(this);
    this.#handle?.abort();
    this.#leave();
  }

  onHead(status: number, headers: readonly HttpHeader[]): void {
    this.#handler?.onHead(status, headers);
  }

  onData(chunk: Buffer): void {
    this.#handler?.onData(chunk);
  }

  onEnd(): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#leave();
    handler?.onEnd();
  }

  onError(error: ExecutorError): void {
    this.#leave();
    // Not at once: the client that failed it has not finished with it.
    if (this.#mayGoElsewhere(error)) queueMicrotask(() => this.begin());
    else this.fail(error);
  }

  /**
   * The executor was lost, or left us, and never had it; or the gateway that had it has none any more. A body that is a stream
   * may have been begun.
   */
  #mayGoElsewhere({ code, sent }: ExecutorError): boolean {
    if (sent || !ELSEWHERE.has(code) || this.#tries >= MAX_TRIES) return false;
    const { body } = this.#request;
    return body === undefined || typeof body === "string" || Buffer.isBuffer(body);
  }

  #leave(): void {
    const member = this.#member;
    this.#member = undefined;
    this.#handle = undefined;
    if (member !== undefined) this.#owner.relieved(member, this.#isCall);
  }
}
