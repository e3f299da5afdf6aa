// One live connection to one server: the handshake, ids of ours, replies to their calls, and whose a server's
// own message is. It does not start again (supervised.ts), and does not know how bytes travel (link.ts).

import type { Readable } from "node:stream";
import type { Caller } from "../caller.js";
import { type Anchor, findAnchor, largeReply } from "../protocol/anchor.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import {
  locate,
  type Message,
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
} from "../protocol/message.js";
import { faultReply } from "../protocol/reply.js";
import { scanElements } from "../protocol/scan.js";
import type { ServerIntro, ServerSpec, UpstreamCall } from "../upstream.js";
import { Flight } from "./flight.js";
import { type HandshakeOffer, shakeHands } from "./handshake.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "./link.js";
import { Questions } from "./questions.js";

/** Calls in flight on one connection. Far above what agents do; a bound so that a hung server cannot eat memory. */
const MAX_IN_FLIGHT = 10_000;

/** Up to here a reply is parsed before it is passed on: it costs next to nothing, and broken JSON is noticed. */
const CHECKED_REPLY_BYTES = 4096;

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
  readonly #link: Link;
  readonly #flights = new Map<number, Flight>();
  readonly #byCall = new Map<UpstreamCall, Flight>();
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
    this.#link = options.makeLink(this);
  }

  get inFlight(): number {
    return this.#flights.size;
  }

  describe(): LinkDescription {
    return this.#link.describe();
  }

  /** Connects and introduces itself. Rejects with a Fault; the connection is closed then. */
  async open(signal: AbortSignal): Promise<ServerIntro> {
    try {
      await this.#link.open(signal);
      const intro = await shakeHands(this, this.#offer, signal);
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
    const timeoutMs = call.caller === undefined ? this.#spec.connectTimeoutMs : this.#spec.callTimeoutMs;
    const flight = new Flight(this.#nextId++, call, timeoutMs, this.#now());
    this.#flights.set(flight.id, flight);
    this.#byCall.set(call, flight);
    this.#link.send(call.render(flight.id), flight);
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    const flight = this.#byCall.get(call);
    if (flight === undefined) return;
    this.#tellCancelled(flight, reason);
    this.#fail(flight, new Fault("cancelled", reason ?? "Cancelled."));
  }

  notify(text: string): void {
    if (!this.#closed) this.#link.send(text, undefined);
  }

  /** Fails the calls whose time is over. The connection stays: a timeout is that call's alone. */
  expire(nowMs: number): void {
    for (const flight of this.#flights.values()) {
      if (flight.deadlineMs > nowMs) continue;
      const { method, subject, timeoutMs } = flight;
      const what = subject === undefined ? method : `${method} ${subject}`;
      const message = `Server "${this.#spec.name}" did not answer ${what} within ${timeoutMs} ms. It may still be working on it.`;
      this.#tellCancelled(flight, "timeout");
      this.#fail(flight, new Fault("timeout", message));
    }
  }

  /** Progress of an agent on a question that this server asked. */
  agentProgress(sessionKey: string, token: unknown, text: string): boolean {
    return this.#questions.progress(sessionKey, token, text);
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
    try {
      if (/^\s*\[/.test(text)) {
        for (const { start, end } of scanElements(text, 0)) this.#receive(text.slice(start, end), ticket);
      } else {
        this.#receive(text, ticket);
      }
    } catch {
      this.#unreadable(bytes, ticket);
    }
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
    flight.call.reply(reply);
  }

  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void {
    const flight = this.#flights.get(ticket.id);
    if (flight === undefined) return;
    // What the gateway itself asks is tried again by whoever asked.
    if (sent || flight.call.caller === undefined) {
      this.#fail(flight, fault);
      return;
    }
    this.#settle(flight);
    this.#events.onUnsent(flight.call, fault);
  }

  onClosed(fault: Fault): void {
    if (this.#closed) return;
    this.#end(fault);
    this.#events.onClosed(fault);
  }

  onNoise(sample: string): void {
    this.#noise.count++;
    this.#noise.sample = sample;
  }

  // ---- inside

  #reply(bytes: Buffer, anchor: Anchor): void {
    const flight = this.#flights.get(anchor.id);
    if (flight === undefined) {
      this.onNoise(`reply to unknown id ${anchor.id}`);
      return;
    }
    if (bytes.length <= CHECKED_REPLY_BYTES && !isJson(bytes)) {
      this.#fail(flight, this.#brokenAnswer());
      return;
    }
    this.#settle(flight);
    flight.call.reply({ kind: "bytes", bytes, idStart: anchor.idStart, idEnd: anchor.idEnd });
  }

  #receive(text: string, ticket: Ticket | undefined): void {
    const message: Message = parseMessage(text);
    if (message.kind === "response") this.#oddReply(message, ticket);
    else if (message.kind === "notification") this.#notified(message, ticket);
    else this.#asked(message, ticket);
  }

  /** A reply whose id stands where the anchors do not look, or is written as a string. */
  #oddReply(message: ResponseMessage, ticket: Ticket | undefined): void {
    const id = message.id === null ? ticket?.id : Number(message.id);
    const flight = id === undefined ? undefined : this.#flights.get(id);
    if (flight === undefined) {
      this.onNoise(`reply to unknown id ${JSON.stringify(message.id)}`);
      return;
    }
    const at = locate(message, ["id"]);
    this.#settle(flight);
    if (at === undefined) return;
    const idStart = Buffer.byteLength(message.text.slice(0, at.start));
    const idEnd = idStart + Buffer.byteLength(message.text.slice(at.start, at.end));
    flight.call.reply({ kind: "bytes", bytes: Buffer.from(message.text), idStart, idEnd });
  }

  #notified(message: NotificationMessage, ticket: Ticket | undefined): void {
    const { method, params } = message;
    if (method === "notifications/progress") {
      const flight = this.#flights.get(Number(params?.["progressToken"]));
      if (flight === undefined) return;
      flight.deadlineMs = this.#now() + flight.timeoutMs;
      const { progressToken, caller } = flight.call;
      if (progressToken === undefined || caller === undefined) return;
      caller.notify(rewrite(message, [{ path: ["params", "progressToken"], json: JSON.stringify(progressToken) }]));
    } else if (method === "notifications/cancelled") {
      this.#questions.cancel(params?.["requestId"]);
    } else {
      this.#events.onNotification(message, this.#callerOf(ticket));
    }
  }

  #asked(request: RequestMessage, ticket: Ticket | undefined): void {
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

  /** Whose call caused a message: the exchange tells, or the owner, or that one session alone is calling. */
  #callerOf(ticket: Ticket | undefined): Caller | undefined {
    const flight = ticket === undefined ? undefined : this.#flights.get(ticket.id);
    if (flight?.call.caller !== undefined) return flight.call.caller;
    let found: Caller | undefined;
    for (const { call } of this.#flights.values()) {
      if (call.caller === undefined) continue;
      if (found !== undefined && found.sessionKey !== call.caller.sessionKey) return this.#owner;
      found = call.caller;
    }
    return found ?? this.#owner;
  }

  #unreadable(bytes: Buffer, ticket: Ticket | undefined): void {
    this.onNoise(bytes.toString("utf8", 0, 200));
    const flight = ticket === undefined ? undefined : this.#flights.get(ticket.id);
    if (flight !== undefined) this.#fail(flight, this.#brokenAnswer());
  }

  #brokenAnswer(): Fault {
    return new Fault("protocol", `Server "${this.#spec.name}" answered with something that is not a JSON-RPC message.`);
  }

  #tellCancelled(flight: Flight, reason: string | undefined): void {
    const params: JsonObject = { requestId: flight.id, ...(reason === undefined ? {} : { reason }) };
    // The handshake cannot be taken back, says the protocol.
    if (flight.method === "initialize") return;
    this.notify(JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params }));
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
