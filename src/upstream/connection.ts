// One live connection to one server: the handshake, ids of ours, replies to their calls, and whose a server's
// own message is. It does not start again (supervised.ts), and does not know how bytes travel (link.ts).

import type { Readable } from "node:stream";
import type { Caller } from "../caller.js";
import { type Anchor, findAnchor, largeReply } from "../protocol/anchor.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import type { JsonObject, RpcId } from "../protocol/jsonrpc.js";
import {
  locate,
  type Message,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
} from "../protocol/message.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import { scanElements } from "../protocol/scan.js";
import type { ListKind, ServerIntro, ServerSpec, UpstreamCall } from "../upstream.js";
import { identityOf } from "./era.js";
import { type MeetingPlace, meet } from "./era-meeting.js";
import { Flight } from "./flight.js";
import type { HandshakeOffer } from "./handshake.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "./link.js";
import { type ModernParts, ModernSide, partsOfNobody } from "./modern-side.js";
import { withoutSender } from "./plain-meta.js";
import { Questions } from "./questions.js";

/** Calls in flight on one connection. Far above what agents do; a bound so that a hung server cannot eat memory. */
const MAX_IN_FLIGHT = 10_000;

/** Messages that a server sends as one. Only 2025-03-26 has batches, and there they hold a handful. */
const MAX_BATCH = 1_000;

/** What is shown of a message that cannot be read. */
const NOISE_SAMPLE_CHARS = 200;

/** Up to here a reply is parsed before it is passed on: it costs next to nothing, and broken JSON is noticed. */
const CHECKED_REPLY_BYTES = 4096;

/**
 * A call that was taken back or timed out may still make the server ask something, and on a pipe nothing tells that
 * it is about that call. For so long, nobody else is asked in its place.
 */
const ABANDONED_MS = 30_000;
/** Such calls that are remembered; the oldest are forgotten first. */
const MAX_ABANDONED = 1_000;

export interface ConnectionEvents {
  /** A notification that is not progress: `flight` is the call it belongs to, where that can be told. */
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  /** The call never reached the server; the connection may be gone as well. */
  onUnsent(call: UpstreamCall, fault: Fault): void;
  /** The connection ended by itself. Calls in flight have been answered. */
  onClosed(fault: Fault): void;
}

export interface ConnectionOptions {
  readonly spec: ServerSpec;
  /** The one agent of a connection that is not shared. */
  readonly owner: Caller | undefined;
  readonly offer: HandshakeOffer;
  readonly now: () => number;
  /** Where what came and was of no use is counted: broken lines, replies nobody waits for. Outlives the connection. */
  readonly noise: Noise;
  readonly makeLink: (events: LinkEvents) => Link;
  readonly modern?: ModernParts | undefined;
}

export interface Noise {
  count: number;
  sample: string | undefined;
}

export class Connection implements LinkEvents {
  readonly #spec: ServerSpec;
  readonly #owner: Caller | undefined;
  readonly #offer: HandshakeOffer;
  readonly #now: () => number;
  readonly #events: ConnectionEvents;
  readonly #makeLink: (events: LinkEvents) => Link;
  readonly #parts: ModernParts;
  #link: Link;
  /** Set while the server may be a modern one, and for good once it is. */
  #modern: ModernSide | undefined;
  /** Until the server is known, the end of a link is not the end of the connection: it may be of the probe's doing. */
  #meeting: boolean = false;
  #gone: Fault | undefined;
  readonly #flights = new Map<number, Flight>();
  readonly #byCall = new Map<UpstreamCall, Flight>();
  /** By id, oldest first. */
  readonly #abandoned = new Map<number, { readonly sessionKey: string; readonly untilMs: number }>();
  readonly #questions = new Questions((text) => this.notify(text));
  #nextId = 1;
  #closed = false;
  readonly #noise: Noise;

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#spec = options.spec;
    this.#owner = options.owner;
    this.#offer = options.offer;
    this.#now = options.now;
    this.#noise = options.noise;
    this.#events = events;
    this.#parts = options.modern ?? partsOfNobody();
    this.#makeLink = options.makeLink;
    this.#link = options.makeLink(this);
  }

  get closed(): boolean {
    return this.#closed;
  }

  get inFlight(): number {
    return this.#flights.size + (this.#modern?.extraInFlight ?? 0);
  }

  /** Whether the server tells of changes of its lists by itself. Legacy servers are taken at their word. */
  hears(kind: ListKind): boolean {
    return this.#modern?.hears(kind) ?? true;
  }

  describe(): LinkDescription {
    return this.#link.describe();
  }

  /** Connects and introduces itself. Rejects with a Fault; the connection is closed then. */
  async open(signal: AbortSignal): Promise<ServerIntro> {
    try {
      this.#meeting = true;
      await this.#link.open(signal);
      const intro = await this.#meet(signal);
      this.#meeting = false;
      if (this.#gone !== undefined) throw this.#gone;
      if (intro.era === "modern") {
        this.#modern?.start(intro);
        return intro;
      }
      this.#modern = undefined;
      this.#link.established(intro.version);
      this.notify('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      return intro;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  send(call: UpstreamCall): void {
    if (this.#closed) {
      const fault = new Fault("unavailable", `Server "${this.#spec.name}" is not connected.`);
      if (call.caller === undefined) call.reply(faultReply(fault));
      else this.#events.onUnsent(call, fault);
      return;
    }
    if (this.#flights.size >= MAX_IN_FLIGHT) {
      const message = `Server "${this.#spec.name}" has ${MAX_IN_FLIGHT} calls in flight; this one was not sent.`;
      call.reply(faultReply(new Fault("limit", message)));
      return;
    }
    if (this.#modern === undefined || !this.#modern.send(call)) this.#launch(call);
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    if (this.#modern === undefined || !this.#modern.cancel(call, reason)) this.#recall(call, reason);
  }

  /** A modern server is told nothing that it did not ask for. */
  notify(text: string): void {
    if (!this.#closed && this.#modern === undefined) this.#link.send(text, undefined);
  }

  /** Fails the calls whose time is over. The connection stays: a timeout is that call's alone. */
  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#abandoned) {
      if (untilMs > nowMs) break;
      this.#abandoned.delete(id);
    }
    for (const flight of this.#flights.values()) {
      const { caller } = flight.call;
      // The server waits for the agent, and a person may think for minutes; the question has a deadline of its own.
      if (caller !== undefined && this.#questions.isAsking(caller.sessionKey)) {
        flight.deadlineMs = nowMs + flight.timeoutMs;
      }
      if (flight.deadlineMs > nowMs) continue;
      const { method, subject, timeoutMs } = flight;
      const what = subject === undefined ? method : `${method} ${subject}`;
      const message = `Server "${this.#spec.name}" did not answer ${what} within ${timeoutMs} ms. It may still be working on it.`;
      this.#abandon(flight, "timeout", new Fault("timeout", message));
    }
  }

  /** Progress of an agent on a question that this server asked. */
  agentProgress(sessionKey: string, message: NotificationMessage): boolean {
    return this.#questions.progress(sessionKey, message);
  }

  async close(): Promise<void> {
    if (!this.#closed) this.#end(new Fault("unavailable", `Server "${this.#spec.name}" was stopped.`));
    await this.#link.close();
  }

  // ---- what the link says

  onMessage(bytes: Buffer, ticket: Ticket | undefined): void {
    const anchor = findAnchor(bytes);
    if (anchor !== undefined) {
      this.#reply(bytes, anchor);
      return;
    }
    const text = bytes.toString();
    if (!/^\s*\[/.test(text)) {
      this.#receive(text, ticket);
      return;
    }
    for (const { start, end } of scanElements(text, 0, MAX_BATCH)) this.#receive(text.slice(start, end), ticket);
  }

  onLargeReply(ticket: Ticket, head: Buffer, rest: Readable): void {
    const flight = this.#flights.get(ticket.id);
    const reply = largeReply(head, rest);
    if (flight === undefined || reply === undefined) {
      rest.destroy();
      if (flight !== undefined) this.#fail(flight, this.#brokenAnswer());
      return;
    }
    this.#settle(flight);
    flight.call.reply(this.#modern === undefined ? reply : { ...reply, era: "modern" });
  }

  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void {
    const flight = this.#flights.get(ticket.id);
    if (flight === undefined) return;
    this.#modern?.refused(fault);
    // What the gateway itself asks is tried again by whoever asked.
    if (sent || flight.call.caller === undefined) {
      this.#fail(flight, fault);
      return;
    }
    this.#settle(flight);
    const call = this.#modern === undefined ? flight.call : this.#modern.released(flight.call, fault);
    if (call !== undefined) this.#events.onUnsent(call, fault);
  }

  onClosed(fault: Fault): void {
    if (this.#closed) return;
    if (this.#meeting) {
      this.#gone = fault;
      for (const flight of [...this.#flights.values()]) this.#fail(flight, fault);
      return;
    }
    this.#end(fault);
    this.#events.onClosed(fault);
  }

  onNoise(sample: string): void {
    this.#noise.count++;
    this.#noise.sample = sample;
  }

  // ---- inside

  #launch(call: UpstreamCall): void {
    if (this.#closed || this.#gone !== undefined) {
      call.reply(faultReply(this.#gone ?? new Fault("unavailable", `Server "${this.#spec.name}" is not connected.`)));
      return;
    }
    const flight = new Flight(this.#nextId++, call, this.#timeoutOf(call), this.#now());
    let text = call.render(flight.id);
    if (this.#modern !== undefined && call.method !== "initialize") {
      const dressed = this.#modern.dress(call, text);
      flight.headers = dressed.headers;
      text = dressed.text;
    } else if (call.caller?.era === "modern") text = withoutSender(text);
    this.#flights.set(flight.id, flight);
    this.#byCall.set(call, flight);
    this.#link.send(text, flight);
  }

  #timeoutOf(call: UpstreamCall): number {
    if (call.method === "subscriptions/listen") return Number.POSITIVE_INFINITY;
    return call.caller === undefined ? this.#spec.connectTimeoutMs : this.#spec.callTimeoutMs;
  }

  #recall(call: UpstreamCall, reason: string | undefined): void {
    const flight = this.#byCall.get(call);
    if (flight === undefined) return;
    this.#abandon(flight, reason, new Fault("cancelled", reason ?? "Cancelled."));
  }

  #reply(bytes: Buffer, anchor: Anchor): void {
    const flight = this.#flights.get(anchor.id);
    if (flight === undefined) {
      this.#unawaited(anchor.id);
      return;
    }
    if (bytes.length <= CHECKED_REPLY_BYTES && !isJson(bytes)) {
      this.#fail(flight, this.#brokenAnswer());
      return;
    }
    this.#settle(flight);
    this.#deliver(flight, bytes, anchor);
  }

  #deliver(flight: Flight, bytes: Buffer, { idStart, idEnd }: { idStart: number; idEnd: number }): void {
    if (this.#modern === undefined) {
      flight.call.reply({ kind: "bytes", bytes, idStart, idEnd });
      return;
    }
    const reply: Reply = { kind: "bytes", era: "modern", bytes, idStart, idEnd };
    if (!this.#modern.intercepts(flight.call, reply)) flight.call.reply(reply);
  }

  #meet(signal: AbortSignal): Promise<ServerIntro> {
    const { kind } = this.#link.describe();
    const offer = this.#offer;
    if (kind !== "sse") {
      this.#modern = new ModernSide(this.#parts, kind === "http", offer.clientInfo, {
        now: this.#now,
        launch: (call) => this.#launch(call),
        recall: (call, reason) => this.#recall(call, reason),
        onNotification: (message) => this.#events.onNotification(message, undefined),
        onOtherEra: () => this.#otherEra(),
      });
    }
    const place: MeetingPlace = {
      kind,
      spec: this.#spec,
      eras: this.#parts.eras,
      offer,
      send: (call) => this.#launch(call),
      cancel: (call, reason) => this.#recall(call, reason),
      gone: () => this.#gone,
      relink: (again) => this.#relink(again),
    };
    return meet(place, signal);
  }

  #otherEra(): void {
    this.#parts.eras.put(this.#spec.name, identityOf(this.#spec.target), undefined);
    this.onClosed(new Fault("unavailable", `Server "${this.#spec.name}" was replaced by one of another protocol era.`));
  }

  /** Another link, before the server is known. */
  async #relink(signal: AbortSignal): Promise<void> {
    const old = this.#link;
    this.#gone ??= new Fault("unavailable", "It is started again.");
    for (const flight of [...this.#flights.values()]) this.#fail(flight, this.#gone);
    await old.close();
    signal.throwIfAborted();
    this.#link = this.#makeLink(this);
    this.#gone = undefined;
    await this.#link.open(signal);
  }

  #receive(text: string, ticket: Ticket | undefined): void {
    try {
      const message: Message = parseMessage(text);
      if (message.kind === "response") this.#oddReply(message, ticket);
      else if (message.kind === "notification") this.#notified(message, ticket);
      else this.#asked(message, ticket);
    } catch {
      this.#unreadable(text, ticket);
    }
  }

  /** A reply whose id stands where the anchors do not look, or is written as a string. */
  #oddReply(message: ResponseMessage, ticket: Ticket | undefined): void {
    const id = message.id === null ? ticket?.id : Number(message.id);
    const flight = id === undefined ? undefined : this.#flights.get(id);
    const at = locate(message, ["id"]);
    if (flight === undefined || at === undefined) {
      this.#unawaited(message.id);
      return;
    }
    this.#settle(flight);
    const idStart = Buffer.byteLength(message.text.slice(0, at.start));
    const idEnd = idStart + Buffer.byteLength(message.text.slice(at.start, at.end));
    this.#deliver(flight, Buffer.from(message.text), { idStart, idEnd });
    if (message.id === null) this.#modern?.doubt();
  }

  #notified(message: NotificationMessage, ticket: Ticket | undefined): void {
    const { method, params } = message;
    if (method === "notifications/progress") {
      const token = params?.["progressToken"];
      const flight = this.#flights.get(typeof token === "string" ? Number(token) : (token as number));
      if (flight === undefined) return;
      const { progressToken, caller } = flight.call;
      if (progressToken === undefined || caller === undefined) return;
      flight.deadlineMs = this.#now() + flight.timeoutMs;
      caller.notify(rewrite(message, [{ path: ["params", "progressToken"], json: JSON.stringify(progressToken) }]));
    } else if (this.#modern !== undefined) {
      const passed = this.#modern.notified(message);
      // What came by listening is nobody's call.
      if (passed !== undefined)
        this.#events.onNotification(passed, passed === message ? this.#callerOf(ticket) : undefined);
    } else if (method === "notifications/cancelled") {
      this.#questions.cancel(params?.["requestId"]);
    } else {
      this.#events.onNotification(message, this.#callerOf(ticket));
    }
  }

  #asked(request: RequestMessage, ticket: Ticket | undefined): void {
    if (this.#modern !== undefined) {
      // In the modern era servers send no requests, and there is no way to answer one.
      this.onNoise(`request ${request.method} of a modern server`);
      return;
    }
    if (request.method === "ping") {
      const at = locate(request, ["id"]);
      const id = at === undefined ? "null" : request.text.slice(at.start, at.end);
      this.notify(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
      return;
    }
    const caller = this.#callerOf(ticket);
    if (caller !== undefined) {
      this.#questions.ask(request, caller);
      return;
    }
    const why = `Toolway cannot tell which agent ${request.method} is for: it came outside any call, or while several agents were calling.`;
    const hint = `Set "isolation": "session" for server "${this.#spec.name}" to give each agent a connection of its own.`;
    this.#questions.refuse(request, toRpcError(new Fault("no-caller", `${why} ${hint}`)));
  }

  /**
   * Whose call caused a message: its exchange tells, and then nobody else's will do, even if that call has ended; else
   * that one session alone is calling.
   */
  #callerOf(ticket: Ticket | undefined): Caller | undefined {
    if (ticket !== undefined) return this.#flights.get(ticket.id)?.call.caller ?? this.#owner;
    let found: Caller | undefined;
    for (const { call } of this.#flights.values()) {
      if (call.caller === undefined) continue;
      if (found !== undefined && found.sessionKey !== call.caller.sessionKey) return this.#owner;
      found = call.caller;
    }
    for (const { sessionKey } of this.#abandoned.values()) if (found?.sessionKey !== sessionKey) return this.#owner;
    return found ?? this.#owner;
  }

  /** A late reply, or one to nothing that we asked. */
  #unawaited(id: RpcId | null): void {
    this.#abandoned.delete(Number(id));
    this.onNoise(`reply to unknown id ${JSON.stringify(id)}`);
  }

  #unreadable(text: string, ticket: Ticket | undefined): void {
    this.onNoise(text.slice(0, NOISE_SAMPLE_CHARS));
    const flight = ticket === undefined ? undefined : this.#flights.get(ticket.id);
    if (flight !== undefined) this.#fail(flight, this.#brokenAnswer());
  }

  #brokenAnswer(): Fault {
    return new Fault("protocol", `Server "${this.#spec.name}" answered with something that is not a JSON-RPC message.`);
  }

  #abandon(flight: Flight, reason: string | undefined, fault: Fault): void {
    this.#tellCancelled(flight, reason);
    const { caller } = flight.call;
    if (caller !== undefined && this.#owner === undefined) {
      this.#abandoned.set(flight.id, { sessionKey: caller.sessionKey, untilMs: this.#now() + ABANDONED_MS });
      const oldest = this.#abandoned.size > MAX_ABANDONED ? this.#abandoned.keys().next().value : undefined;
      if (oldest !== undefined) this.#abandoned.delete(oldest);
    }
    this.#fail(flight, fault);
  }

  #tellCancelled(flight: Flight, reason: string | undefined): void {
    const params: JsonObject = { requestId: flight.id, ...(reason === undefined ? {} : { reason }) };
    // The handshake cannot be taken back, says the protocol. Over HTTP a modern request is, by closing its exchange.
    if (flight.method === "initialize" || flight.method === "server/discover" || flight.headers !== undefined) return;
    if (this.#closed) return;
    const text = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#link.send(text, undefined);
  }

  #fail(flight: Flight, fault: Fault): void {
    this.#settle(flight);
    flight.call.reply(faultReply(fault));
  }

  #settle(flight: Flight): void {
    this.#flights.delete(flight.id);
    this.#byCall.delete(flight.call);
    this.#link.forget(flight);
  }

  #end(fault: Fault): void {
    this.#closed = true;
    this.#modern?.stop();
    this.#questions.abortAll();
    const name = this.#spec.name;
    for (const flight of [...this.#flights.values()]) {
      if (flight.call.caller === undefined) {
        this.#fail(flight, fault);
        continue;
      }
      const what = flight.subject ?? flight.method;
      const message = `Server "${name}" went away before it answered ${what} (${fault.message}). Whether the call took effect is unknown.`;
      this.#fail(flight, new Fault("outcome-unknown", message, { cause: fault }));
    }
    const message = `Server "${name}" went away in the middle of the call (${fault.message}). Whether it took effect is unknown.`;
    this.#modern?.end(new Fault("outcome-unknown", message, { cause: fault }));
  }
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
}
