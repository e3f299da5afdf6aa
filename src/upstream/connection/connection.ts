// One live connection to one server: the handshake, and replies to their calls. Calls in flight are flights.ts, what the
// server says of its own accord is unasked.ts. It does not start again (supervised.ts), and does not know how bytes
// travel (link.ts).

import type { Readable } from "node:stream";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { ListKind, ServerIntro, UpstreamCall } from "../../contracts/upstream.js";
import { type Anchor, findAnchor, findAnchorIn, largeReply } from "../../protocol/anchor.js";
import { PiecedReply, WholeReply } from "../../protocol/arrived.js";
import { Fault } from "../../protocol/errors.js";
import type { RpcId } from "../../protocol/jsonrpc.js";
import {
  idSpan,
  type Message,
  type NotificationMessage,
  parseMessage,
  type ResponseMessage,
} from "../../protocol/message.js";
import { type BytesReply, faultReply } from "../../protocol/reply.js";
import type { HandshakeOffer } from "../era/handshake.js";
import { type MeetingPlace, meet } from "../era/meeting.js";
import { identityOf } from "../era/verdict.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { withoutSender } from "../modern/plain-meta.js";
import { type ModernParts, ModernSide, partsOfNobody } from "../modern/side.js";
import type { PulsePlace } from "../supervise/pulse.js";
import { Endings } from "./endings.js";
import type { Flight } from "./flight.js";
import { Flights } from "./flights.js";
import { checkedText, textsIn } from "./incoming.js";
import type { ConnectionEvents, ConnectionOptions, Noise } from "./options.js";
import { Questions } from "./questions.js";
import { Unasked } from "./unasked.js";
import { Whose } from "./whose.js";

/** What is shown of a message that cannot be read. */
const NOISE_SAMPLE_CHARS = 200;

export class Connection implements LinkEvents {
  readonly #spec: ServerSpec;
  readonly #offer: HandshakeOffer;
  readonly #now: () => number;
  readonly #events: ConnectionEvents;
  readonly #makeLink: (events: LinkEvents) => Link;
  readonly #parts: ModernParts;
  readonly #endings: Endings;
  #link: Link;
  /** Set while the server may be a modern one, and for good once it is. */
  #modern: ModernSide | undefined;
  /** Until the server is known, the end of a link is not the end of the connection: it may be of the probe's doing. */
  #meeting: boolean = false;
  #gone: Fault | undefined;
  /** All that came, of whatever sense: signs of life. */
  received = 0;
  readonly #flights: Flights;
  readonly #whose: Whose;
  readonly #questions = new Questions((text) => this.notify(text));
  readonly #unasked: Unasked;
  #closed = false;
  readonly #noise: Noise;

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#spec = options.spec;
    this.#offer = options.offer;
    this.#now = options.now;
    this.#noise = options.noise;
    this.#events = events;
    this.#parts = options.modern ?? partsOfNobody();
    this.#flights = new Flights(options.spec);
    this.#whose = new Whose(this.#flights, options.owner);
    this.#endings = new Endings({
      flights: this.#flights,
      whose: this.#whose,
      breaker: options.breaker,
      returns: events,
      now: options.now,
      link: () => this.#link,
      modern: () => this.#modern,
      isClosed: () => this.#closed,
    });
    this.#unasked = new Unasked({
      server: options.spec.name,
      flights: this.#flights,
      whose: this.#whose,
      questions: this.#questions,
      now: options.now,
      modern: () => this.#modern,
      notify: (text) => this.notify(text),
      onNotification: (message, caller) => events.onNotification(message, caller),
      onNoise: (sample) => this.onNoise(sample),
    });
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
    const full = this.#flights.full;
    if (full !== undefined) {
      call.reply(faultReply(full));
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

  /** Fails the calls whose time is over: true where there were any. The connection stays for the others. */
  expire(nowMs: number): boolean {
    this.#whose.expire(nowMs);
    const overdue = this.#flights.overdue(nowMs, (sessionKey) => this.#questions.isAsking(sessionKey));
    let any = false;
    for (const [flight, fault] of overdue) {
      any = true;
      this.#endings.abandon(flight, "timeout", fault);
    }
    return any;
  }

  /** For requests of our own, past all that is done for an agent's. */
  get own(): PulsePlace {
    return {
      method: this.#modern === undefined ? "ping" : "server/discover",
      received: () => this.received,
      send: (call) => this.#launch(call),
      cancel: (call, reason) => this.#recall(call, reason),
    };
  }

  /** Progress of an agent on a question that this server asked. */
  agentProgress(sessionKey: string, message: NotificationMessage): boolean {
    return this.#questions.progress(sessionKey, message);
  }

  async close(why?: Fault): Promise<void> {
    if (!this.#closed) this.#end(why ?? new Fault("unavailable", `Server "${this.#spec.name}" was stopped.`));
    await this.#link.close();
  }

  // ---- what the link says

  onMessage(bytes: Buffer, ticket: Ticket | undefined): void {
    this.received++;
    const anchor = findAnchor(bytes);
    if (anchor !== undefined) {
      this.#reply(bytes, anchor);
      return;
    }
    for (const text of textsIn(bytes)) this.#receive(text, ticket);
  }

  onPieces(pieces: Buffer[], ticket: Ticket): void {
    const anchor = findAnchorIn(pieces);
    const flight = anchor === undefined ? undefined : this.#flights.get(anchor.id);
    if (anchor === undefined || flight === undefined) {
      this.onMessage(Buffer.concat(pieces), ticket);
      return;
    }
    this.received++;
    this.#endings.answered(flight);
    this.#deliver(flight, new PiecedReply(pieces, anchor, this.#replyEra));
  }

  onLargeReply(ticket: Ticket, head: Buffer, rest: Readable, length: number | undefined): void {
    const flight = this.#flights.get(ticket.id);
    const reply = largeReply(head, rest, length);
    if (flight === undefined || reply === undefined) {
      rest.destroy();
      if (flight !== undefined) this.#endings.fail(flight, this.#brokenAnswer());
      return;
    }
    this.received++;
    this.#endings.answered(flight);
    flight.call.reply(this.#modern === undefined ? reply : { ...reply, era: "modern" });
  }

  onFailed(ticket: Ticket, fault: Fault, sent: boolean): void {
    const flight = this.#flights.get(ticket.id);
    if (flight === undefined) return;
    this.#modern?.refused(fault);
    if (!sent) this.#endings.unsent(flight, fault);
    else if (fault.code === "outcome-unknown") this.#endings.lose(flight, fault);
    else this.#endings.fail(flight, fault);
  }

  onClosed(fault: Fault): void {
    if (this.#closed) return;
    if (this.#meeting) {
      this.#gone = fault;
      for (const flight of this.#flights.inOrder()) this.#endings.fail(flight, fault);
      return;
    }
    this.#end(fault);
    this.#events.onClosed(fault);
  }

  onNoise(sample: string): void {
    this.received++;
    this.#noise.count++;
    this.#noise.sample = sample;
  }

  // ---- inside

  #launch(call: UpstreamCall): void {
    if (this.#closed || this.#gone !== undefined) {
      call.reply(faultReply(this.#gone ?? new Fault("unavailable", `Server "${this.#spec.name}" is not connected.`)));
      return;
    }
    const flight = this.#flights.make(call, this.#now());
    let text: string;
    if (this.#modern !== undefined && call.method !== "initialize") {
      text = this.#modern.dress(call, flight.id);
      flight.headers = this.#modern.headers(call, text);
    } else {
      text = call.render(flight.id);
      if (call.caller?.era === "modern") text = withoutSender(text);
    }
    this.#flights.add(flight);
    this.#link.send(text, flight);
  }

  #recall(call: UpstreamCall, reason: string | undefined): void {
    const flight = this.#flights.of(call);
    if (flight === undefined) return;
    this.#endings.abandon(flight, reason, new Fault("cancelled", reason ?? "Cancelled."));
  }

  #reply(bytes: Buffer, anchor: Anchor): void {
    const flight = this.#flights.get(anchor.id);
    if (flight === undefined) {
      this.#unawaited(anchor.id);
      return;
    }
    let latin1: string | undefined;
    try {
      latin1 = checkedText(bytes);
    } catch {
      this.#endings.fail(flight, this.#brokenAnswer());
      return;
    }
    this.#endings.answered(flight);
    this.#deliver(flight, new WholeReply(bytes, anchor, this.#replyEra, latin1));
  }

  get #replyEra(): "modern" | undefined {
    return this.#modern === undefined ? undefined : "modern";
  }

  #deliver(flight: Flight, reply: BytesReply): void {
    if (this.#modern?.intercepts(flight.call, reply) !== true) flight.call.reply(reply);
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
    for (const flight of this.#flights.inOrder()) this.#endings.fail(flight, this.#gone);
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
      else if (message.kind === "notification") this.#unasked.notified(message, ticket);
      else this.#unasked.asked(message, ticket);
    } catch {
      this.#unreadable(text, ticket);
    }
  }

  /** A reply whose id stands where the anchors do not look, or is written as a string. */
  #oddReply(message: ResponseMessage, ticket: Ticket | undefined): void {
    const id = message.id === null ? ticket?.id : Number(message.id);
    const flight = id === undefined ? undefined : this.#flights.get(id);
    const span = idSpan(message);
    if (flight === undefined || span === undefined) {
      this.#unawaited(message.id);
      return;
    }
    this.#endings.answered(flight);
    this.#deliver(flight, new WholeReply(Buffer.from(message.text), span, this.#replyEra));
    if (message.id === null) this.#modern?.doubt();
  }

  /** A late reply, or one to nothing that we asked. */
  #unawaited(id: RpcId | null): void {
    this.#whose.answeredLate(Number(id));
    this.onNoise(`reply to unknown id ${JSON.stringify(id)}`);
  }

  #unreadable(text: string, ticket: Ticket | undefined): void {
    this.onNoise(text.slice(0, NOISE_SAMPLE_CHARS));
    const flight = ticket === undefined ? undefined : this.#flights.get(ticket.id);
    if (flight !== undefined) this.#endings.fail(flight, this.#brokenAnswer());
  }

  #brokenAnswer(): Fault {
    return new Fault("protocol", `Server "${this.#spec.name}" answered with something that is not a JSON-RPC message.`);
  }

  #end(fault: Fault): void {
    this.#closed = true;
    this.#modern?.stop();
    this.#questions.abortAll();
    for (const flight of this.#flights.inOrder()) this.#endings.lose(flight, this.#flights.lost(flight, fault));
    const message = `Server "${this.#spec.name}" went away in the middle of the call (${fault.message}). Whether it took effect is unknown.`;
    this.#modern?.end(new Fault("outcome-unknown", message, { cause: fault }));
  }
}
