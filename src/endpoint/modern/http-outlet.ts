// The answer to one modern POST: JSON or a plain event stream, chosen when the first thing has to go out. Nothing is
// kept for later: who leaves before the answer takes the request back.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { replySize } from "../../protocol/arrived.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { RequestMessage } from "../../protocol/message.js";
import { ModernError, type RequestMeta } from "../../protocol/modern.js";
import { type Reply, renderReply, type StreamReply, spliceLatin1 } from "../../protocol/reply.js";
import { NOWHERE } from "../../runtime/bag.js";
import { sendLatin1 } from "../http/answers.js";
import type { Accepts } from "../http/checks.js";
import type { Flight, Posted } from "../http/flights.js";
import { isLarge, LARGE_ANSWER_BYTES, writeLarge } from "../http/large-answer.js";
import { jsonHeaders, pipeBody } from "../http/pipe-body.js";
import { EVENT_END, EVENT_STREAM_HEADERS, eventHead, KEEP_ALIVE, messageEvent } from "../http/sse.js";
import { idText } from "../session/call.js";
import type { EndpointLimits } from "../session/limits.js";
import { oneLineBytes } from "../session/one-line.js";
import type { Outlet } from "./outlet.js";
import { errorOf } from "./reply.js";

/** Errors that are HTTP errors too; any other is an answer like all answers. */
const STATUS: Readonly<Record<number, number>> = {
  [ErrorCode.methodNotFound]: 404,
  [ModernError.missingCapability]: 400,
};

/** What the modern POSTs of one endpoint share. */
export interface ModernHttp {
  readonly limits: EndpointLimits;
  /** Calls in flight: a drain waits for them. */
  readonly flight: Flight;
  /** Open event streams, for keep-alive comments. */
  readonly open: Set<HttpOutlet>;
}

export class HttpOutlet implements Outlet, Posted {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #http: ModernHttp;
  readonly #res: ServerResponse;
  readonly #accepts: Accepts;
  readonly #idText: string;
  #streaming = false;
  #replied = false;
  #lastWrite: number;
  place = NOWHERE;

  constructor(http: ModernHttp, message: RequestMessage, meta: RequestMeta, res: ServerResponse, accepts: Accepts) {
    this.message = message;
    this.meta = meta;
    this.#http = http;
    this.#res = res;
    this.#accepts = accepts;
    this.#idText = idText(message);
    this.#lastWrite = http.flight.now();
    // One that listens is in nobody's way at a drain.
    if (message.method !== "subscriptions/listen") http.flight.posts.add(this);
    res.on("close", () => this.#closed());
  }

  get traceHeaders(): Outlet["traceHeaders"] {
    return this.#res.req.headers;
  }

  #closed(): void {
    this.#land();
    if (this.#replied) return;
    this.#replied = true;
    this.onGone?.("The agent closed the connection.");
  }

  #land(): void {
    this.#http.flight.posts.delete(this);
    this.#http.open.delete(this);
  }

  notify(text: string): void {
    if (!this.#replied && this.#stream()) this.#write(messageEvent(undefined, text));
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
    this.#lastWrite = this.#http.flight.now();
    this.#res.write(event);
    // A reader this far behind is cut; that takes the request back, as leaving does.
    if (this.#res.writableLength > this.#http.limits.slowReaderBytes) this.#res.destroy();
  }

  /** Silence for too long: the client, and what is between us, must see that somebody is at work. */
  keepAlive(nowMs: number, quietMs: number): void {
    if (!this.#replied && nowMs - this.#lastWrite >= quietMs && this.#stream()) this.#write(KEEP_ALIVE);
  }

  reply(reply: Reply): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#land();
    const { outputBytes } = this.#http.limits;
    if (this.#res.destroyed) {
      if (reply.kind === "stream") reply.open(this.#idText).destroy();
    } else if (reply.kind === "stream") this.#body(reply);
    else if (reply.kind === "bytes" && replySize(reply) > outputBytes) {
      const fault = new Fault("limit", `The reply has ${replySize(reply)} bytes; the limit is ${outputBytes}.`);
      this.#bytes(renderReply({ kind: "error", error: toRpcError(fault) }, this.#idText), 200);
    } else if (reply.kind === "bytes" && isLarge(reply) && !this.#streaming && this.#accepts.json) {
      writeLarge(this.#res, reply, this.#idText, this.#http.limits);
    } else {
      const status = STATUS[errorOf(reply)?.code ?? 0] ?? 200;
      if (reply.kind === "bytes" && reply.latin1 !== undefined && !this.#streaming && this.#accepts.json) {
        sendLatin1(this.#res, status, spliceLatin1(reply, reply.latin1, this.#idText));
      } else this.#bytes(renderReply(reply, this.#idText), status);
    }
  }

  #bytes(bytes: Buffer, status: number): void {
    const res = this.#res;
    if (this.#streaming || (!this.#accepts.json && status === 200 && this.#stream())) {
      this.#http.open.delete(this);
      res.cork();
      res.write(eventHead(undefined));
      res.write(oneLineBytes(bytes));
      res.write(EVENT_END);
      // A response must not end while it is corked: Node 22 and 24 send the last chunk before what was corked.
      res.uncork();
      res.end();
    } else {
      res.writeHead(status, ["Content-Type", "application/json", "Content-Length", String(bytes.length)]);
      res.end(bytes);
    }
    if (bytes.length >= LARGE_ANSWER_BYTES) res.setTimeout(this.#http.limits.stallMs);
  }

  #body(reply: StreamReply): void {
    const res = this.#res;
    const size = reply.size?.(this.#idText);
    const body: Readable = reply.open(this.#idText);
    if (this.#streaming || (!this.#accepts.json && this.#stream())) {
      this.#http.open.delete(this);
      res.write(eventHead(undefined));
      pipeBody(body, res, this.#http.limits, EVENT_END);
    } else {
      res.writeHead(200, jsonHeaders(size));
      pipeBody(body, res, this.#http.limits);
    }
  }
}
