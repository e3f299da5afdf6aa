// One message on its way to a streamable HTTP server: the POST, what its answer is, and the GETs that go on
// with a stream which ended before the reply. streamable.ts has sessions and the link's life.

import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { EventStreamParser, type LongEvent, Pieces, type StreamEvent } from "../../protocol/event-stream.js";
import { backoffCeiling } from "../../runtime/backoff.js";
import { systemClock } from "../../runtime/clock.js";
import { NOWHERE } from "../../runtime/containers/table.js";
import { type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { giveBack } from "../../runtime/memory/read-blocks.js";
import { endsAsJson, LARGE_REPLY_BYTES, LargeBody, PIECED_REPLY_BYTES } from "../link/large-body.js";
import type { Ticket } from "../link/link.js";
import { type HttpRefusal, judge, networkFault, parseRpc } from "./faults.js";
import { type HttpDestination, isResumable, mediaType } from "./headers.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  noteCredential,
  noteCredentialOf,
  type Requester,
  type ResponseHeaders,
} from "./requester.js";

/** So much is read of an answer that is an error before it is judged. JSON-RPC errors are far smaller. */
const MAX_REFUSAL_BYTES = 64 * 1024;
/** A notification or response is taken at once by a working server; one that hangs must not keep its connection. */
const ASIDE_DEADLINE_MS = 30_000;
/** The wait before a stream is resumed, where the server names no `retry`. */
const RESUME_DELAY_MS = 1_000;
/** A longer `retry` is not waited for: calls seldom have deadlines beyond it. */
const MAX_RESUME_DELAY_MS = 5 * 60_000;
/** So many attempts in a row may bring no stream: with their growing delays about half a minute, a quick restart. */
const MAX_RESUME_FAILURES = 5;
/** Servers may close a stream on purpose and have us poll: this often, and for this long, at most. */
const MAX_RESUMES = 1_000;
const MAX_RESUME_TIME_MS = 60 * 60_000;
/** A coding that changes nothing. */
const IDENTITY = /^identity$/i;
/** So much of the name of any other is shown: real ones have a dozen letters. */
const MAX_ENCODING_CHARACTERS = 40;

/** What a call needs of its link. */
export interface HttpCallLink {
  readonly requester: Requester;
  readonly destination: HttpDestination;
  /** The headers of the session as it is now. */
  postHeaders(ticket: Ticket | undefined, modern: readonly string[] | undefined): string[];
  getHeaders(lastEventId: string): string[];
  readonly inSession: boolean;
  onInitialized(headers: ResponseHeaders): void;
  onMessage(bytes: Buffer, ticket: Ticket | undefined): void;
  onPieces(pieces: Buffer[], ticket: Ticket | undefined): void;
  onLargeReply(ticket: Ticket, head: Buffer, body: LargeBody, length: number | undefined): void;
  /** For what is held of an answer that has not ended. */
  newHolder(): Holder;
  /** It failed; `refusal` is given where the server refused it. The call is finished. */
  onFailed(call: HttpCall, fault: Fault, sent: boolean, refusal?: HttpRefusal): void;
  /** A call's ticket is settled while its stream is open: the link makes sure that it ends. Returns the time. */
  settling(): number;
  onSessionGone(call: HttpCall, fault: Fault, sent: boolean): void;
  /** Nothing more will come of it. */
  onFinished(call: HttpCall): void;
}

type Mode = "waiting" | "empty" | "json" | "refused" | "events" | "large" | "resuming" | "finished";

export class HttpCall implements ExchangeHandler {
  readonly ticket: Ticket | undefined;
  readonly text: string;
  readonly #link: HttpCallLink;
  place = NOWHERE;
  #mode: Mode = "waiting";
  #exchange: HttpExchange | undefined;
  #status = 0;
  #headers: ResponseHeaders = {};
  readonly #body = new Pieces();
  /** Counts the bytes of a body that nobody wants. */
  #ignoredBytes = 0;
  #large: LargeBody | undefined;
  /** Counts what is held of an answer that has not come whole in one piece. */
  #holder: Holder | undefined;
  #parser: EventStreamParser | undefined;
  /** It is carried from stream to stream. */
  #lastEventId = "";
  #retryMs: number | undefined;
  #settled: boolean = false;
  /** The time since which the stream is open for nothing. */
  settledAtMs: number | undefined;
  #timer: NodeJS.Timeout | undefined;
  #resumes = 0;
  #resumeFailures = 0;
  #brokeAtMs = 0;
  readonly #inSession: boolean;
  /** True in the modern era: closing the exchange cancels the request, and a stream that breaks is lost. */
  readonly #modern: boolean;
  /** True while the server's message is being handed on: what is settled then is settled by it. */
  #delivering: boolean = false;

  constructor(link: HttpCallLink, text: string, ticket: Ticket | undefined, modernHeaders = ticket?.headers) {
    this.#link = link;
    this.text = text;
    this.ticket = ticket;
    const initialize = ticket?.method === "initialize";
    this.#inSession = link.inSession && !initialize;
    this.#modern = modernHeaders !== undefined;
    this.#exchange = link.requester.dispatch(
      {
        method: "POST",
        // A listening request holds its connection for good.
        pool: ticket === undefined || ticket.method === "subscriptions/listen" ? "asides" : "calls",
        path: link.destination.path,
        headers: link.postHeaders(ticket, modernHeaders),
        body: text,
      },
      this,
    );
    if (ticket === undefined) this.#timer = setTimeout(() => this.#late(), ASIDE_DEADLINE_MS);
  }

  get isLarge(): boolean {
    return this.#mode === "large";
  }

  /** The ticket is settled: what is held for it goes. */
  settle(): void {
    if (this.#settled || this.#mode === "finished") return;
    this.#settled = true;
    if (this.#mode === "large") return;
    if (this.#mode !== "events" || (this.#modern && !this.#delivering)) {
      this.abort();
      return;
    }
    this.settledAtMs = this.#link.settling();
  }

  abort(): void {
    if (this.#mode === "finished") return;
    this.#exchange?.abort();
    this.#large?.destroy(new Fault("closing", "The link was closed while the reply was being read."));
    this.#finish();
  }

  // ---- what the exchange says

  onCredential(state: "wanted" | "there", isAnother: boolean): void {
    if (this.#mode === "resuming") noteCredentialOf(this.ticket?.notes, state, isAnother);
    else noteCredential(this.ticket, state, isAnother);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    const type = mediaType(headers);
    if (this.#mode === "resuming") {
      this.#mode = status === 200 && type === "text/event-stream" ? "events" : "refused";
      if (this.#mode === "events") this.#readEvents();
      return;
    }
    if (status < 200 || status > 299) {
      this.#mode = "refused";
      return;
    }
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && this.ticket !== undefined && !IDENTITY.test(String(encoding))) {
      this.#compressed(String(encoding));
      return;
    }
    if (this.ticket?.method === "initialize") this.#link.onInitialized(headers);
    if (type === "text/event-stream") {
      this.#mode = "events";
      this.#readEvents();
      if (this.ticket === undefined) this.settle();
    } else if (type === "application/json" && status !== 202) {
      this.#mode = "json";
    } else {
      this.#mode = this.ticket === undefined ? "empty" : "refused";
    }
  }

  onData(chunk: Buffer): void {
    switch (this.#mode) {
      case "events":
        this.#parser?.push(chunk);
        break;
      case "large":
        this.#large?.feed(chunk);
        break;
      case "json":
        this.#body.push(chunk);
        if (this.#body.length > LARGE_REPLY_BYTES) this.#turnLarge(chunk);
        else if (!this.#isWhole && !this.#hold(this.#body.length)) this.#noRoom();
        break;
      case "refused":
        this.#body.push(chunk);
        if (this.#body.length > MAX_REFUSAL_BYTES) {
          this.#exchange?.abort();
          this.#refused();
        }
        break;
      default:
        this.#ignoredBytes += chunk.length;
        if (this.#ignoredBytes > MAX_REFUSAL_BYTES) this.abort();
    }
  }

  onEnd(): void {
    switch (this.#mode) {
      case "events":
        this.#streamEnded(undefined);
        break;
      case "large":
        this.#large?.finish(() => this.#cutOff());
        this.#finish();
        break;
      case "json":
        this.#replied();
        break;
      case "refused":
        this.#refused();
        break;
      default:
        this.#finish();
    }
  }

  onError(error: Error, written: boolean): void {
    const { fault, sent } = networkFault(error, written, this.#link.destination.shown);
    if (this.#mode === "large") {
      this.#large?.destroy(fault);
      this.#finish();
    } else if (this.#mode === "events") {
      this.#streamEnded(fault);
    } else if (this.#resumes > 0) {
      this.#resumeFailed(fault);
    } else {
      this.#fail(fault, sent);
    }
  }

  /** Most answers are, with their first piece. */
  get #isWhole(): boolean {
    return this.#body.length === lengthOf(this.#headers);
  }

  #hold(bytes: number): boolean {
    this.#holder ??= this.#link.newHolder();
    return this.#holder.hold(bytes);
  }

  #noRoom(): void {
    this.#exchange?.abort();
    this.#body.clear();
    const message = `The answer of ${this.#link.destination.shown} was thrown away: ${NO_ROOM}`;
    this.#fail(new Fault("limit", message, { wire: { left: true } }), true);
  }

  // ---- answers that are whole

  #replied(): void {
    const { ticket } = this;
    if (ticket !== undefined && this.#body.length >= PIECED_REPLY_BYTES) {
      this.#repliedInPieces(ticket, this.#body.takeList());
      return;
    }
    const bytes = withoutMark(joined(this.#body.takeList()));
    if (ticket !== undefined && !endsAsJson([bytes])) {
      this.#fail(this.#cutOff(), true);
      return;
    }
    if (ticket !== undefined) {
      // It is finished before it is told: settle() must find nothing left to abort.
      this.#finish();
      this.#link.onMessage(bytes, ticket);
      this.#wasAll(ticket);
      return;
    }
    // Some servers answer a notification with `{}` or `null`; what is a message may be of interest.
    const isMessage = parseRpc(bytes) !== undefined;
    this.#finish();
    if (isMessage) this.#link.onMessage(bytes, undefined);
  }

  #repliedInPieces(ticket: Ticket, pieces: Buffer[]): void {
    if (!endsAsJson(pieces)) {
      this.#fail(this.#cutOff(), true);
      return;
    }
    this.#finish();
    const [first] = pieces;
    if (first !== undefined) pieces[0] = withoutMark(first);
    this.#link.onPieces(pieces, ticket);
    this.#wasAll(ticket);
  }

  /** A body is all that comes of its POST: a call that still waits then has no reply in it, and would wait for its deadline. */
  #wasAll(ticket: Ticket): void {
    if (ticket.isOver !== false) return;
    const message = `${this.#link.destination.shown} answered, and not with the reply to this request: its id is another, or it has none.`;
    this.#link.onFailed(this, new Fault("protocol", message), true);
  }

  #turnLarge(current: Buffer): void {
    const { ticket } = this;
    const exchange = this.#exchange;
    if (ticket === undefined || exchange === undefined) {
      this.abort();
      return;
    }
    const whole = joined(this.#body.takeList(), current);
    const seen = withoutMark(whole);
    this.#holder?.release();
    this.#mode = "large";
    const body = new LargeBody(exchange, seen);
    if (body.destroyed) {
      this.#fail(body.errored as Fault, true);
      return;
    }
    this.#large = body;
    const length = lengthOf(this.#headers);
    this.#link.onLargeReply(ticket, body.head, body, length && length - (whole.length - seen.length));
  }

  #refused(): void {
    const refusal: HttpRefusal = {
      status: this.#status,
      headers: this.#headers,
      body: withoutMark(this.#body.take()),
      id: this.ticket?.id,
      inSession: this.#inSession,
      modern: this.#modern,
      isDiscover: this.ticket?.method === "server/discover",
      url: this.#link.destination.shown,
      redactor: this.#link.destination.redactor,
      credentials: this.#link.destination.credentials,
    };
    const verdict = judge(refusal);
    if (this.#resumes > 0) {
      if (verdict.kind === "session-gone") this.#endSession(verdict.fault, true);
      else if (verdict.kind === "failed" && (this.#status >= 500 || this.#status === 429))
        this.#resumeFailed(verdict.fault);
      else this.#fail(this.#lost(`It cannot be resumed (HTTP ${this.#status}).`), true);
      return;
    }
    switch (verdict.kind) {
      case "message":
        this.#finish();
        this.#link.onMessage(refusal.body, this.ticket);
        break;
      case "session-gone":
        this.#endSession(verdict.fault, false);
        break;
      case "failed":
        this.#fail(verdict.fault, verdict.sent, refusal);
        break;
    }
  }

  // ---- streams

  #readEvents(): void {
    this.#holder ??= this.#link.newHolder();
    this.#parser = new EventStreamParser({
      holder: this.#holder,
      onEvent: (event) => this.#gotEvent(event),
      onLongEvent: (event) => this.#gotLongEvent(event),
      onError: (fault) => {
        this.#exchange?.abort();
        // What is too large is an answer, or a part of one.
        this.#fail(new Fault(fault.code, fault.plain, { outcome: OUTCOME_UNKNOWN, wire: { left: true } }), true);
      },
    });
  }

  #gotEvent({ event, data }: StreamEvent): void {
    this.#resumeFailures = 0;
    if (data.length === 0 || (event !== undefined && event !== "message")) return;
    this.#delivering = true;
    this.#link.onMessage(data, this.ticket);
    this.#delivering = false;
  }

  #gotLongEvent({ event, pieces }: LongEvent): void {
    this.#resumeFailures = 0;
    if (event !== undefined && event !== "message") return;
    this.#delivering = true;
    this.#link.onPieces(pieces, this.ticket);
    this.#delivering = false;
  }

  #streamEnded(cause: Fault | undefined): void {
    const parser = this.#parser;
    this.#parser = undefined;
    this.#holder?.release();
    if (parser !== undefined) {
      if (parser.lastEventId !== "") this.#lastEventId = parser.lastEventId;
      this.#retryMs = parser.retryMs ?? this.#retryMs;
    }
    if (this.#settled || this.ticket === undefined) {
      this.#finish();
    } else if (this.#modern || !isResumable(this.#lastEventId)) {
      this.#fail(this.#lost(cause?.fact ?? "The stream ended."), true);
    } else {
      this.#resume(cause);
    }
  }

  #resumeFailed(fault: Fault): void {
    this.#resumeFailures++;
    this.#resume(fault);
  }

  #resume(cause: Fault | undefined): void {
    const nowMs = systemClock.now();
    if (this.#resumes === 0) this.#brokeAtMs = nowMs;
    const spent = this.#resumes >= MAX_RESUMES || nowMs - this.#brokeAtMs > MAX_RESUME_TIME_MS;
    if (spent || this.#resumeFailures >= MAX_RESUME_FAILURES) {
      this.#fail(this.#lost(cause?.fact ?? `It was resumed ${this.#resumes} times.`), true);
      return;
    }
    this.#resumes++;
    this.#mode = "resuming";
    this.#exchange = undefined;
    const baseMs = this.#retryMs ?? RESUME_DELAY_MS;
    const delayMs = backoffCeiling(this.#resumeFailures, { baseMs, maxMs: MAX_RESUME_DELAY_MS });
    this.#timer = setTimeout(() => {
      const headers = this.#link.getHeaders(this.#lastEventId);
      const { requester, destination } = this.#link;
      this.#exchange = requester.dispatch({ method: "GET", pool: "calls", path: destination.path, headers }, this);
    }, delayMs);
  }

  #lost(why: string): Fault {
    const { shown } = this.#link.destination;
    const message = `The stream of ${shown} ended before the reply. ${why}`;
    return new Fault("outcome-unknown", message, { outcome: OUTCOME_UNKNOWN });
  }

  // ---- ends

  #cutOff(): Fault {
    const message = `${this.#link.destination.shown} answered with a body that breaks off.`;
    return new Fault("outcome-unknown", message, { outcome: OUTCOME_UNKNOWN });
  }

  /** We ask for none, and splice what comes as it is. */
  #compressed(encoding: string): void {
    this.#exchange?.abort();
    const { shown } = this.#link.destination;
    const by = JSON.stringify(encoding.slice(0, MAX_ENCODING_CHARACTERS));
    const message = `${shown} answered with a body that is compressed by ${by}, though nobody asked for it: it cannot be read.`;
    const remedy = "Switch that off at the server, or at the proxy before it.";
    this.#fail(new Fault("outcome-unknown", message, { outcome: OUTCOME_UNKNOWN, remedy }), true);
  }

  #late(): void {
    this.#exchange?.abort();
    const message = `${this.#link.destination.shown} did not take a message within ${ASIDE_DEADLINE_MS} ms.`;
    this.#fail(new Fault("timeout", message), true);
  }

  #fail(fault: Fault, sent: boolean, refusal?: HttpRefusal): void {
    this.#finish();
    this.#link.onFailed(this, fault, sent, refusal);
  }

  #endSession(fault: Fault, sent: boolean): void {
    this.#finish();
    this.#link.onSessionGone(this, fault, sent);
  }

  #finish(): void {
    clearTimeout(this.#timer);
    this.#holder?.release();
    this.#mode = "finished";
    this.#link.onFinished(this);
  }
}

/**
 * What was copied into one is read by nobody else: a body has its reads for itself. But a read may hold several of its
 * chunks: of a body that goes on, the rest of the `current` one's is still to come, and nobody may read into it.
 */
function joined(pieces: readonly Buffer[], current?: Buffer): Buffer {
  const [only] = pieces;
  if (pieces.length === 1 && only !== undefined) return only;
  const whole = Buffer.concat(pieces);
  for (const piece of pieces) if (piece.buffer !== current?.buffer) giveBack(piece);
  return whole;
}

/** A byte order mark is not JSON, and a reader may ignore it (RFC 8259): agents, which may not, are sent none. */
function withoutMark(bytes: Buffer): Buffer {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

/** The length as the server tells it. */
function lengthOf(headers: ResponseHeaders): number | undefined {
  const value = headers["content-length"];
  return typeof value === "string" ? Number(value) : undefined;
}
