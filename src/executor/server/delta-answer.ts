// An answer that is streamed: the head as the result, then the body in pieces as far as the client's credit and the
// connection's room go, then an empty last piece. What does not fit is held, and the server waits.

import type { RequestFailure } from "../http/requests.js";
import { renderBrokenDelta, renderDelta, renderResult } from "../wire/frame.js";
import { MAX_DELTA_BYTES } from "../wire/limits.js";
import { BODY_DELTA, type HttpHeader, type MessageId } from "../wire/protocol.js";
import { Answer, type AnswerOwner, type RoomWaiter } from "./answer.js";
import type { UploadBody } from "./upload.js";

const NOTHING = Buffer.alloc(0);

function isEventStream({ name, value }: HttpHeader): boolean {
  return name.toLowerCase() === "content-type" && value.toLowerCase().startsWith("text/event-stream");
}

export class DeltaAnswer extends Answer implements RoomWaiter {
  nextInLine: RoomWaiter | undefined;
  inLine: boolean = false;
  /** Bytes that may be sent; Infinity for a client that knows no credit. */
  #credit: number;
  #seq = 0;
  /** Pieces that came before they could be sent, oldest first: seldom more than one. */
  #held: Buffer[] = [];
  /** How the request ended, to be told behind what is held. */
  #ending: { readonly why: RequestFailure | undefined } | undefined;
  #answered: boolean = false;

  constructor(owner: AnswerOwner, rpcId: MessageId, requestId: string, upload: UploadBody | undefined, credit: number) {
    super(owner, rpcId, requestId, upload);
    this.#credit = credit;
  }

  protected get isAnswered(): boolean {
    return this.#answered;
  }

  onHead(status: number, headers: HttpHeader[]): void {
    if (this.isOver) return;
    this.#answered = true;
    this.isEndless = this.isGet && headers.some(isEventStream);
    this.owner.send(renderResult(this.rpcId, { status, headers, bodyBase64: "" }));
  }

  onData(chunk: Buffer): void {
    if (this.isOver) return;
    if (this.#held.length > 0 || chunk.length > this.#credit) {
      this.#held.push(chunk);
      this.#sendHeld();
      this.#pause();
      this.#waitForRoom();
      return;
    }
    this.#credit -= chunk.length;
    if (chunk.length <= MAX_DELTA_BYTES) this.#send(chunk);
    else
      for (let at = 0; at < chunk.length; at += MAX_DELTA_BYTES) this.#send(chunk.subarray(at, at + MAX_DELTA_BYTES));
    if (this.#credit === 0) this.#pause();
    else if (this.owner.isFull) {
      this.#pause();
      this.owner.waitForRoom(this);
    }
  }

  onEnd(): void {
    if (this.isOver) return;
    if (this.#held.length > 0) {
      this.#ending = { why: undefined };
      return;
    }
    const last = renderDelta(BODY_DELTA, this.requestId, ++this.#seq, NOTHING, true);
    this.finish();
    this.owner.send(last);
  }

  override onFailure(why: RequestFailure): void {
    if (this.isOver) return;
    if (this.#held.length > 0) this.#ending = { why };
    else super.onFailure(why);
  }

  /** The reader at the other end took so many bytes, or will have room for them. */
  grant(bytes: number): void {
    if (this.isOver) return;
    this.#credit += bytes;
    this.#goOn();
  }

  hasRoom(): void {
    if (!this.isOver) this.#goOn();
  }

  protected override refuse(why: RequestFailure): void {
    if (!this.#answered) super.refuse(why);
    else this.owner.send(renderBrokenDelta(BODY_DELTA, this.requestId, ++this.#seq, why.message));
  }

  protected override finish(): void {
    this.#held = [];
    super.finish();
  }

  #goOn(): void {
    if (this.#credit === 0) return;
    if (this.owner.isFull) {
      if (this.paused) this.owner.waitForRoom(this);
      return;
    }
    this.#sendHeld();
    this.#waitForRoom();
    if (this.#held.length > 0) return;
    if (this.#ending !== undefined) {
      if (this.#ending.why === undefined) this.onEnd();
      else this.onFailure(this.#ending.why);
      return;
    }
    if (!this.paused || this.#credit === 0) return;
    this.paused = false;
    this.request?.resume();
  }

  #sendHeld(): void {
    while (this.#credit > 0 && !this.owner.isFull) {
      const first = this.#held[0];
      if (first === undefined) return;
      const piece = first.subarray(0, Math.min(first.length, this.#credit, MAX_DELTA_BYTES));
      if (piece.length === first.length) this.#held.shift();
      else this.#held[0] = first.subarray(piece.length);
      this.#credit -= piece.length;
      this.#send(piece);
    }
  }

  /** What is held without credit waits for credit. What is held with credit waits for the connection, which is full. */
  #waitForRoom(): void {
    if (this.#held.length > 0 && this.#credit > 0) this.owner.waitForRoom(this);
  }

  #send(piece: Buffer): void {
    if (piece.length > 0) this.owner.send(renderDelta(BODY_DELTA, this.requestId, ++this.#seq, piece, false));
  }

  #pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.request?.pause();
  }
}
