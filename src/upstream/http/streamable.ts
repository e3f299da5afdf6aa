// A link to a streamable HTTP server: its calls in flight, and in the legacy era its session and its GET stream.
// call.ts has one exchange, requester.ts HTTP itself, sse.ts the old HTTP+SSE.

import type { HttpTarget } from "../../contracts/server-spec.js";
import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { systemClock } from "../../runtime/clock.js";
import { IndexedSet, Table } from "../../runtime/containers/table.js";
import { type Holder, ownHolder } from "../../runtime/memory/held-bytes.js";
import { resultWithin } from "../../runtime/wait.js";
import { FairLine } from "../link/fair-line.js";
import type { LargeBody } from "../link/large-body.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { HttpCall, type HttpCallLink } from "./call.js";
import type { HttpRefusal } from "./faults.js";
import { GetStream, type GetStreamLink } from "./get-stream.js";
import { HttpDestination, isSessionId } from "./headers.js";
import { type DelayedMessage, InitializedBarrier } from "./initialized-barrier.js";
import { openPoolRequester } from "./pool-requester.js";
import {
  MAX_CALLS_IN_FLIGHT,
  type OpenRequester,
  OWN_CALLS_IN_FLIGHT,
  type Requester,
  type ResponseHeaders,
} from "./requester.js";

/**
 * When the session is gone, other calls in flight may for so long still be answered, or refused for the same reason
 * (and then be sent again), before they are lost with the link. It is a round trip or two.
 */
const SESSION_GONE_GRACE_MS = 1_000;
/**
 * So many messages may be in flight on one link, notifications included: above the connection's own bound for calls.
 */
const MAX_OPEN_CALLS = 20_000;
/**
 * A stream whose ticket is settled ends by itself in good servers, which keeps the socket; others are cut, after one to
 * two of these.
 */
const SETTLED_STREAM_MS = 1_000;
/** Ending the session is a courtesy; nobody waits longer for it. */
const DELETE_DEADLINE_MS = 1_000;

/** Is told of an initialize that was refused, before it is reported; true where somebody else takes it over. */
export type RefusedInitialize = (text: string, ticket: Ticket, fault: Fault, refusal: HttpRefusal) => boolean;

export class StreamableLink implements Link, HttpCallLink, GetStreamLink {
  readonly destination: HttpDestination;
  readonly newHolder: () => Holder;
  readonly #target: HttpTarget;
  readonly #events: LinkEvents;
  readonly #openRequester: OpenRequester;
  readonly #refusedInitialize: RefusedInitialize | undefined;
  #requester: Requester | undefined;
  #session: string | undefined;
  #version: string | undefined;
  #listen: GetStream | undefined;
  readonly #calls = new IndexedSet<HttpCall>();
  readonly #byTicket = new Table<number, HttpCall>();
  /** Set once the session is gone: what was refused or came later waits here, to be sent on another link. */
  #draining: { fault: Fault; unsent: Map<number, { ticket: Ticket; fault: Fault }>; timer: NodeJS.Timeout } | undefined;
  /** Calls of agents: each principal has its part of the places. */
  readonly #line = new FairLine<DelayedMessage>(MAX_CALLS_IN_FLIGHT - OWN_CALLS_IN_FLIGHT);
  readonly #barrier = new InitializedBarrier(
    () => this.#afterHandshake(),
    (delayed) => this.#sendDelayed(delayed),
  );
  #sweep: NodeJS.Timeout | undefined;
  #closed: boolean = false;
  /** The link has ended by itself: large replies that are being read may still end. */
  #dropped: boolean = false;

  /** Throws a Fault `invalid` where the target cannot be used at all. */
  constructor(
    target: HttpTarget,
    events: LinkEvents,
    openRequester: OpenRequester = openPoolRequester,
    refusedInitialize?: RefusedInitialize,
    newHolder: () => Holder = ownHolder,
  ) {
    this.destination = new HttpDestination(target);
    this.newHolder = newHolder;
    this.#target = target;
    this.#events = events;
    this.#openRequester = openRequester;
    this.#refusedInitialize = refusedInitialize;
  }

  async open(signal: AbortSignal): Promise<void> {
    const requester = await this.#openRequester(this.#target, this.destination.url, signal);
    this.#requester = requester;
    if (!this.#closed && !signal.aborted) return;
    await requester.destroy();
    throw new Fault("closing", "The link was closed while it was being opened.");
  }

  send(text: string, ticket: Ticket | undefined, headers?: readonly string[]): void {
    if (this.#closed) return;
    if (this.#draining !== undefined) {
      if (ticket !== undefined) this.#draining.unsent.set(ticket.id, { ticket, fault: this.#draining.fault });
      return;
    }
    if (this.#calls.size + this.#barrier.delayedCount + this.#line.waiting >= MAX_OPEN_CALLS) {
      const fault = new Fault("limit", `${this.destination.shown} has ${MAX_OPEN_CALLS} messages in flight.`);
      if (ticket === undefined) this.#events.onNoise(fault.forOperator);
      else this.#events.onFailed(ticket, fault, false);
      return;
    }
    if (this.#barrier.delays(text, ticket)) {
      if (ticket !== undefined) ticket.waitsFor = "handshake";
      return;
    }
    const principal = ticket?.principal;
    if (ticket === undefined || principal === undefined || this.#line.enter(principal)) {
      this.#dispatch(text, ticket, headers);
    } else {
      ticket.waitsFor = "place";
      ticket.notes?.enter("queued");
      this.#line.wait(principal, ticket.id, { text, ticket });
    }
  }

  #dispatch(text: string, ticket: Ticket | undefined, headers?: readonly string[]): void {
    if (ticket?.method === "initialize") {
      this.#session = undefined;
      this.#version = undefined;
    }
    const call = new HttpCall(this, text, ticket, headers);
    this.#calls.add(call);
    if (ticket !== undefined) this.#byTicket.set(ticket.id, call);
    this.#barrier.sent(call, ticket);
  }

  established(version: string): void {
    if (this.#closed || this.#draining !== undefined) return;
    this.#version = version;
    this.#listen?.stop();
    this.#barrier.arm();
  }

  forget(ticket: Ticket): void {
    if (ticket.waitsFor === "place" && ticket.principal !== undefined) this.#line.giveUp(ticket.principal, ticket.id);
    this.#byTicket.get(ticket.id)?.settle();
    this.#barrier.forget(ticket);
    this.#draining?.unsent.delete(ticket.id);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#draining?.timer);
    clearTimeout(this.#sweep);
    this.#barrier.clear();
    this.#listen?.stop();
    for (const call of this.#calls.all()) call.abort();
    const requester = this.#requester;
    if (requester === undefined) return;
    if (this.#draining === undefined && this.#session !== undefined) await this.#endSession(requester, this.#session);
    await requester.destroy();
  }

  describe(): LinkDescription {
    return { kind: "http", url: this.destination.shown };
  }

  // ---- what calls and the GET stream need

  get requester(): Requester {
    if (this.#requester === undefined) throw new Error("send() before open()");
    return this.#requester;
  }

  get inSession(): boolean {
    return this.#session !== undefined;
  }

  postHeaders(ticket: Ticket | undefined, headers: readonly string[] | undefined): string[] {
    if (headers !== undefined) return this.destination.posting(undefined, undefined).concat(headers);
    return ticket?.method === "initialize"
      ? this.destination.posting(undefined, undefined)
      : this.destination.posting(this.#session, this.#version);
  }

  getHeaders(lastEventId: string): string[] {
    return this.destination.listening(this.#session, this.#version, lastEventId);
  }

  onInitialized(headers: ResponseHeaders): void {
    const session = headers["mcp-session-id"];
    if (isSessionId(session)) this.#session = session;
    else if (session !== undefined) this.onNoise("The server's session id is not one line of ASCII; it is not used.");
  }

  onMessage(bytes: Buffer, ticket: Ticket | undefined): void {
    if (!this.#closed) this.#events.onMessage(bytes, ticket);
  }

  onPieces(pieces: Buffer[], ticket: Ticket | undefined): void {
    if (!this.#closed) this.#events.onPieces(pieces, ticket);
  }

  onLargeReply(ticket: Ticket, head: Buffer, body: LargeBody, length: number | undefined): void {
    // From now on it belongs to its reader, who destroys it to abandon it; the ticket is answered.
    this.#byTicket.delete(ticket.id);
    if (this.#closed) body.destroy();
    else this.#events.onLargeReply(ticket, head, body, length);
    this.#dropIfDrained();
  }

  onNoise(sample: string): void {
    if (!this.#closed) this.#events.onNoise(sample);
  }

  onFailed(call: HttpCall, fault: Fault, sent: boolean, refusal?: HttpRefusal): void {
    if (this.#closed) return;
    const { ticket, text } = call;
    if (ticket === undefined) {
      this.#events.onNoise(fault.forOperator);
    } else if (this.#draining !== undefined && !sent) {
      this.#draining.unsent.set(ticket.id, { ticket, fault });
    } else if (
      ticket.method !== "initialize" ||
      refusal === undefined ||
      !this.#takenOver(text, ticket, fault, refusal)
    ) {
      this.#events.onFailed(ticket, fault, sent);
    }
    this.#dropIfDrained();
  }

  onFinished(call: HttpCall): void {
    this.#calls.delete(call);
    this.#barrier.finished(call);
    if (call.ticket?.principal !== undefined) this.#left(call.ticket.principal);
    if (call.ticket !== undefined && this.#byTicket.get(call.ticket.id) === call) this.#byTicket.delete(call.ticket.id);
    if (this.#draining === undefined) return;
    if (this.#dropped && this.#calls.size === 0) void this.#requester?.destroy();
    // It is dropped a little later, after the call has said how it ended.
    else queueMicrotask(() => this.#dropIfDrained());
  }

  /** A place is free: it goes to who waits for one. */
  #left(principal: string): void {
    this.#line.leave(principal);
    if (this.#line.waiting === 0 || this.#closed || this.#draining !== undefined) return;
    for (let next = this.#line.next(); next !== undefined; next = this.#line.next()) {
      if (next.ticket !== undefined) {
        next.ticket.waitsFor = undefined;
        next.ticket.notes?.enter("server");
      }
      this.#dispatch(next.text, next.ticket);
    }
  }

  settling(): number {
    this.#sweep ??= setTimeout(() => this.#cutSettled(), SETTLED_STREAM_MS);
    return systemClock.now();
  }

  /** One timer for all: most streams have ended by themselves when it fires. */
  #cutSettled(): void {
    this.#sweep = undefined;
    const nowMs = systemClock.now();
    for (const call of this.#calls.all()) {
      if (call.settledAtMs === undefined) continue;
      if (nowMs - call.settledAtMs >= SETTLED_STREAM_MS) call.abort();
      else this.settling();
    }
  }

  onSessionGone(call: HttpCall, fault: Fault, sent: boolean): void {
    if (this.#closed) return;
    this.#drain(fault);
    const { ticket } = call;
    if (ticket !== undefined && sent) {
      const unknown = new Fault("outcome-unknown", fault.message, { outcome: OUTCOME_UNKNOWN });
      this.#events.onFailed(ticket, unknown, true);
    } else if (ticket !== undefined) {
      this.#draining?.unsent.set(ticket.id, { ticket, fault });
    }
    this.#dropIfDrained();
  }

  get isHeard(): boolean {
    return this.#listen?.isRefused !== true;
  }

  get gaps(): number {
    return this.#listen?.gaps ?? 0;
  }

  onListenSessionGone(status: number): void {
    if (this.#closed) return;
    const message = `${this.destination.shown} has forgotten our session (HTTP ${status}); it was probably restarted.`;
    this.#drain(new Fault("unavailable", message, { reason: "session-gone" }));
    this.#dropIfDrained();
  }

  onListenAnswered(): boolean {
    return this.#barrier.listening();
  }

  #afterHandshake(): void {
    if (!this.#closed && this.#draining === undefined) this.#listen = new GetStream(this);
  }

  #sendDelayed(delayed: readonly DelayedMessage[]): void {
    if (this.#closed) return;
    for (const { text, ticket } of delayed) {
      if (ticket !== undefined) ticket.waitsFor = undefined;
      this.send(text, ticket);
    }
  }

  // ---- ends

  #takenOver(text: string, ticket: Ticket, fault: Fault, refusal: HttpRefusal): boolean {
    return this.#refusedInitialize?.(text, ticket, fault, refusal) === true;
  }

  #drain(fault: Fault): void {
    if (this.#draining !== undefined) return;
    const timer = setTimeout(() => this.#drop(), SESSION_GONE_GRACE_MS);
    this.#draining = { fault, unsent: new Map(), timer };
    for (const { ticket } of this.#line.giveUpAll()) {
      if (ticket !== undefined) this.#draining.unsent.set(ticket.id, { ticket, fault });
    }
    this.#listen?.stop();
  }

  /** The link is gone when nothing is in flight that may yet be answered. */
  #dropIfDrained(): void {
    if (this.#draining !== undefined && this.#byTicket.size === 0) this.#drop();
  }

  #drop(): void {
    const draining = this.#draining;
    if (draining === undefined || this.#closed) return;
    clearTimeout(draining.timer);
    for (const { ticket } of this.#barrier.clear()) {
      if (ticket !== undefined) this.#events.onFailed(ticket, draining.fault, false);
    }
    for (const { ticket, fault } of [...draining.unsent.values()]) this.#events.onFailed(ticket, fault, false);
    this.#closed = true;
    this.#dropped = true;
    for (const call of this.#calls.all()) if (!call.isLarge) call.abort();
    if (this.#calls.size === 0) void this.#requester?.destroy();
    this.#events.onClosed(draining.fault);
  }

  async #endSession(requester: Requester, session: string): Promise<void> {
    const headers = this.destination.ending(session, this.#version);
    const answered = new Promise<void>((resolve) => {
      requester.dispatch(
        { method: "DELETE", pool: "asides", path: this.destination.path, headers },
        { onHead: () => resolve(), onData: () => {}, onEnd: () => resolve(), onError: () => resolve() },
      );
    });
    await resultWithin(answered, DELETE_DEADLINE_MS);
  }
}
