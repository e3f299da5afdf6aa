// The answer to one modern POST: JSON or a plain event stream, chosen when the first thing has to go out. Nothing is
// kept for later: who leaves before the answer cancels the request.

import type { ServerResponse } from "node:http";
import { ErrorCode, type RpcError } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import { ModernError, type RequestMeta } from "../../protocol/modern.js";
import type { ParamHeader } from "../../protocol/param-headers.js";
import type { Reply } from "../../protocol/reply.js";
import { NOWHERE } from "../../runtime/containers/table.js";
import type { Accepts } from "../http/checks.js";
import { cutConnection } from "../http/queued-answers.js";
import { AT_ONCE_BYTES, type SlowReaders } from "../http/slow-readers.js";
import { EVENT_STREAM_HEADERS, KEEP_ALIVE, messageEvent } from "../http/sse.js";
import type { WaitingPost, WaitingPosts } from "../http/waiting-posts.js";
import { isLarge, writeReply, writeReplyEvent } from "../http/write-reply.js";
import { bounded } from "../session/bounded-reply.js";
import { idText } from "../session/call.js";
import { paramMismatch } from "./checks.js";
import type { Outlet } from "./outlet.js";

/** Errors that are HTTP errors too; any other is an answer like all answers. */
const STATUS: Readonly<Record<number, number>> = {
  [ErrorCode.methodNotFound]: 404,
  [ModernError.missingCapability]: 400,
};

/** What an event has beside its message, and some room. */
const EVENT_BYTES = 64;

/** What the modern POSTs of one endpoint share. */
export interface ModernHttp {
  readonly readers: SlowReaders;
  /** Calls in flight, which a drain waits for. */
  readonly waiting: WaitingPosts;
  /** Open event streams, for keep-alive comments. */
  readonly open: Set<HttpOutlet>;
  /** Notifications that slow readers had no room for. */
  readonly leftOut?: { count: number };
}

export class HttpOutlet implements Outlet, WaitingPost {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #http: ModernHttp;
  readonly #owner: string;
  readonly #res: ServerResponse;
  readonly #accepts: Accepts;
  readonly #idText: string;
  #streaming = false;
  #replied = false;
  #lastWrite: number;
  place = NOWHERE;

  /** `owner` is who sent the request, and whose memory its answer takes. */
  constructor(
    http: ModernHttp,
    owner: string,
    message: RequestMessage,
    meta: RequestMeta,
    res: ServerResponse,
    accepts: Accepts,
  ) {
    this.#owner = owner;
    this.message = message;
    this.meta = meta;
    this.#http = http;
    this.#res = res;
    this.#accepts = accepts;
    this.#idText = idText(message);
    this.#lastWrite = http.waiting.now();
    // One that listens is in nobody's way at a drain.
    if (message.method !== "subscriptions/listen") http.waiting.add(this);
    message.held?.claim();
    res.on("close", () => this.#closed());
  }

  get traceHeaders(): Outlet["traceHeaders"] {
    return this.#res.req.headers;
  }

  headerMismatch(declared: readonly ParamHeader[]): RpcError | undefined {
    if (declared.length === 0) return undefined;
    return paramMismatch(declared, this.message.params?.["arguments"], this.#res.req.headers);
  }

  #closed(): void {
    this.#settle();
    this.message.held?.drop();
    if (this.#replied) return;
    this.#replied = true;
    this.onGone?.("The agent closed the connection.");
  }

  #settle(): void {
    this.#http.waiting.delete(this);
    this.#http.open.delete(this);
  }

  opened(): void {
    if (!this.#replied && this.#stream()) this.#write(KEEP_ALIVE);
  }

  notify(text: string): void {
    if (this.#replied) return;
    if (!this.#hasRoom(text)) {
      if (this.#http.leftOut !== undefined) this.#http.leftOut.count++;
    } else if (this.#stream()) this.#write(messageEvent(undefined, text));
  }

  /**
   * A message that does not fit beside what waits is left out: to cut the reader would cost it the reply to its call,
   * and a server decides how much it says before that. One that listens waits for nothing else; it is cut, and comes back.
   */
  #hasRoom(text: string): boolean {
    const room = this.#http.readers.limits.slowReaderBytes - this.#res.writableLength;
    // A character has at most three bytes.
    if (text.length * 3 <= room || this.message.method === "subscriptions/listen") return true;
    return Buffer.byteLength(text) + EVENT_BYTES <= room;
  }

  /** Begins the event stream if need be; false where the client reads none, or is gone. */
  #stream(): boolean {
    if (this.#streaming) return true;
    if (!this.#accepts.events || this.#res.destroyed) return false;
    this.#streaming = true;
    this.#res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
    this.#res.flushHeaders();
    this.#http.open.add(this);
    return true;
  }

  #write(event: string): void {
    this.#lastWrite = this.#http.waiting.now();
    this.#res.write(event);
    // A reader this far behind is cut; that cancels the request, as leaving does.
    const waiting = this.#res.writableLength;
    const { readers } = this.#http;
    if (waiting > readers.limits.slowReaderBytes) cutConnection(this.#res);
    else if (waiting >= AT_ONCE_BYTES) this.watchReader();
  }

  /** Counts what waits for the reader; one for whom there is no room is cut. */
  watchReader(): void {
    if (!this.#http.readers.watch(this.#res, this.#owner)) cutConnection(this.#res);
  }

  /** After a long silence the client, and what is between us, must see that somebody is at work. */
  keepAlive(nowMs: number, quietMs: number): void {
    if (!this.#replied && nowMs - this.#lastWrite >= quietMs && this.#stream()) this.#write(KEEP_ALIVE);
  }

  reply(reply: Reply): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#settle();
    const { readers } = this.#http;
    const fitting = bounded(reply, readers.limits, readers.held, this.#owner);
    const status = statusOf(fitting);
    if (this.#streaming || (!this.#accepts.json && status === 200 && this.#stream())) {
      this.#http.open.delete(this);
      writeReplyEvent(this.#res, fitting, this.#idText, readers, this.#owner);
    } else writeReply(this.#res, fitting, this.#idText, readers, this.#owner, status);
  }
}

/** A large reply is 200 whatever it says: it is not read for its status. */
function statusOf(reply: Reply): number {
  if (reply.kind === "error") {
    // We say this of the request. A server that says it speaks of the headers that we sent to it.
    if (reply.error.code === ModernError.headerMismatch) return 400;
    return STATUS[reply.error.code] ?? 200;
  }
  if (reply.kind !== "bytes" || reply.errorCode === undefined || isLarge(reply)) return 200;
  return STATUS[reply.errorCode] ?? 200;
}
