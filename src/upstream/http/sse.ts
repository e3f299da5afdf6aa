// A link to a server of the old HTTP+SSE (2024-11-05): one stream brings everything, POSTs to an address that the
// stream names carry everything out. There is no resuming: the stream is the session.

import type { HttpTarget } from "../../contracts/server-spec.js";
import { Fault, type FaultReason } from "../../protocol/errors.js";
import { EventStreamParser, Pieces, type StreamEvent } from "../../protocol/event-stream.js";
import { IndexedSet, NOWHERE, Table } from "../../runtime/containers/table.js";
import { type Holder, ownHolder } from "../../runtime/memory/held-bytes.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import { secretsOf } from "../../runtime/redact/secrets-of.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { judge, networkFault } from "./faults.js";
import { HttpDestination, mediaType } from "./headers.js";
import { InitializedBarrier } from "./initialized-barrier.js";
import { openPoolRequester } from "./pool-requester.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  noteCredential,
  type OpenRequester,
  type Requester,
  type ResponseHeaders,
} from "./requester.js";

/** The address comes first on the stream; a server that has not named it by then is not of this kind. */
const ENDPOINT_DEADLINE_MS = 20_000;
/** What is read of the body of a GET that opened no stream: enough to say what it was. */
const MAX_REFUSAL_BYTES = 4 * 1024;
/** What is read of a POST's error before it is judged. What comes with a 202 is not read at all. */
const MAX_POST_REFUSAL_BYTES = 64 * 1024;
/** A working server takes a message at once, whatever it then does about it. */
const TAKEN_DEADLINE_MS = 30_000;
/** So many POSTs may be in flight: above the connection's own bound for calls. */
const MAX_OPEN_POSTS = 20_000;

interface Opening {
  resolve(): void;
  reject(fault: Fault): void;
}

export class SseLink implements Link, ExchangeHandler {
  readonly destination: HttpDestination;
  readonly #target: HttpTarget;
  readonly #events: LinkEvents;
  readonly #openRequester: OpenRequester;
  #requester: Requester | undefined;
  #stream: HttpExchange | undefined;
  #parser: EventStreamParser | undefined;
  readonly #holder: Holder;
  #opening: Opening | undefined;
  /** Where to POST: a path of the same origin. */
  #endpoint: string | undefined;
  #status = 0;
  #headers: ResponseHeaders = {};
  readonly #body = new Pieces();
  readonly #posts = new IndexedSet<SsePost>();
  readonly #byTicket = new Table<number, SsePost>();
  readonly #barrier: InitializedBarrier = new InitializedBarrier(
    // Here the GET stream came first.
    () => this.#barrier.listening(),
    (delayed) => {
      for (const { text, ticket } of delayed) this.send(text, ticket);
    },
  );
  #closed: boolean = false;

  /** Throws a Fault `invalid` where the target cannot be used at all. */
  constructor(
    target: HttpTarget,
    events: LinkEvents,
    openRequester: OpenRequester = openPoolRequester,
    newHolder: () => Holder = ownHolder,
  ) {
    this.destination = new HttpDestination(target);
    this.#holder = newHolder();
    this.#target = target;
    this.#events = events;
    this.#openRequester = openRequester;
  }

  async open(signal: AbortSignal): Promise<void> {
    const requester = await this.#openRequester(this.#target, this.destination.url, signal);
    this.#requester = requester;
    const closed = () => new Fault("closing", "The link was closed while it was being opened.");
    if (this.#closed || signal.aborted) {
      await this.close();
      await requester.destroy();
      throw closed();
    }
    const abandon = () => this.#opening?.reject(closed());
    const late = () => this.#opening?.reject(this.#neverNamed());
    const timer = setTimeout(late, ENDPOINT_DEADLINE_MS);
    signal.addEventListener("abort", abandon, { once: true });
    try {
      await new Promise<void>((resolve, reject) => {
        this.#opening = { resolve, reject };
        const headers = this.destination.listening(undefined, undefined, "");
        this.#stream = requester.dispatch({ method: "GET", pool: "calls", path: this.destination.path, headers }, this);
      });
    } catch (fault) {
      await this.close();
      throw fault;
    } finally {
      this.#opening = undefined;
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
    }
  }

  send(text: string, ticket: Ticket | undefined): void {
    const requester = this.#requester;
    if (this.#closed || requester === undefined || this.#endpoint === undefined) return;
    if (this.#posts.size + this.#barrier.delayedCount >= MAX_OPEN_POSTS) {
      const fault = new Fault("limit", `${this.destination.shown} has ${MAX_OPEN_POSTS} messages in flight.`);
      this.onPostFailed(ticket, fault, false);
      return;
    }
    if (this.#barrier.delays(text, ticket)) return;
    const post = new SsePost(this, requester, this.#endpoint, text, ticket);
    this.#posts.add(post);
    if (ticket !== undefined) this.#byTicket.set(ticket.id, post);
    this.#barrier.sent(post, ticket);
  }

  established(): void {
    // The stream is there already, and this version has no header to send.
    if (!this.#closed) this.#barrier.arm();
  }

  forget(ticket: Ticket): void {
    this.#byTicket.get(ticket.id)?.settle();
    this.#barrier.forget(ticket);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#opening?.reject(new Fault("closing", "The link was closed while it was being opened."));
    this.#release();
    await this.#requester?.destroy();
  }

  describe(): LinkDescription {
    return { kind: "sse", url: this.destination.shown };
  }

  // ---- what the stream says

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
    if (status !== 200 || mediaType(headers) !== "text/event-stream") return;
    this.#parser = new EventStreamParser({
      holder: this.#holder,
      onEvent: (event) => this.#gotEvent(event),
      onError: (fault) => this.#lost(fault),
    });
  }

  onData(chunk: Buffer): void {
    if (this.#parser !== undefined) {
      this.#parser.push(chunk);
      return;
    }
    this.#body.push(chunk.subarray(0, MAX_REFUSAL_BYTES));
    if (this.#body.length < MAX_REFUSAL_BYTES) return;
    this.#stream?.abort();
    this.onEnd();
  }

  onEnd(): void {
    if (this.#parser !== undefined) {
      this.#lost(new Fault("outcome-unknown", `The stream of ${this.destination.shown} ended.`));
      return;
    }
    const { shown: url, redactor, credentials } = this.destination;
    const refusal = { status: this.#status, headers: this.#headers, body: this.#body.take(), url, redactor };
    const verdict = judge({ ...refusal, credentials, id: undefined, inSession: false });
    this.#lost(verdict.kind === "failed" ? this.#wrongKind(verdict.fault) : this.#neverNamed());
  }

  onError(error: Error, written: boolean): void {
    this.#lost(networkFault(error, written, this.destination.shown).fault);
  }

  #gotEvent({ event, data }: StreamEvent): void {
    if (this.#closed) return;
    if (event === "endpoint") this.#named(data.toString());
    else if (data.length > 0 && (event === undefined || event === "message")) this.#events.onMessage(data, undefined);
  }

  #named(address: string): void {
    let url: URL;
    try {
      url = new URL(address, this.destination.url);
    } catch {
      this.#lost(new Fault("protocol", `${this.destination.shown} names an address for messages that is no URL.`));
      return;
    }
    if (url.origin !== this.destination.url.origin) {
      // Our headers, credentials among them, would go there.
      const message = `${this.destination.shown} wants messages sent to another origin, ${safeUrl(url)}; that is refused.`;
      this.#lost(new Fault("protocol", message));
      return;
    }
    // It carries the session's id.
    this.destination.redactor = this.destination.redactor.with(secretsOf({ url: url.href }));
    this.#endpoint = url.pathname + url.search;
    this.#opening?.resolve();
  }

  #neverNamed(): Fault {
    const message = `${this.destination.shown} opened no stream of the old HTTP+SSE kind.`;
    return new Fault("protocol", message, this.#notOld);
  }

  /** What a server of the newer kind refuses a GET with is a status; what to do about it is in the entry. */
  #wrongKind(fault: Fault): Fault {
    if (fault.code !== "protocol" || this.#notOld === undefined) return fault;
    const { code, plain, fact, data } = fault;
    return new Fault(code, plain, { ...this.#notOld, data, forOperator: fact });
  }

  /** Undefined where both kinds are tried: then it is not the entry that is wrong. */
  get #notOld(): { readonly reason: FaultReason; readonly remedy: string } | undefined {
    if (this.#target.kind !== "sse") return undefined;
    const remedy = 'Remove "type": "sse" from its entry: then the newer kind is tried first, and the old one after it.';
    return { reason: "wrong-type", remedy };
  }

  // ---- what POSTs say

  onPostFailed(ticket: Ticket | undefined, fault: Fault, sent: boolean): void {
    if (this.#closed) return;
    if (ticket === undefined) this.#events.onNoise(fault.forOperator);
    else this.#events.onFailed(ticket, fault, sent);
  }

  onPostSessionGone(ticket: Ticket | undefined, fault: Fault): void {
    if (this.#closed) return;
    if (ticket !== undefined) this.#events.onFailed(ticket, fault, false);
    this.#lost(fault);
  }

  onPostFinished(post: SsePost): void {
    this.#posts.delete(post);
    this.#barrier.finished(post);
    const { ticket } = post;
    if (ticket !== undefined && this.#byTicket.get(ticket.id) === post) this.#byTicket.delete(ticket.id);
  }

  // ---- ends

  #lost(fault: Fault): void {
    if (this.#closed) return;
    if (this.#opening !== undefined) {
      this.#opening.reject(fault);
      return;
    }
    for (const { ticket } of this.#barrier.clear()) {
      if (ticket !== undefined) this.#events.onFailed(ticket, fault, false);
    }
    this.#closed = true;
    this.#release();
    void this.#requester?.destroy();
    this.#events.onClosed(fault);
  }

  #release(): void {
    this.#barrier.clear();
    this.#stream?.abort();
    for (const post of this.#posts.all()) post.abort();
  }
}

/** One message on its way out: only whether it was taken; the answer comes on the stream. */
class SsePost implements ExchangeHandler {
  readonly ticket: Ticket | undefined;
  readonly #link: SseLink;
  place = NOWHERE;
  readonly #exchange: HttpExchange;
  readonly #timer: NodeJS.Timeout;
  readonly #body = new Pieces();
  #status = 0;
  #headers: ResponseHeaders = {};
  #finished: boolean = false;
  #settled: boolean = false;

  constructor(link: SseLink, requester: Requester, path: string, text: string, ticket: Ticket | undefined) {
    this.#link = link;
    this.ticket = ticket;
    const headers = link.destination.posting(undefined, undefined);
    this.#exchange = requester.dispatch({ method: "POST", pool: "asides", path, headers, body: text }, this);
    this.#timer = setTimeout(() => this.#late(), TAKEN_DEADLINE_MS);
  }

  /**
   * The answer is there or unwanted. The POST may still end in peace, which keeps its socket: the answer on the
   * stream often overtakes the 202.
   */
  settle(): void {
    this.#settled = true;
  }

  abort(): void {
    this.#exchange.abort();
    this.#finish();
  }

  onCredential(state: "wanted" | "there", isAnother: boolean): void {
    noteCredential(this.ticket, state, isAnother);
  }

  onHead(status: number, headers: ResponseHeaders): void {
    this.#status = status;
    this.#headers = headers;
  }

  onData(chunk: Buffer): void {
    this.#body.push(chunk);
    if (this.#body.length <= MAX_POST_REFUSAL_BYTES) return;
    this.#exchange.abort();
    this.onEnd();
  }

  onEnd(): void {
    if (!this.#finish() || this.#settled) return;
    if (this.#status >= 200 && this.#status <= 299) return;
    const { shown: url, redactor, credentials } = this.#link.destination;
    const verdict = judge({
      credentials,
      status: this.#status,
      headers: this.#headers,
      body: this.#body.take(),
      id: undefined,
      inSession: true,
      url,
      redactor,
    });
    if (verdict.kind === "session-gone") this.#link.onPostSessionGone(this.ticket, verdict.fault);
    else if (verdict.kind === "failed") this.#link.onPostFailed(this.ticket, verdict.fault, verdict.sent);
  }

  onError(error: Error, written: boolean): void {
    if (!this.#finish() || this.#settled) return;
    const { fault, sent } = networkFault(error, written, this.#link.destination.shown);
    // It was taken, and that is all that a POST is for here; the answer may still come.
    if (this.#status >= 200 && this.#status <= 299) return;
    this.#link.onPostFailed(this.ticket, fault, sent);
  }

  #late(): void {
    this.#exchange.abort();
    if (!this.#finish() || this.#settled) return;
    const message = `${this.#link.destination.shown} did not take a message within ${TAKEN_DEADLINE_MS} ms.`;
    this.#link.onPostFailed(this.ticket, new Fault("timeout", message), true);
  }

  /** False where it was finished before. */
  #finish(): boolean {
    if (this.#finished) return false;
    this.#finished = true;
    clearTimeout(this.#timer);
    this.#link.onPostFinished(this);
    return true;
  }
}
