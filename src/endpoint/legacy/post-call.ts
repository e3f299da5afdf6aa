// One POST with one request of a session: the call, its way back and its answer, which is JSON or an event stream,
// chosen when the first thing has to go out. The hot path.

import type { ServerResponse } from "node:http";
import type { NotificationText } from "../../contracts/caller.js";
import type { AgentCall } from "../../contracts/service.js";
import { replySize, spliced } from "../../protocol/arrived.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import type { RequestMessage } from "../../protocol/message.js";
import { type Reply, renderReply, type StreamReply } from "../../protocol/reply.js";
import { NOWHERE } from "../../runtime/containers/table.js";
import type { Accepts } from "../http/checks.js";
import { EVENT_STREAM_HEADERS } from "../http/sse.js";
import type { WaitingPost, WaitingPosts } from "../http/waiting-posts.js";
import { sendBytes, writeReply } from "../http/write-reply.js";
import { bounded, collect } from "../session/bounded-reply.js";
import { idText, LegacyCall } from "../session/call.js";
import type { HttpSession } from "./http-session.js";
import type { EventStream } from "./streams/event-stream.js";

/** Better to say so than to let the agent wait for it. */
function notKept(): Fault {
  return new Fault(
    "outcome-unknown",
    "The reply is larger than what is kept for an agent that is away, and is lost. The call has ended, and may have taken effect.",
  );
}

/** What these ask for outlives the request, and a restart. */
const SETTERS: ReadonlySet<string> = new Set(["logging/setLevel", "resources/subscribe", "resources/unsubscribe"]);

const GONE = "The agent has gone, and the reply could not reach it.";

/** What a POST asked for: one call, or a batch of them. */
interface Cancellable {
  cancel(reason: string | undefined): void;
}

/** The answer to one POST, with a request or with a batch of them. */
export class PostAnswer implements WaitingPost {
  readonly #asked: Cancellable;
  readonly #waiting: WaitingPosts;
  readonly #session: HttpSession;
  readonly #res: ServerResponse;
  readonly #accepts: Accepts;
  readonly #requestId: string | undefined;
  readonly #since: number;
  place = NOWHERE;
  #stream: EventStream | undefined;
  #settled = false;
  /** Since when the reply could reach nobody. */
  #lostSinceMs: number | undefined;

  constructor(
    asked: Cancellable,
    waiting: WaitingPosts,
    session: HttpSession,
    res: ServerResponse,
    accepts: Accepts,
    requestId?: string,
  ) {
    this.#asked = asked;
    this.#waiting = waiting;
    this.#session = session;
    this.#res = res;
    this.#accepts = accepts;
    this.#requestId = requestId;
    this.#since = waiting.now();
    waiting.add(this);
  }

  get session(): HttpSession {
    return this.#session;
  }

  get res(): ServerResponse {
    return this.#res;
  }

  /** The connection is gone and no stream was begun that could be resumed. */
  get lost(): boolean {
    return this.#stream === undefined && this.#res.destroyed;
  }

  /** The event stream, begun now if need be; undefined where the client reads none, or is gone. */
  stream(): EventStream | undefined {
    if (this.#stream !== undefined || !this.#accepts.events || this.#res.destroyed || this.#settled) {
      return this.#stream;
    }
    this.#stream = this.#session.callStream(this.#res, this.#requestId);
    return this.#stream;
  }

  /** The stream if one was begun, or if the client reads nothing else. */
  streamForReply(): EventStream | undefined {
    return this.#accepts.json ? this.#stream : this.stream();
  }

  /** True where a message sent on the stream now reaches the client, or is kept for it. */
  get streaming(): boolean {
    return this.#stream !== undefined;
  }

  /**
   * After a long silence the client, and what is between us, must see that somebody is at work. What was asked by one
   * that has gone is cancelled.
   */
  keepAlive(nowMs: number, quietMs: number): void {
    if (this.#isUnreachable()) {
      this.#lostSinceMs ??= nowMs;
      if (nowMs - this.#lostSinceMs >= this.#session.limits.goneMs) this.#asked.cancel(GONE);
      return;
    }
    this.#lostSinceMs = undefined;
    if (this.#stream === undefined && nowMs - this.#since >= quietMs) this.stream()?.keepAlive(Number.MAX_SAFE_INTEGER);
  }

  /**
   * The connection is gone, no event id was sent by which the client could ask for the rest, and no GET stream shows
   * that it is still there. A lost connection alone is no cancellation in this era.
   */
  #isUnreachable(): boolean {
    const canResume = this.#stream?.isResumable ?? false;
    return this.#res.destroyed && !canResume && !this.#session.listening;
  }

  /** Answers with JSON, in one piece. */
  json(bytes: Buffer): void {
    this.settle();
    sendBytes(this.#res, 200, bytes, this.#session.readers, this.#session.principal.id);
  }

  /** Ends the stream: all replies have been sent as events. */
  complete(): void {
    this.settle();
    this.#stream?.complete();
  }

  /** Ends without a response: with the end of the stream that was begun, or with an empty stream. */
  abandon(): void {
    this.settle();
    const res = this.#res;
    if (this.#stream !== undefined) this.#stream.abandon();
    else if (!res.destroyed) {
      // It has no priming event: a client that got one would come back for more.
      res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
      res.end();
    }
  }

  /** By the stream of this POST, or where it has none by the session's own. */
  notify(notification: NotificationText, stream: EventStream | undefined): void {
    if (stream !== undefined) stream.notify(notification.text);
    else if (!this.lost) this.#session.notify(notification);
  }

  /** A request of a server must arrive: where this stream broke, the session's own is taken if there is one. */
  sendRequest(text: string, stream: EventStream | undefined): void {
    if (stream !== undefined && (stream.attached || !this.#session.listening)) stream.send(text);
    else this.#session.tell(text);
  }

  /** Nobody waits here any more. */
  settle(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#waiting.delete(this);
  }
}

export class PostCall extends LegacyCall {
  readonly #answer: PostAnswer;
  readonly #idText: string;

  constructor(
    waiting: WaitingPosts,
    session: HttpSession,
    message: RequestMessage,
    res: ServerResponse,
    accepts: Accepts,
  ) {
    super(session, message);
    this.#idText = idText(message);
    this.#answer = new PostAnswer(this, waiting, session, res, accepts, this.#idText);
  }

  /** The headers of the request. They are read only where calls are traced. */
  get traceHeaders(): AgentCall["traceHeaders"] {
    return this.#answer.res.req.headers;
  }

  override get unreachable(): boolean {
    return this.#answer.lost;
  }

  /** Leaves nothing in flight, for a request that was refused before it began. */
  dismiss(): void {
    this.message.held?.drop();
    this.#answer.settle();
  }

  notify(notification: NotificationText): void {
    this.#answer.notify(notification, this.done ? undefined : this.#answer.stream());
  }

  protected sendRequest(text: string): void {
    this.#answer.sendRequest(text, this.done ? undefined : this.#answer.stream());
  }

  protected write(reply: Reply): void {
    const { keeping } = this.#answer.session;
    // What a session asked for is kept over a kill once its agent was told so.
    if (keeping !== undefined && SETTERS.has(this.message.method)) void keeping.then(() => this.#write(reply));
    else this.#write(reply);
  }

  #write(reply: Reply): void {
    const answer = this.#answer;
    const { limits, readers, principal } = answer.session;
    const stream = answer.streamForReply();
    const fitting = bounded(reply, limits, readers.held, principal.id);
    if (stream === undefined) {
      answer.settle();
      writeReply(answer.res, fitting, this.#idText, readers, principal.id);
    } else if (fitting.kind === "stream") this.#pass(fitting, stream);
    else {
      answer.settle();
      if (fitting.kind === "bytes" && replySize(fitting) > limits.replayBytes)
        stream.finishPieces(spliced(fitting, this.#idText));
      else stream.finish(renderReply(fitting, this.#idText));
    }
  }

  #pass(reply: StreamReply, stream: EventStream): void {
    if (stream.attached) {
      this.#answer.settle();
      stream.finishStream(reply.open(this.#idText));
      return;
    }
    // The client is away and may come back: keep it if it is not too large for that.
    const { limits, readers, principal } = this.#answer.session;
    const holder = readers.held.holder(principal.id);
    void collect(reply.open(this.#idText), limits.replayBytes, holder).then((bytes) => {
      this.#answer.settle();
      stream.finish(bytes ?? renderReply({ kind: "error", error: toRpcError(notKept()) }, this.#idText));
    });
  }

  protected abandon(): void {
    this.#answer.abandon();
  }
}
