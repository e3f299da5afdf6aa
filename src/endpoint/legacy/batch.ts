// One POST with a batch (2025-03-26): each request is a call of its own; the replies leave together as one JSON
// array, or one by one as events if something else had to go out first.

import type { ServerResponse } from "node:http";
import type { NotificationText } from "../../contracts/caller.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { RequestMessage } from "../../protocol/message.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import type { Holder } from "../../runtime/memory/held-bytes.js";
import type { Accepts } from "../http/checks.js";
import type { WaitingPosts } from "../http/waiting-posts.js";
import { collect } from "../session/bounded-reply.js";
import { idText, LegacyCall } from "../session/call.js";
import type { HttpSession } from "./http-session.js";
import { PostAnswer } from "./post-call.js";

const COMMA = Buffer.from(",");

export class PostBatch {
  readonly answer: PostAnswer;
  #waiting: number;
  #replies: Buffer[] = [];
  #bytes = 0;
  /** What the replies take that wait for the others. */
  readonly #holder: Holder;
  readonly #calls: BatchCall[] = [];

  /** `requests` is how many replies there will be. */
  constructor(waiting: WaitingPosts, session: HttpSession, res: ServerResponse, accepts: Accepts, requests: number) {
    this.answer = new PostAnswer(this, waiting, session, res, accepts);
    this.#waiting = requests;
    this.#holder = session.readers.held.holder(session.principal.id);
  }

  add(call: BatchCall): void {
    this.#calls.push(call);
  }

  cancel(reason: string | undefined): void {
    for (const call of this.#calls) call.cancel(reason);
  }

  /** The replies that were held back go out as events before anything else does. */
  stream(): ReturnType<PostAnswer["stream"]> {
    const stream = this.answer.stream();
    if (stream !== undefined) {
      for (const reply of this.#replies) stream.send(reply.toString());
      this.#replies = [];
    }
    return stream;
  }

  /** A holder for a reply that is still being read. */
  newHolder(): Holder {
    const { readers, principal } = this.answer.session;
    return readers.held.holder(principal.id);
  }

  /** False where a reply of so many bytes cannot be kept until the others are there. */
  keeps(bytes: number): boolean {
    return bytes <= this.room && this.#holder.hold(this.#bytes + bytes);
  }

  /** Undefined for a request that was cancelled. */
  settled(reply: Buffer | undefined): void {
    if (reply !== undefined) {
      this.#bytes += reply.length;
      this.#replies.push(reply);
    }
    this.#waiting--;
    const streaming = this.answer.streaming || this.answer.streamForReply() !== undefined;
    if (streaming) this.stream();
    if (this.#waiting > 0) return;
    this.#holder.release();
    if (streaming) this.answer.complete();
    else if (this.#replies.length === 0) this.answer.abandon();
    else this.answer.json(this.#array());
  }

  /** How many bytes may still be held: one batch must not hold a hundred times what one reply may. */
  get room(): number {
    return Math.max(0, this.answer.session.limits.outputBytes - this.#bytes);
  }

  #array(): Buffer {
    const pieces: Buffer[] = [Buffer.from("[")];
    for (const [index, reply] of this.#replies.entries()) {
      if (index > 0) pieces.push(COMMA);
      pieces.push(reply);
    }
    pieces.push(Buffer.from("]"));
    return Buffer.concat(pieces);
  }
}

export class BatchCall extends LegacyCall {
  readonly #batch: PostBatch;
  readonly #idText: string;

  constructor(batch: PostBatch, message: RequestMessage) {
    super(batch.answer.session, message);
    this.#batch = batch;
    batch.add(this);
    this.#idText = idText(message);
  }

  override get unreachable(): boolean {
    return this.#batch.answer.lost;
  }

  notify(notification: NotificationText): void {
    this.#batch.answer.notify(notification, this.done ? undefined : this.#batch.stream());
  }

  protected sendRequest(text: string): void {
    this.#batch.answer.sendRequest(text, this.done ? undefined : this.#batch.stream());
  }

  protected write(reply: Reply): void {
    if (reply.kind === "stream") {
      void collect(reply.open(this.#idText), this.#batch.room, this.#batch.newHolder()).then((bytes) =>
        this.#settle(bytes),
      );
      return;
    }
    this.#settle(renderReply(reply, this.#idText));
  }

  #settle(bytes: Buffer | undefined): void {
    const fault = new Fault("limit", "The reply is too large for a batch; send the request alone.");
    const kept = bytes !== undefined && this.#batch.keeps(bytes.length) ? bytes : undefined;
    this.#batch.settled(kept ?? renderReply({ kind: "error", error: toRpcError(fault) }, this.#idText));
  }

  protected abandon(): void {
    this.#batch.settled(undefined);
  }
}
