// One live connection to one server: the handshake, and replies to their calls. Calls in flight are in-flight.ts, what
// the server says of its own accord is from-server.ts. While it finds out the server's era it may need a second
// link; once it is open, it does not start again (driver.ts). It does not know how bytes travel (link.ts).

import type { Readable } from "node:stream";
import type { Caller } from "../../contracts/caller.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import type { ListKind, ServerIntro, UpstreamCall } from "../../contracts/upstream.js";
import { PiecedReply, WholeReply } from "../../protocol/arrived.js";
import { flawOfLong, HAS_METHOD, isAmbiguous, judgeShort, PARSED_REPLY_BYTES } from "../../protocol/check-reply.js";
import { Fault, OUTCOME_UNKNOWN, toRpcError } from "../../protocol/errors.js";
import type { RpcId } from "../../protocol/jsonrpc.js";
import {
  idSpan,
  type Message,
  type NotificationMessage,
  parseMessage,
  type ResponseMessage,
  withChanges,
} from "../../protocol/message.js";
import { type BytesReply, faultReply } from "../../protocol/reply.js";
import { type Anchor, findAnchor, findAnchorIn, largeReply } from "../../protocol/reply-id.js";
import { redactorFor } from "../../runtime/redact/secrets-of.js";
import { resultWithin } from "../../runtime/wait.js";
import type { HandshakeOffer } from "../era/handshake.js";
import { type MeetingOptions, meet } from "../era/meeting.js";
import { identityOf } from "../era/verdict.js";
import { takenBack } from "../link/cancelled-call.js";
import type { Link, LinkDescription, LinkEvents, Ticket } from "../link/link.js";
import { ask, type CallSender } from "../link/own-call.js";
import { cardWithoutSecrets, withoutSecrets } from "../link/safe-fault.js";
import { type ModernParts, ModernSide, unsharedParts } from "../modern/side.js";
import { WITHOUT_SENDER } from "../modern/translate.js";
import { type Breaker, type LateCall, OverdueFault } from "../supervise/breaker.js";
import { Cancels } from "./cancels.js";
import { type AboutTask, CallerLookup, ServerMessages, type ServerMessagesOptions } from "./from-server.js";
import {
  AbandonedCalls,
  type CallCount,
  CallEndings,
  type CallReturns,
  type PendingCall,
  PendingCalls,
} from "./in-flight.js";
import { answeredId, claimedId, endsOf, excessOfMessage, excessOfShort, textsIn } from "./incoming.js";

/** Stands in what a modern server asks. */
const INPUT_REQUIRED = '"input_required"';

/** So much is shown of a message that cannot be read. */
const NOISE_SAMPLE_CHARS = 200;

export interface ConnectionEvents extends CallReturns {
  /** A notification that is not progress; `caller` is undefined where nobody can tell whose it is. */
  onNotification(message: NotificationMessage, caller: Caller | undefined): void;
  readonly aboutTask?: AboutTask | undefined;
  /** The connection ended by itself. Calls in flight have been answered. */
  onClosed(fault: Fault): void;
}

/** Longer than a link waits for the last output of a child that has exited. */
const END_KNOWN_MS = 1_500;

export interface ConnectionOptions {
  readonly spec: ServerSpec;
  /** The one agent of a connection that is not shared. */
  readonly owner: Caller | undefined;
  readonly offer: HandshakeOffer;
  readonly now: () => number;
  /** Counts what came and was of no use: broken lines, replies that nobody waits for. It outlives the connection. */
  readonly noise: Noise;
  readonly makeLink: (events: LinkEvents) => Link;
  readonly modern?: ModernParts | undefined;
  readonly breaker: Breaker;
  readonly calls?: CallCount | undefined;
  readonly newHolder?: ServerMessagesOptions["newHolder"];
}

interface Noise {
  count: number;
  sample: string | undefined;
}

export class Connection implements LinkEvents {
  readonly #spec: ServerSpec;
  readonly #offer: HandshakeOffer;
  readonly #now: () => number;
  readonly #events: ConnectionEvents;
  readonly #makeLink: (events: LinkEvents) => Link;
  readonly #parts: ModernParts;
  readonly #inFlight: PendingCalls;
  readonly #abandoned = new AbandonedCalls();
  readonly #endings: CallEndings;
  readonly #messages: ServerMessages;
  readonly #cancels: Cancels;
  #link: Link;
  /** Set while the server may be a modern one, and for good once it is. */
  #modern: ModernSide | undefined;
  /** Until the server is known, the end of a link is not the end of the connection: the question for its era may have caused it. */
  #meeting: boolean = false;
  #gone: Fault | undefined;
  #onGone: (() => void) | undefined;
  /** Counts all that came, readable or not: signs of life. */
  received = 0;
  #closed = false;
  readonly #noise: Noise;
  /** Sends requests of our own, past all that is done for an agent's call. */
  readonly #direct: CallSender = {
    send: (call) => this.#sendDirect(call),
    cancel: (call, reason) => this.#cancels.cancel(call, reason),
  };

  constructor(options: ConnectionOptions, events: ConnectionEvents) {
    this.#spec = options.spec;
    this.#offer = options.offer;
    this.#now = options.now;
    this.#noise = options.noise;
    this.#events = events;
    this.#parts = options.modern ?? unsharedParts();
    this.#inFlight = new PendingCalls(options.spec);
    this.#endings = new CallEndings(
      this.#inFlight,
      this.#abandoned,
      options.breaker,
      events,
      options.now,
      options.calls ?? { ended: 0 },
    );
    this.#messages = new ServerMessages({
      server: options.spec.name,
      inFlight: this.#inFlight,
      callers: new CallerLookup(this.#inFlight, this.#abandoned, options.owner),
      now: options.now,
      send: (text) => this.#tell(text),
      onNotification: (message, caller) => events.onNotification(message, caller),
      aboutTask: events.aboutTask ?? ((message) => message),
      newHolder: options.newHolder,
    });
    this.#cancels = new Cancels({
      inFlight: this.#inFlight,
      endings: this.#endings,
      link: () => (this.#closed ? undefined : this.#link),
      callEnded: (pending) => this.#messages.questions.callEnded(pending),
    });
    this.#makeLink = options.makeLink;
    this.#link = options.makeLink(this);
  }

  get closed(): boolean {
    return this.#closed;
  }

  get inFlight(): number {
    return this.#inFlight.size + (this.#modern?.extraInFlight ?? 0);
  }

  get isLeaving(): boolean {
    return this.#link.isLeaving === true;
  }

  /** Whether it is heard when the server tells of changes of its lists. Legacy servers are taken at their word. */
  hears(kind: ListKind): boolean {
    return this.#modern?.hears(kind) ?? this.#link.isHeard !== false;
  }

  /** Counts the times in which the server may have said something that was not heard. */
  get gaps(): number {
    return this.#link.gaps ?? 0;
  }

  get journal(): string | undefined {
    return this.#link.journal;
  }

  describe(): LinkDescription {
    return this.#link.describe();
  }

  /** Connects and introduces itself. Rejects with a Fault; the connection is closed then. */
  async open(signal: AbortSignal): Promise<ServerIntro> {
    try {
      this.#meeting = true;
      await this.#link.open(signal);
      const met = await this.#meet(signal);
      // Who the server says it is, is kept and shown without secrets.
      const { serverInfo, more } = met;
      const card = cardWithoutSecrets(
        more === undefined ? { serverInfo } : { serverInfo, more },
        redactorFor(this.#spec.target),
      );
      const { serverEra } = this.#link;
      const intro: ServerIntro = { ...met, ...card, ...(serverEra === undefined ? {} : { ownEra: serverEra }) };
      this.#meeting = false;
      if (this.#gone !== undefined) throw this.#gone;
      if (intro.era === "modern") {
        this.#modern?.start(intro);
        return intro;
      }
      this.#modern = undefined;
      this.#link.established(intro.version);
      this.#tell('{"jsonrpc":"2.0","method":"notifications/initialized"}');
      return intro;
    } catch (error) {
      const end = await this.#endBehind(error);
      await this.close();
      throw end instanceof Error ? this.#safe(end) : end;
    }
  }

  /** A child that dies at once closes its input before its end is known, and its end says why. */
  async #endBehind(error: unknown): Promise<unknown> {
    if (!(error instanceof Fault) || error.reason !== "exited" || this.#spec.target.kind !== "stdio") return error;
    if (this.#gone === undefined) {
      const ended = new Promise<void>((resolve) => {
        this.#onGone = resolve;
      });
      await resultWithin(ended, END_KNOWN_MS);
    }
    return this.#gone ?? error;
  }

  send(call: UpstreamCall): void {
    if (this.#closed) {
      const fault = new Fault("unavailable", `Server "${this.#spec.name}" is not connected.`);
      if (call.caller === undefined) call.reply(faultReply(fault));
      else this.#events.onUnsent(call, fault);
      return;
    }
    const refusal = this.#inFlight.refusal(call);
    if (refusal !== undefined) {
      call.reply(faultReply(refusal));
      return;
    }
    if (this.#modern === undefined || !this.#modern.send(call)) this.#sendDirect(call);
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    if (this.#modern === undefined || !this.#modern.cancel(call, reason)) this.#cancels.cancel(call, reason);
  }

  /** An agent's notification: what the server's era has no notion of is not sent. */
  notify(message: NotificationMessage, from: Caller): void {
    if (this.#closed) return;
    if (this.#modern === undefined) {
      this.#link.send(from.era === "modern" ? withChanges(message, WITHOUT_SENDER) : message.text, undefined);
      return;
    }
    const text = this.#modern.renderNotification(message, from);
    if (text !== undefined) this.#link.send(text, undefined, this.#modern.notificationHeaders(message.method));
  }

  /**
   * Fails the calls whose time is over; the connection stays for the others. Undefined where there were none; else those
   * of agents, of which the breaker is to be told.
   */
  expire(nowMs: number): readonly LateCall[] | undefined {
    this.#abandoned.expire(nowMs);
    let late: LateCall[] | undefined;
    for (const [pending, fault] of this.#inFlight.overdue(nowMs)) {
      late ??= [];
      if (pending.call.caller !== undefined && fault instanceof OverdueFault) late.push(pending.late);
      this.#cancels.abandon(pending, "timeout", fault);
    }
    return late;
  }

  /** Asks for what every server of the era answers. Rejects where it does not, or with an error. */
  async ping(signal: AbortSignal): Promise<void> {
    await ask(this.#direct, this.#modern === undefined ? "ping" : "server/discover", {}, signal);
  }

  /** Progress of an agent on a question that this server asked. */
  agentProgress(sessionKey: string, message: NotificationMessage): boolean {
    return this.#messages.questions.progress(sessionKey, message);
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
    const excess = excessOfMessage([bytes]);
    if (excess !== undefined) this.#excessive([bytes], excess, ticket);
    else for (const text of textsIn(bytes)) this.#receive(text, ticket);
  }

  onPieces(pieces: Buffer[], ticket: Ticket | undefined): void {
    const anchor = findAnchorIn(pieces);
    const pending = anchor === undefined ? undefined : this.#inFlight.get(anchor.id);
    if (anchor === undefined) {
      const excess = excessOfMessage(pieces);
      if (excess === undefined) this.onMessage(Buffer.concat(pieces), ticket);
      else {
        this.received++;
        this.#excessive(pieces, excess, ticket);
      }
      return;
    }
    this.received++;
    if (pending === undefined) {
      this.#unawaited(anchor.id);
      return;
    }
    const flaw = flawOfLong(pieces, anchor);
    if (flaw !== undefined) {
      this.#endings.fail(pending, this.#badReply(flaw));
      return;
    }
    this.#endings.answered(pending);
    this.#deliver(pending, new PiecedReply(pieces, anchor, this.#replyEra));
  }

  onLargeReply(ticket: Ticket, head: Buffer, rest: Readable, length: number | undefined): void {
    const pending = this.#inFlight.get(ticket.id);
    const reply = largeReply(head, rest, ticket.id, length);
    if (pending === undefined || reply === undefined || reply === "other-id") {
      rest.destroy();
      const fault = reply === undefined ? this.#brokenAnswer() : this.#badReply("has the id of another call");
      if (pending !== undefined) this.#endings.fail(pending, fault);
      return;
    }
    this.received++;
    this.#endings.answered(pending);
    pending.call.notes?.enter("returning");
    pending.call.reply(this.#modern === undefined ? reply : { ...reply, era: "modern" });
  }

  onFailed(ticket: Ticket, raw: Fault, sent: boolean): void {
    const pending = this.#inFlight.get(ticket.id);
    if (pending === undefined) return;
    const fault = this.#safe(raw);
    this.#modern?.refused(fault);
    // It is not sent again.
    if (pending.isTakenBack && (!sent || fault.code === "outcome-unknown")) {
      this.#endings.fail(pending, takenBack(undefined, !sent && pending.call.wasSent !== true));
    } else if (!sent) this.#endings.unsent(pending, fault);
    else if (fault.code === "outcome-unknown") this.#endings.lose(pending, fault);
    else this.#endings.fail(pending, fault);
  }

  onClosed(raw: Fault): void {
    if (this.#closed) return;
    const fault = this.#safe(raw);
    if (this.#meeting) {
      this.#gone = fault;
      this.#onGone?.();
      for (const pending of this.#inFlight.inOrder()) this.#endings.fail(pending, fault);
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

  /** Our own word to a legacy server: a modern one is told nothing, and has no questions to be answered. */
  #tell(text: string): void {
    if (!this.#closed && this.#modern === undefined) this.#link.send(text, undefined);
  }

  #sendDirect(call: UpstreamCall): void {
    if (this.#closed || this.#gone !== undefined) {
      call.reply(faultReply(this.#gone ?? new Fault("unavailable", `Server "${this.#spec.name}" is not connected.`)));
      return;
    }
    const nowMs = this.#now();
    const pending = this.#inFlight.make(call, this.#link, nowMs);
    call.notes?.sent(nowMs);
    let text: string;
    if (this.#modern !== undefined && call.method !== "initialize") {
      text = call.render(pending.id, this.#modern.changes(call));
      pending.headers = this.#modern.headers(call);
    } else {
      text = call.render(pending.id, call.caller?.era === "modern" ? WITHOUT_SENDER : undefined);
    }
    this.#inFlight.add(pending);
    this.#link.send(text, pending);
  }

  #reply(bytes: Buffer, anchor: Anchor): void {
    const pending = this.#inFlight.get(anchor.id);
    if (pending === undefined) {
      this.#unawaited(anchor.id);
      return;
    }
    const latin1 = bytes.length <= PARSED_REPLY_BYTES ? bytes.toString("latin1") : undefined;
    const verdict = latin1 === undefined ? undefined : judgeShort(bytes, latin1);
    const flaw = verdict === undefined ? flawOfLong([bytes], anchor) : verdict.flaw;
    if (flaw !== undefined) {
      this.#endings.fail(pending, this.#badReply(flaw));
      return;
    }
    this.#endings.answered(pending);
    // What a legacy server asks is in the modern era's words, also where its results are as it wrote them.
    const isQuestion = this.#link.isAsWritten === true && bytes.includes(INPUT_REQUIRED);
    const era = isQuestion ? "modern" : this.#replyEra;
    this.#deliver(pending, new WholeReply(bytes, anchor, era, latin1, verdict?.succeeded));
  }

  get #replyEra(): "modern" | undefined {
    return this.#modern === undefined || this.#link.isAsWritten === true ? undefined : "modern";
  }

  #deliver(pending: PendingCall, reply: BytesReply): void {
    pending.call.notes?.enter("returning");
    const marked: BytesReply = pending.asked ? { ...reply, afterRounds: true } : reply;
    if (this.#modern?.intercepts(pending.call, marked) !== true) pending.call.reply(marked);
  }

  #meet(signal: AbortSignal): Promise<ServerIntro> {
    const { kind } = this.#link.describe();
    const offer = this.#offer;
    if (kind !== "sse") {
      this.#modern = new ModernSide(this.#parts, kind === "http", offer.clientInfo, {
        now: this.#now,
        direct: this.#direct,
        onNotification: (message) => this.#events.onNotification(message, undefined),
        onOtherEra: () => this.#otherEra(),
        namesAgents: kind === "mailbox",
      });
    }
    const { era = this.#spec.era } = this.#link;
    const options: MeetingOptions = {
      // A mailbox has no statuses: it either brings an answer or it does not, as a pipe.
      kind: kind === "mailbox" ? "stdio" : kind,
      spec: era === this.#spec.era ? this.#spec : { ...this.#spec, era },
      eras: this.#parts.eras,
      offer,
      direct: this.#direct,
      gone: () => this.#gone,
      relink: (again) => this.#relink(again),
    };
    return meet(options, signal);
  }

  #otherEra(): void {
    this.#parts.eras.put(this.#spec.name, identityOf(this.#spec.target), undefined);
    this.onClosed(new Fault("unavailable", `Server "${this.#spec.name}" was replaced by one of another protocol era.`));
  }

  /** Opens another link, while the server is not known yet. */
  async #relink(signal: AbortSignal): Promise<void> {
    const old = this.#link;
    this.#gone ??= new Fault("unavailable", "It is started again.");
    for (const pending of this.#inFlight.inOrder()) this.#endings.fail(pending, this.#gone);
    await old.close();
    signal.throwIfAborted();
    this.#link = this.#makeLink(this);
    this.#gone = undefined;
    await this.#link.open(signal);
  }

  #receive(text: string, ticket: Ticket | undefined): void {
    const excess = excessOfShort(text);
    if (excess !== undefined) {
      this.#excessive([Buffer.from(text)], excess, ticket);
      return;
    }
    try {
      const message: Message = parseMessage(text);
      if (message.kind === "response") this.#oddReply(message, ticket);
      else if (isAmbiguous(message.members)) this.#ambiguous(message, ticket);
      else if (message.kind === "notification") this.#messages.notified(message, ticket, this.#modern);
      else if (this.#modern === undefined) this.#messages.asked(message, ticket);
      // In the modern era servers send no requests, and there is no way to answer one.
      else this.onNoise(`request ${message.method} of a modern server`);
    } catch {
      this.#unreadable(text, ticket);
    }
  }

  /** A reply whose id stands where the anchors do not look, or is written as a string. */
  #oddReply(message: ResponseMessage, ticket: Ticket | undefined): void {
    const id = message.id === null ? ticket?.id : Number(message.id);
    const pending = id === undefined ? undefined : this.#inFlight.get(id);
    const span = idSpan(message);
    if (pending === undefined || span === undefined) {
      this.#unawaited(message.id);
      return;
    }
    const bytes = Buffer.from(message.text);
    const flaw = judgeShort(bytes, message.text).flaw;
    if (flaw !== undefined) {
      this.#endings.fail(pending, this.#badReply(flaw));
      return;
    }
    this.#endings.answered(pending);
    this.#deliver(pending, new WholeReply(bytes, span, this.#replyEra));
    if (message.id === null) this.#modern?.checkEra();
  }

  /** A reply came late, or answers nothing that we asked. */
  #unawaited(id: RpcId | null): void {
    this.#endings.answeredLate(Number(id));
    this.onNoise(`reply to unknown id ${JSON.stringify(id)}`);
  }

  #unreadable(text: string, ticket: Ticket | undefined): void {
    this.onNoise(text.slice(0, NOISE_SAMPLE_CHARS));
    const pending = this.#inFlight.get(ticket?.id ?? claimedId(text) ?? 0);
    if (pending !== undefined) this.#endings.fail(pending, this.#brokenAnswer());
  }

  /** Neither passed on nor answered. Where it may be the reply to a call, that call does not wait for another. */
  #ambiguous(message: Message, ticket: Ticket | undefined): void {
    const answered = answeredId(message);
    if (answered === undefined) {
      this.#unreadable(message.text, ticket);
      return;
    }
    this.onNoise(message.text.slice(0, NOISE_SAMPLE_CHARS));
    const pending = this.#inFlight.get(ticket?.id ?? answered);
    if (pending !== undefined) this.#endings.fail(pending, this.#badReply(HAS_METHOD));
  }

  /**
   * What is too much to be parsed is dropped and counted. Whoever waits for it is told: the call that it answers, or the
   * server, where it asked something.
   */
  #excessive(pieces: readonly Buffer[], excess: string, ticket: Ticket | undefined): void {
    const { id, hasMethod, hasAnswer } = endsOf(pieces);
    const head = (pieces[0] as Buffer).toString("utf8", 0, NOISE_SAMPLE_CHARS);
    this.onNoise(`A message was dropped, because it ${excess}. It begins with ${head}`);
    if (!hasMethod || hasAnswer) {
      const pending = this.#inFlight.get(ticket?.id ?? (id === undefined ? 0 : Number(JSON.parse(id))));
      if (pending !== undefined) this.#endings.fail(pending, this.#badReply(excess));
    } else if (id !== undefined) {
      const error = toRpcError(new Fault("limit", `Toolway did not read this request: it ${excess}.`));
      this.#tell(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`);
    }
  }

  #brokenAnswer(): Fault {
    const why = 'which is an object with "jsonrpc": "2.0", the id, and "result" or "error"';
    return new Fault(
      "protocol",
      `Server "${this.#spec.name}" answered with something that is not a JSON-RPC message, ${why}.`,
    );
  }

  #badReply(flaw: string): Fault {
    return new Fault(
      "protocol",
      `Server "${this.#spec.name}" answered with a reply that ${flaw}. It was not passed on.`,
    );
  }

  /** Whatever made the error: its words may be the server's, and hold what the entry keeps secret. */
  #safe<E extends Error>(error: E): E | Fault {
    return withoutSecrets(error, redactorFor(this.#spec.target));
  }

  #end(fault: Fault): void {
    this.#closed = true;
    this.#modern?.stop();
    this.#messages.questions.cancelAll();
    for (const pending of this.#inFlight.inOrder()) {
      if (pending.isTakenBack) this.#endings.fail(pending, takenBack(undefined, false));
      else if (pending.waitsFor !== undefined) this.#endings.unsent(pending, fault);
      else this.#endings.lose(pending, this.#inFlight.lost(pending, fault));
    }
    const message = `Server "${this.#spec.name}" went away in the middle of the call: ${fault.plain}`;
    this.#modern?.end(new Fault("outcome-unknown", message, { cause: fault, outcome: OUTCOME_UNKNOWN }));
  }
}
