// The requests of a client: sends them over the conversation of the moment, and gives what comes back to the one that
// it is for. Which conversation that is, and whether there is one, the client says.

import { Table } from "../../runtime/containers/table.js";
import { messageOf } from "../../runtime/expected-error.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import type { Channel } from "../../sockets/channel.js";
import { CreditBook } from "../../sockets/credit.js";
import { MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { readFrame, renderError, renderNotification, renderRequest } from "../wire/frame.js";
import { MAX_DELTA_BYTES, MAX_REQUESTS, MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import {
  type Agreement,
  BODY_DELTA,
  CANCEL,
  CREDIT,
  type MessageId,
  REQUEST,
  RpcCode,
  STOPPING,
} from "../wire/protocol.js";
import {
  type AnswerHandler,
  ExecutorError,
  type ExecutorErrorCode,
  type ExecutorRequest,
  type RequestHandle,
} from "../wire/types.js";
import { ClientStream, NOT_SENT, type StreamOwner } from "./stream.js";
import { collected, inOnePiece, UploadSender } from "./upload.js";
import { beyond, beyondBounds, errorOf, readHead, requestParams } from "./wire-request.js";

/** Bytes of a body that go in the request's message though the connection is full; larger ones wait as uploads. */
const MAX_BODY_WHEN_FULL = 64 * KIB;

/** A conversation, as requests need it. */
export interface Conversation {
  readonly channel: Channel;
  /** Undefined for a plain exec-server, to which nothing of our extensions is sent. */
  readonly agreement: Agreement | undefined;
}

export class Requests implements StreamOwner {
  queuedBytes = 0;
  readonly #streams = new Table<string, ClientStream>();
  readonly #book = new CreditBook();
  readonly #whyNone: () => ExecutorError;
  readonly #onStopping: () => void;
  #conversation: Conversation | undefined;
  #lastId = 0;
  /** Large requests that wait for room, with a plain executor. */
  #waitForRoom: (() => void)[] = [];

  /** `whyNone` is what a request is told while there is no conversation; `onStopping` hears that the executor stops. */
  constructor(whyNone: () => ExecutorError, onStopping: () => void) {
    this.#whyNone = whyNone;
    this.#onStopping = onStopping;
  }

  get inFlight(): number {
    return this.#streams.size;
  }

  start(request: ExecutorRequest, handler: AnswerHandler, whole: boolean): RequestHandle {
    const stream = new ClientStream(`http-${++this.#lastId}`, handler, this, whole);
    const conversation = this.#conversation;
    const refusal =
      conversation === undefined ? this.#whyNone() : (this.#refusal(conversation) ?? beyondBounds(request));
    if (conversation === undefined || refusal !== undefined) {
      // Not at once: the caller has not got its handle yet.
      queueMicrotask(() => stream.fail(refusal as ExecutorError));
      return stream;
    }
    // It is known before it is sent: pieces of the answer may come before the answer.
    this.#streams.set(stream.id, stream);
    const body = typeof request.body === "string" ? Buffer.from(request.body) : request.body;
    if (conversation.agreement !== undefined) this.#sendLasting(conversation, stream, request, body, whole);
    else if (body === undefined || (Buffer.isBuffer(body) && body.length <= MAX_DELTA_BYTES)) {
      this.#send(conversation, stream, request, body, { whole });
    } else {
      void this.#sendPlain(conversation, stream, request, body, whole);
    }
    return stream;
  }

  /** A conversation begins; there is none before it. */
  begin(conversation: Conversation): void {
    this.#conversation = conversation;
  }

  /** It is over, and with it every request that is not answered in full. */
  end(code: ExecutorErrorCode, message: string): void {
    const conversation = this.#conversation;
    this.#conversation = undefined;
    for (const stream of [...this.#streams.values()]) {
      const sent = stream.number !== NOT_SENT && conversation?.channel.wasWritten(stream.number) === true;
      stream.fail(new ExecutorError(code, message, { sent: sent || stream.hasHead }));
    }
    this.#wakeWaiting();
  }

  /** Takes the next message of the conversation. Returns what is wrong with it, if anything is. */
  received(bytes: Buffer): string | undefined {
    const broken = this.#read(bytes);
    return this.#conversation?.channel.isOverrun === true ? "and nothing that acknowledges ours" : broken;
  }

  #read(bytes: Buffer): string | undefined {
    const frame = readFrame(bytes);
    switch (frame.kind) {
      case "delta":
        if (frame.method === BODY_DELTA) this.#streams.get(frame.delta.requestId)?.delta(frame.delta);
        return undefined;
      case "result":
        this.#answered(String(frame.id), frame.result);
        return undefined;
      case "error":
        if (frame.id !== null) this.#streams.get(String(frame.id))?.refused(errorOf(frame.error));
        return undefined;
      case "notification":
        if (frame.method === CREDIT) this.#granted(frame.params);
        else if (frame.method === STOPPING) this.#onStopping();
        return undefined;
      case "request":
        this.#refuse(frame.id, frame.method);
        return undefined;
      case "broken":
        return frame.why;
    }
  }

  /** The conversation was full, and is not any more. */
  hasRoom(): void {
    for (const stream of [...this.#streams.values()]) stream.upload?.wake();
    this.#wakeWaiting();
  }

  arrived(stream: ClientStream, bytes: number): boolean {
    return !stream.account.isOpen || this.#book.arrived(stream.account, bytes);
  }

  taken(stream: ClientStream, bytes: number): void {
    const grant = this.#book.taken(stream.account, bytes);
    if (grant === 0) return;
    this.#post(this.#conversation, renderNotification(CREDIT, { requestId: stream.id, bytes: grant }));
  }

  gaveUp(stream: ClientStream): void {
    const conversation = this.#conversation;
    if (conversation?.agreement === undefined || stream.number === NOT_SENT) return;
    this.#post(conversation, renderNotification(CANCEL, { requestId: stream.id }));
  }

  left(stream: ClientStream): void {
    this.#book.close(stream.account);
    this.#streams.delete(stream.id);
  }

  #refusal({ channel }: Conversation): ExecutorError | undefined {
    if (this.#streams.size >= MAX_REQUESTS) {
      const message = `${MAX_REQUESTS} requests are under way or unread: end some first`;
      return new ExecutorError("limit", message, { sent: false });
    }
    if (channel.isOpen || !channel.isFull) return undefined;
    const message = `the executor is away, and ${MAX_UNACKED_BYTES / MIB} MiB wait for it already`;
    return new ExecutorError("limit", message, { sent: false });
  }

  /** Executors ask nothing. One that asks and does not read is not answered. */
  #refuse(id: MessageId, method: string): void {
    if (this.#conversation?.channel.isFull === true) return;
    const message = `${method.slice(0, 80)} is not known here`;
    this.#post(this.#conversation, renderError(id, { code: RpcCode.unknownMethod, message }));
  }

  /** Returns its number in the conversation. */
  #post(conversation: Conversation | undefined, frame: string): number {
    return conversation === undefined ? NOT_SENT : conversation.channel.send(frame);
  }

  /** A body of some size goes in pieces: in one message it would hold up all others. */
  #sendLasting(
    conversation: Conversation,
    stream: ClientStream,
    request: ExecutorRequest,
    body: Buffer | AsyncIterable<Uint8Array> | undefined,
    whole: boolean,
  ): void {
    if (!whole) this.#book.open(stream.account);
    const most = conversation.channel.isFull ? MAX_BODY_WHEN_FULL : MAX_DELTA_BYTES;
    if (body === undefined || (Buffer.isBuffer(body) && body.length <= most)) {
      this.#send(conversation, stream, request, body, { whole });
      return;
    }
    const source = Buffer.isBuffer(body) ? inOnePiece(body) : body;
    const { channel, agreement } = conversation;
    const upload = new UploadSender(stream.id, source, channel, (agreement as Agreement).window);
    stream.upload = upload;
    this.#send(conversation, stream, request, undefined, { whole, streamRequest: true });
    void upload.run().then((error) => {
      if (error !== undefined) stream.fail(error);
    });
  }

  async #sendPlain(
    conversation: Conversation,
    stream: ClientStream,
    request: ExecutorRequest,
    source: Buffer | AsyncIterable<Uint8Array>,
    whole: boolean,
  ): Promise<void> {
    let body: Buffer | undefined;
    try {
      body = Buffer.isBuffer(source) ? source : await collected(source, MAX_WHOLE_BODY_BYTES, () => stream.isOver);
    } catch (error) {
      const why = messageOf(error);
      stream.fail(new ExecutorError("cancelled", `the request's body failed: ${why}`, { sent: false }));
      return;
    }
    if (body === undefined || body.length > MAX_WHOLE_BODY_BYTES) {
      stream.fail(beyond(`a body of more than ${MAX_WHOLE_BODY_BYTES / MIB} MiB`));
      return;
    }
    // What is sent over a slow connection is in memory once more, as text, so they go one after the other.
    while (!stream.isOver && this.#conversation === conversation && conversation.channel.isFull) {
      await new Promise<void>((resolve) => this.#waitForRoom.push(resolve));
    }
    if (!stream.isOver) this.#send(conversation, stream, request, body, { whole });
  }

  #send(
    conversation: Conversation,
    stream: ClientStream,
    request: ExecutorRequest,
    body: Buffer | undefined,
    { whole, streamRequest = false }: { whole: boolean; streamRequest?: boolean },
  ): void {
    const params = requestParams(request, { requestId: stream.id, streamResponse: !whole, streamRequest, body });
    stream.number = this.#post(conversation, renderRequest(stream.id, REQUEST, params));
  }

  #answered(id: string, result: unknown): void {
    const stream = this.#streams.get(id);
    // A second answer means nothing: to take the request back for it would leave its reader without an end.
    if (stream === undefined || stream.hasHead) return;
    const head = readHead(result);
    if (head !== undefined) {
      stream.answered(head.status, head.headers, head.body);
      return;
    }
    this.gaveUp(stream);
    stream.refused(new ExecutorError("protocol", `the answer to ${id} is not one`, { sent: true }));
  }

  #granted(params: unknown): void {
    if (typeof params !== "object" || params === null) return;
    const { requestId, bytes } = params as { requestId?: unknown; bytes?: unknown };
    if (typeof requestId !== "string" || !Number.isSafeInteger(bytes) || (bytes as number) <= 0) return;
    this.#streams.get(requestId)?.upload?.grant(bytes as number);
  }

  #wakeWaiting(): void {
    const waiting = this.#waitForRoom;
    this.#waitForRoom = [];
    for (const wake of waiting) wake();
  }
}
