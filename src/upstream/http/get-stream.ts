// The GET stream of a streamable HTTP server, on which it says what it was not asked: it is opened after the handshake,
// kept open, and resumed where it broke. It does not know what the messages mean.

import type { Fault } from "../../protocol/errors.js";
import { EventStreamParser, Pieces, type StreamEvent } from "../../protocol/event-stream.js";
import { backoffCeiling } from "../../runtime/backoff.js";
import { systemClock } from "../../runtime/clock.js";
import type { Holder } from "../../runtime/memory/held-bytes.js";
import { parseRpc } from "./faults.js";
import { type HttpDestination, mediaType } from "./headers.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  RedirectError,
  type Requester,
  type ResponseHeaders,
} from "./requester.js";

/** The wait before the stream is opened again, where the server names no `retry`. */
const RECONNECT_MS = 1_000;
/** The shortest `retry` that is believed: a server that says 0 would be asked without a pause. */
const MIN_RECONNECT_MS = 100;
/** Failing servers are asked this seldom in the end; calls find out sooner. */
const MAX_RECONNECT_MS = 60_000;
/** Up to this share of the wait is added by chance, so that many links do not return together. */
const JITTER = 0.2;
/** A stream that lived this long, or brought a message, was a good one: the next wait is the short one again. */
const GOOD_STREAM_MS = 10_000;
/** Of a stream that was open before: there may be another credential later, and the one before may still be ending. */
const PASSING: ReadonlySet<number> = new Set([401, 409]);
/** So much is read of an error's body, to tell a session that is gone from a route that never was. */
const MAX_BODY_BYTES = 4 * 1024;

export interface GetStreamLink {
  readonly requester: Requester;
  readonly destination: HttpDestination;
  getHeaders(lastEventId: string): string[];
  readonly inSession: boolean;
  onMessage(bytes: Buffer, ticket: undefined): void;
  /** The server has answered, one way or the other. True where nothing was sent before, by which it could say anything. */
  onListenAnswered(): boolean;
  onListenSessionGone(status: number): void;
  onNoise(sample: string): void;
  newHolder(): Holder;
}

/** How long to wait after the stream ended; `badStreams` counts the bad ones in a row. */
export function reconnectDelay(badStreams: number, retryMs: number | undefined, random: number): number {
  const baseMs = Math.max(MIN_RECONNECT_MS, retryMs ?? RECONNECT_MS);
  return backoffCeiling(badStreams, { baseMs, maxMs: Math.max(baseMs, MAX_RECONNECT_MS) }) * (1 + JITTER * random);
}

export class GetStream implements ExchangeHandler {
  readonly #link: GetStreamLink;
  #exchange: HttpExchange | undefined;
  #parser: EventStreamParser | undefined;
  #holder: Holder | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped: boolean = false;
  #lastEventId = "";
  #retryMs: number | undefined;
  #badStreams = 0;
  #openedAtMs = 0;
  /** True once there was a stream in this session: a 404 can then only mean that the session is gone. */
  #worked: boolean = false;
  #good: boolean = false;
  #status = 0;
  /** The server has no such stream: what it says outside of calls is not heard. */
  isRefused = false;
  /**
   * Counts the times in which what the server said was not heard: once when the stream breaks, and once more when there
   * is one again, since something may have been said in between. One that is resumed by its last event has no gap.
   */
  gaps = 0;
  readonly #body = new Pieces();

  constructor(link: GetStreamLink) {
    this.#link = link;
    this.#open();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#holder?.release();
    this.#exchange?.abort();
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    if (status === 200 && mediaType(headers) === "text/event-stream") {
      this.#worked = true;
      this.#holder ??= this.#link.newHolder();
      this.#parser = new EventStreamParser({
        holder: this.#holder,
        onEvent: (event) => this.#gotEvent(event),
        onError: (fault) => this.#unreadable(fault),
      });
    }
    const isFirst = this.#link.onListenAnswered();
    if (this.#parser !== undefined && !isFirst && this.#lastEventId === "") this.gaps++;
  }

  onData(chunk: Buffer): void {
    if (this.#parser !== undefined) {
      this.#parser.push(chunk);
      return;
    }
    this.#body.push(chunk);
    if (this.#body.length <= MAX_BODY_BYTES) return;
    this.#exchange?.abort();
    this.#refused();
  }

  onEnd(): void {
    if (this.#parser === undefined) this.#refused();
    else this.#ended();
  }

  onError(error: Error): void {
    this.#link.onListenAnswered();
    if (error instanceof RedirectError) {
      this.#link.onNoise(`The GET stream is not opened: ${error.message} is not followed.`);
      return;
    }
    // Whether the server is there at all is found out by calls; this stream only waits for it.
    this.#ended();
  }

  #open(): void {
    this.#parser = undefined;
    this.#body.clear();
    this.#good = false;
    this.#openedAtMs = systemClock.now();
    const { requester, destination } = this.#link;
    const headers = this.#link.getHeaders(this.#lastEventId);
    this.#exchange = requester.dispatch({ method: "GET", pool: "asides", path: destination.path, headers }, this);
  }

  #gotEvent({ event, data }: StreamEvent): void {
    if (this.#stopped || data.length === 0 || (event !== undefined && event !== "message")) return;
    this.#good = true;
    this.#link.onMessage(data, undefined);
  }

  #unreadable(fault: Fault): void {
    this.#exchange?.abort();
    this.#link.onNoise(fault.forOperator);
    // The same event would come again.
    this.#lastEventId = "";
    this.#parser = undefined;
    this.#ended();
  }

  #ended(): void {
    this.#holder?.release();
    if (this.#stopped) return;
    const parser = this.#parser;
    if (parser !== undefined) {
      if (parser.lastEventId !== "") this.#lastEventId = parser.lastEventId;
      this.#retryMs = parser.retryMs ?? this.#retryMs;
    }
    if (parser !== undefined && this.#lastEventId === "") this.gaps++;
    const lived = parser !== undefined && systemClock.now() - this.#openedAtMs >= GOOD_STREAM_MS;
    // A server that names a `retry` closes on purpose and wants to be asked again then.
    const wanted = parser?.retryMs !== undefined;
    this.#badStreams = lived || wanted || this.#good ? 0 : this.#badStreams + 1;
    this.#again();
  }

  #again(): void {
    const badStreams = Math.max(0, this.#badStreams - 1);
    this.#timer = setTimeout(() => this.#open(), reconnectDelay(badStreams, this.#retryMs, Math.random()));
  }

  #refused(): void {
    if (this.#stopped) return;
    const status = this.#status;
    if (status >= 500 || status === 429 || (this.#worked && PASSING.has(status))) {
      this.#badStreams++;
      this.#again();
      return;
    }
    // Everything else ends it until the next handshake: 405 says that there is no such stream, 401 to the first of
    // all that it is not for us, and a plain 404 on the first try is a server that has no route for GET.
    this.isRefused = true;
    if (status !== 404 || !this.#link.inSession) return;
    if (this.#worked || parseRpc(this.#body.take()) !== undefined) this.#link.onListenSessionGone(status);
  }
}
