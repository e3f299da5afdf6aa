// The answer to one POST: JSON or an event stream, chosen when the first thing has to go out.

import type { ServerResponse } from "node:http";
import { NOWHERE } from "../../runtime/bag.js";
import { sendLatin1 } from "../http/answers.js";
import type { Accepts } from "../http/checks.js";
import type { Flight, Posted } from "../http/flights.js";
import { EVENT_STREAM_HEADERS } from "../http/sse.js";
import type { HttpSession } from "./http-session.js";
import type { EventStream } from "./streams/event-stream.js";

/** Replies under this are copied into one buffer, so that they leave in one write. */
const SMALL_BYTES = 64 * 1024;

export class PostAnswer implements Posted {
  readonly #flight: Flight;
  readonly #session: HttpSession;
  readonly #res: ServerResponse;
  readonly #accepts: Accepts;
  readonly #requestId: string | undefined;
  readonly #since: number;
  place = NOWHERE;
  #stream: EventStream | undefined;
  #landed = false;

  constructor(flight: Flight, session: HttpSession, res: ServerResponse, accepts: Accepts, requestId?: string) {
    this.#flight = flight;
    this.#session = session;
    this.#res = res;
    this.#accepts = accepts;
    this.#requestId = requestId;
    this.#since = flight.now();
    flight.posts.add(this);
  }

  get session(): HttpSession {
    return this.#session;
  }

  /** The connection is gone and no stream was begun that could be resumed. */
  get lost(): boolean {
    return this.#stream === undefined && this.#res.destroyed;
  }

  /** The event stream, begun now if need be; undefined where the client reads none, or is gone. */
  stream(): EventStream | undefined {
    if (this.#stream !== undefined || !this.#accepts.events || this.#res.destroyed || this.#landed) return this.#stream;
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

  /** Silence for too long: the client, and what is between us, must see that somebody is at work. */
  keepAlive(nowMs: number, quietMs: number): void {
    if (this.#stream === undefined && nowMs - this.#since >= quietMs) this.stream()?.keepAlive(Number.MAX_SAFE_INTEGER);
  }

  /** As JSON, in one piece. */
  json(bytes: Buffer): void {
    this.land();
    const res = this.#res;
    if (res.destroyed) return;
    res.writeHead(200, ["Content-Type", "application/json", "Content-Length", String(bytes.length)]);
    res.end(bytes);
    if (bytes.length >= SMALL_BYTES) res.setTimeout(this.#session.limits.stallMs);
  }

  /** As JSON, given a character a byte. */
  latin1(text: string): void {
    this.land();
    if (!this.#res.destroyed) sendLatin1(this.#res, 200, text);
  }

  get res(): ServerResponse {
    return this.#res;
  }

  /** All replies have been sent as events. */
  complete(): void {
    this.land();
    this.#stream?.complete();
  }

  /** Ends without a response: the end of the stream that was begun, or an empty one. */
  abandon(): void {
    this.land();
    const res = this.#res;
    if (this.#stream !== undefined) this.#stream.abandon();
    else if (!res.destroyed) {
      // Without a priming event: a client that got one would come back for more.
      res.writeHead(200, EVENT_STREAM_HEADERS as string[]);
      res.end();
    }
  }

  /** Nothing more is in flight here. */
  land(): void {
    if (this.#landed) return;
    this.#landed = true;
    this.#flight.posts.delete(this);
  }
}
