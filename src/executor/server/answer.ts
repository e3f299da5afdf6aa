// One request of a client and its answer, seen from the wire: at most one head, then the end, a failure or silence.
// Here is what all answers share, their queue for room, and the one that travels in a single message; delta-answer.ts has the
// streamed one.

import { PieceQueue } from "../../runtime/containers/piece-queue.js";
import { NOWHERE, type Placed } from "../../runtime/containers/table.js";
import { KIB, MIB } from "../../runtime/sizes.js";
import { MAX_QUEUED_BYTES, MAX_UNACKED_BYTES } from "../../sockets/limits.js";
import { failure } from "../http/failure.js";
import type { CheckedRequest, HttpRequests, RequestFailure, ResponseHandler } from "../http/requests.js";
import { renderError, renderResult } from "../wire/frame.js";
import { MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import type { HttpHeader, MessageId } from "../wire/protocol.js";
import type { RequestHandle } from "../wire/types.js";
import type { UploadBody } from "./upload.js";

/** What can wait for room on the connection. It is its own link in the queue. */
export interface RoomWaiter {
  nextInLine: RoomWaiter | undefined;
  inLine: boolean;
  /** Its turn has come. */
  hasRoom(): void;
}

/** The session, as an answer sees it. */
export interface AnswerOwner {
  /** While this is true, all but what ends something should wait, by waitForRoom(). */
  readonly isFull: boolean;
  send(frame: string | Buffer): void;
  waitForRoom(waiter: RoomWaiter): void;
  /** Counts `by` more or fewer bytes of bodies that are being collected; returns those of all answers together. */
  collected(by: number): number;
  /** It was not allowed to reach this host, or one that it was redirected to. */
  forbidden(host: string, why: string): void;
  /** It is over; its id is free. */
  leave(answer: Answer): void;
}

export abstract class Answer implements ResponseHandler, Placed {
  place = NOWHERE;
  readonly requestId: string;
  readonly upload: UploadBody | undefined;
  protected readonly owner: AnswerOwner;
  protected readonly rpcId: MessageId;
  protected request: RequestHandle | undefined;
  protected paused: boolean = false;
  /** The stream of a GET that sends events for as long as somebody listens; who loses it opens another. */
  isEndless: boolean = false;
  protected isGet: boolean = false;
  #host = "";
  #over: boolean = false;

  constructor(owner: AnswerOwner, rpcId: MessageId, requestId: string, upload: UploadBody | undefined) {
    this.owner = owner;
    this.rpcId = rpcId;
    this.requestId = requestId;
    this.upload = upload;
  }

  get isOver(): boolean {
    return this.#over;
  }

  begin(http: HttpRequests, request: CheckedRequest): void {
    this.#host = request.url.host;
    this.isGet = request.method === "GET";
    this.request = http.start(request, this);
  }

  /** The client takes the request back, and is told so only where it waits for the head. */
  cancel(): void {
    if (this.#over) return;
    this.#stop();
    // Whether the server has seen it is not known here.
    if (!this.isAnswered) this.refuse(failure("cancelled", "the client took it back", true));
  }

  /** Ends the request where nobody is there to be told. */
  abort(): void {
    if (!this.#over) this.#stop();
  }

  /** Ends the request from this side: the connection to the server is closed, and the client is told why. */
  fail(why: RequestFailure): void {
    if (this.#over) return;
    this.#stop();
    this.refuse(why);
  }

  onFailure(why: RequestFailure): void {
    if (this.#over) return;
    if (why.data.code === "forbidden") this.owner.forbidden(this.#host, why.message);
    this.finish();
    this.refuse(why);
  }

  /** Whether the client has the head. */
  protected abstract readonly isAnswered: boolean;
  abstract onHead(status: number, headers: HttpHeader[]): void;
  abstract onData(chunk: Buffer): void;
  abstract onEnd(): void;

  /** Says that it failed, in the place where the client looks for it. */
  protected refuse(why: RequestFailure): void {
    this.owner.send(renderError(this.rpcId, { code: why.rpcCode, message: why.message, data: why.data }));
  }

  /** The request is over, and so is this. */
  protected finish(): void {
    this.#over = true;
    this.upload?.stop();
    this.owner.leave(this);
  }

  #stop(): void {
    this.finish();
    this.request?.abort();
  }
}

/** The whole body in one message. On a full connection it waits, as streams do: large bodies must not pile up there. */
export class BufferedAnswer extends Answer implements RoomWaiter {
  nextInLine: RoomWaiter | undefined;
  inLine: boolean = false;
  protected readonly isAnswered = false;
  #status = 0;
  #headers: HttpHeader[] = [];
  readonly #chunks = new PieceQueue();
  #bytes = 0;
  #complete: boolean = false;

  onHead(status: number, headers: HttpHeader[]): void {
    this.#status = status;
    this.#headers = headers;
  }

  onData(chunk: Buffer): void {
    if (this.isOver) return;
    this.#chunks.push(chunk, true);
    this.#bytes += chunk.length;
    const all = this.owner.collected(chunk.length);
    if (this.#bytes > MAX_WHOLE_BODY_BYTES) {
      const bound = `the body has more than ${MAX_WHOLE_BODY_BYTES / MIB} MiB`;
      this.fail(failure("limit", `${bound}; ask for it with streamResponse`, true));
    } else if (all > MAX_QUEUED_BYTES) {
      const bound = `more than ${MAX_QUEUED_BYTES / MIB} MiB are being collected for this connection`;
      this.fail(failure("limit", `${bound}; ask for large bodies with streamResponse`, true));
    } else if (!this.paused && this.owner.isFull) {
      this.paused = true;
      this.request?.pause();
      this.owner.waitForRoom(this);
    }
  }

  onEnd(): void {
    if (this.isOver) return;
    this.#complete = true;
    if (this.owner.isFull) this.owner.waitForRoom(this);
    else this.#send();
  }

  hasRoom(): void {
    if (this.isOver) return;
    if (this.#complete) {
      this.#send();
    } else if (this.paused) {
      this.paused = false;
      this.request?.resume();
    }
  }

  #send(): void {
    const bodyBase64 = Buffer.concat(this.#chunks.takeAll(), this.#bytes).toString("base64");
    this.finish();
    this.owner.send(renderResult(this.rpcId, { status: this.#status, headers: this.#headers, bodyBase64 }));
  }

  protected override finish(): void {
    this.owner.collected(-this.#bytes);
    this.#chunks.clear();
    super.finish();
  }
}

/** What Node reads from a socket at once. */
const USUAL_PIECE_BYTES = 64 * KIB;

/** How many are woken at once: their next pieces together fill the half that is free when room is told of. */
const WOKEN_AT_ONCE = MAX_UNACKED_BYTES / 2 / USUAL_PIECE_BYTES;

/**
 * The answers that wait for room on a full connection. They have their turn in the order in which they stopped, a few at a
 * time, so that the first does not fill it again before the last has sent a piece.
 */
export class SendQueue {
  readonly #isFull: () => boolean;
  #first: RoomWaiter | undefined;
  #last: RoomWaiter | undefined;
  #next: NodeJS.Immediate | undefined;

  constructor(isFull: () => boolean) {
    this.#isFull = isFull;
  }

  join(waiter: RoomWaiter): void {
    if (waiter.inLine) return;
    waiter.inLine = true;
    if (this.#last === undefined) this.#first = waiter;
    else this.#last.nextInLine = waiter;
    this.#last = waiter;
  }

  /** There is room. Those whose turn does not come now come as soon as the others' pieces are there. */
  readonly wake = (): void => {
    this.#cancelNext();
    for (let woken = 0; woken < WOKEN_AT_ONCE && this.#first !== undefined; woken++) {
      // It is full again, so room will be told of again.
      if (this.#isFull()) return;
      const waiter = this.#first;
      this.#first = waiter.nextInLine;
      if (this.#first === undefined) this.#last = undefined;
      waiter.nextInLine = undefined;
      waiter.inLine = false;
      waiter.hasRoom();
    }
    if (this.#first !== undefined) this.#next = setImmediate(this.wake);
  };

  clear(): void {
    this.#cancelNext();
    this.#first = undefined;
    this.#last = undefined;
  }

  #cancelNext(): void {
    clearImmediate(this.#next);
    this.#next = undefined;
  }
}
