// One request at the client, from before it is sent until its answer is told: order, pauses, what waits, and how it
// ends. It knows no socket and no clock; who sends and grants for it is its owner.

import { PieceQueue } from "../../runtime/containers/piece-queue.js";
import { CreditAccount } from "../../sockets/credit.js";
import { MAX_QUEUED_BYTES } from "../../sockets/limits.js";
import { MAX_QUEUED_DELTAS } from "../wire/limits.js";
import type { BodyDelta, HttpHeader } from "../wire/protocol.js";
import { type AnswerHandler, ExecutorError, type RequestHandle } from "../wire/types.js";
import type { UploadSender } from "./upload.js";
import { shortReason } from "./wire-request.js";

/** The client, as a stream sees it. */
export interface StreamOwner {
  /** Bytes that wait for their readers, all streams together. The streams write it. */
  queuedBytes: number;
  /** Requests under way. */
  readonly inFlight: number;
  /** So many bytes arrived; false where they were not granted. */
  arrived(stream: ClientStream, bytes: number): boolean;
  /** The reader took so many bytes, and there may be more to come. */
  taken(stream: ClientStream, bytes: number): void;
  /** Nobody here wants more of it, though the far end may be at work. */
  gaveUp(stream: ClientStream): void;
  /** It has told everything, or was taken back: its id means nothing any more. */
  left(stream: ClientStream): void;
}

/** The `number` of a request that is not sent yet. */
export const NOT_SENT = -1;

const ENDED = Symbol("ended");

export class ClientStream implements RequestHandle {
  readonly id: string;
  readonly account = new CreditAccount();
  /** The number of its message in the conversation. */
  number = NOT_SENT;
  upload: UploadSender | undefined;
  readonly #handler: AnswerHandler;
  readonly #owner: StreamOwner;
  /** The answer comes in one message. */
  readonly #whole: boolean;
  #nextSeq = 1;
  #paused: boolean = false;
  #hasHead: boolean = false;
  #telling: boolean = false;
  #over: boolean = false;
  readonly #queue = new PieceQueue();
  #queuedBytes = 0;
  /** How it ends once what waits is told. */
  #ending: typeof ENDED | ExecutorError | undefined;

  constructor(id: string, handler: AnswerHandler, owner: StreamOwner, whole: boolean) {
    this.id = id;
    this.#handler = handler;
    this.#owner = owner;
    this.#whole = whole;
  }

  /** Its handler hears nothing more. */
  get isOver(): boolean {
    return this.#over;
  }

  get hasHead(): boolean {
    return this.#hasHead;
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#tell();
  }

  abort(): void {
    if (this.#over) return;
    // The far end need not be told of what has come to its end.
    if (this.#ending === undefined) this.#owner.gaveUp(this);
    this.#leave();
  }

  /** The answer's head has come; its body too, where it comes in one message. */
  answered(status: number, headers: readonly HttpHeader[], body: Buffer): void {
    if (this.#over || this.#hasHead) return;
    this.#hasHead = true;
    this.#handler.onHead(status, headers);
    if (this.#over) return;
    if (this.#whole) {
      if (body.length > 0) this.#enqueue(body);
      this.#endWith(ENDED);
    } else if (body.length > 0) {
      const message = `${this.#named} failed: a streamed answer came with a body in its head`;
      this.#break(new ExecutorError("protocol", message, { sent: true }));
    }
    this.#tell();
  }

  /** The executor sent an error in place of a head. */
  refused(error: ExecutorError): void {
    if (this.#over || this.#hasHead) return;
    // Where the body broke before its head came, that is the better reason.
    this.#finish(this.#ending instanceof ExecutorError ? this.#ending : error);
  }

  delta(delta: BodyDelta): void {
    if (this.#over || this.#whole || this.#ending !== undefined) return;
    if (delta.seq !== this.#nextSeq) {
      const message = `${this.#named} failed: piece ${delta.seq} came in place of ${this.#nextSeq}`;
      this.#break(new ExecutorError("protocol", message, { sent: true }));
      return;
    }
    this.#nextSeq++;
    const last = delta.done || delta.error !== undefined;
    if (delta.data.length > 0 && !this.#take(delta.data, last)) return;
    if (this.#over) return;
    if (last) this.#endWith(delta.error === undefined ? ENDED : this.#failed(delta.error));
    // An end may also have come from outside while the piece was told.
    if (this.#ending !== undefined) this.#tell();
  }

  /** Ends it from outside: the connection is gone, or the client was closed. What came before is told first. */
  fail(error: ExecutorError): void {
    if (this.#over) return;
    if (!this.#hasHead) {
      this.#finish(error);
      return;
    }
    this.#endWith(error);
    this.#tell();
  }

  get #named(): string {
    return `response stream ${this.id}`;
  }

  #failed(why: string): ExecutorError {
    return new ExecutorError("failed", `${this.#named} failed: ${shortReason(why)}`, { sent: true });
  }

  /** Nobody reads what is still to be uploaded, though what came may wait long for its reader here. */
  #endWith(ending: typeof ENDED | ExecutorError): void {
    this.#ending ??= ending;
    this.upload?.stop();
  }

  /** The far end goes on with what cannot be used any more. */
  #break(error: ExecutorError): void {
    this.#endWith(error);
    this.#owner.gaveUp(this);
    this.#tell();
  }

  /** False where it was one too many. */
  #take(data: Buffer, last: boolean): boolean {
    if (!this.#owner.arrived(this, data.length)) {
      const message = `${this.#named} failed: more came than was granted`;
      this.#break(new ExecutorError("protocol", message, { sent: true }));
      return false;
    }
    if (this.#hasHead && !this.#paused && !this.#telling && this.#queue.size === 0) {
      this.#telling = true;
      this.#handler.onData(data);
      this.#telling = false;
      if (!this.#over && !last) this.#owner.taken(this, data.length);
      return true;
    }
    if (this.#queue.size >= MAX_QUEUED_DELTAS && !this.account.isOpen) return this.#overflow();
    if (this.#isGreedy(data.length)) return this.#overflow();
    this.#enqueue(data);
    return true;
  }

  /** True where the bound of all is passed and this one has more than its share: others must not suffer for it. */
  #isGreedy(bytes: number): boolean {
    if (this.account.isOpen || this.#owner.queuedBytes + bytes <= MAX_QUEUED_BYTES) return false;
    return this.#queuedBytes + bytes > MAX_QUEUED_BYTES / Math.max(1, this.#owner.inFlight);
  }

  #overflow(): false {
    const message = `${this.#named} failed: body delta channel filled before delivery`;
    this.#break(new ExecutorError("overflow", message, { sent: true }));
    return false;
  }

  #enqueue(data: Buffer): void {
    // Without credit the number of pieces is bounded, so they stay apart.
    this.#queue.push(data, this.account.isOpen);
    this.#queuedBytes += data.length;
    this.#owner.queuedBytes += data.length;
  }

  #tell(): void {
    if (this.#telling || !this.#hasHead) return;
    this.#telling = true;
    while (!this.#paused && !this.#over && this.#queue.size > 0) {
      const data = this.#queue.shift() as Buffer;
      this.#queuedBytes -= data.length;
      this.#owner.queuedBytes -= data.length;
      this.#handler.onData(data);
      if (!this.#over && this.#ending === undefined) this.#owner.taken(this, data.length);
    }
    this.#telling = false;
    if (this.#over || this.#paused || this.#ending === undefined) return;
    this.#finish(this.#ending);
  }

  #finish(ending: typeof ENDED | ExecutorError): void {
    this.#leave();
    if (ending === ENDED) this.#handler.onEnd();
    else this.#handler.onError(ending);
  }

  #leave(): void {
    this.#over = true;
    this.#owner.queuedBytes -= this.#queuedBytes;
    this.#queuedBytes = 0;
    this.#queue.clear();
    this.upload?.stop();
    this.#owner.left(this);
  }
}
