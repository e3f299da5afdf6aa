// An agent at the other end of one pipe (stdio, or the old HTTP+SSE): legacy, one session at a time, from initialize
// on; and on stdio modern as well, message by message (modern-pipe.ts). Where the texts come from and how they are
// framed is not its concern.

import type { Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { type Message, type RequestMessage, toMessage } from "../../protocol/message.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { deeperThan } from "../../protocol/scan.js";
import { LEGACY_VERSIONS } from "../../protocol/versions.js";
import type { Clock } from "../../runtime/clock.js";
import { hasMoreMembers } from "../http/members.js";
import { collect } from "../http/pipe-body.js";
import { splitBatch } from "../http/post.js";
import { saysModern } from "../modern/checks.js";
import { Call, handOver, idText } from "../session/call.js";
import { hasBatches, initializeFacts, introduction } from "../session/initialize.js";
import type { EndpointLimits } from "../session/limits.js";
import { Session } from "../session/session.js";
import type { SessionFacts } from "../session/session-id.js";
import type { PipeModern } from "./modern-outlet.js";
import type { PipeOut } from "./out.js";

class PipeSession extends Session {
  readonly out: PipeOut;
  opened = false;

  constructor(principal: Principal, facts: SessionFacts, limits: EndpointLimits, nowMs: number, out: PipeOut) {
    super(principal, facts, limits, nowMs);
    this.out = out;
  }

  notify(text: string): void {
    if (!this.closed) this.out.notify(text);
  }

  override ask(...[request, signal]: Parameters<Session["ask"]>): ReturnType<Session["ask"]> {
    return this.askBy(request, signal, (text) => this.out.send(text));
  }
}

/** The replies to one batch, which leave together. */
interface Gathering {
  waiting: number;
  readonly replies: string[];
}

class PipeCall extends Call {
  readonly #out: PipeOut;
  readonly #idText: string;
  readonly #batch: Gathering | undefined;

  constructor(session: PipeSession, message: RequestMessage, batch: Gathering | undefined) {
    super(session, message);
    this.#out = session.out;
    this.#idText = idText(message);
    this.#batch = batch;
  }

  notify(text: string): void {
    this.session.notify(text);
  }

  protected sendRequest(text: string): void {
    this.#out.send(text);
  }

  protected write(reply: Reply): void {
    const { outputBytes } = this.session.limits;
    if (reply.kind === "stream" && this.#batch === undefined) {
      this.#out.sendBody(reply.open(this.#idText), () => this.#send(this.#broken()));
    } else if (reply.kind === "stream") {
      void collect(reply.open(this.#idText), outputBytes).then((bytes) => this.#send(bytes ?? this.#broken()));
    } else if (reply.kind === "bytes" && reply.bytes.length > outputBytes) {
      const fault = new Fault("limit", `The reply has ${reply.bytes.length} bytes; the limit is ${outputBytes}.`);
      this.#send(renderReply({ kind: "error", error: toRpcError(fault) }, this.#idText));
    } else this.#send(renderReply(reply, this.#idText));
  }

  #broken(): Buffer {
    const fault = new Fault("outcome-unknown", "The reply broke off on its way. The call may have taken effect.");
    return renderReply({ kind: "error", error: toRpcError(fault) }, this.#idText);
  }

  #send(bytes: Buffer): void {
    if (this.#batch === undefined) this.#out.send(bytes);
    else {
      this.#batch.replies.push(bytes.toString());
      this.#settle(this.#batch);
    }
  }

  #settle(batch: Gathering): void {
    batch.waiting--;
    if (batch.waiting === 0 && batch.replies.length > 0) this.#out.send(`[${batch.replies.join(",")}]`);
  }

  protected abandon(): void {
    if (this.#batch !== undefined) this.#settle(this.#batch);
  }
}

export interface PipePeerOptions {
  readonly service: Service;
  readonly principal: Principal;
  readonly scope: string | undefined;
  readonly limits: EndpointLimits;
  readonly clock: Clock;
  readonly out: PipeOut;
  readonly failed: (error: unknown) => void;
  /** None: this pipe is of a transport that only legacy agents use. */
  readonly modern?: PipeModern;
}

export class PipePeer {
  readonly #options: PipePeerOptions;
  #session: PipeSession | undefined;

  constructor(options: PipePeerOptions) {
    this.#options = options;
  }

  get principal(): Principal {
    return this.#options.principal;
  }

  get inFlight(): number {
    return (this.#session?.calls.size ?? 0) + (this.#options.modern?.inFlight ?? 0);
  }

  /** One message or batch as text. Never throws: what is wrong with it is answered. */
  receive(text: string): void {
    const { depth, members, batchMessages } = this.#options.limits;
    if (deeperThan(text, depth)) {
      this.refuse(ErrorCode.invalidRequest, `The message is nested deeper than ${depth} levels, which is the limit.`);
      return;
    }
    if (hasMoreMembers(text, members)) {
      this.refuse(ErrorCode.invalidRequest, `The message has more than ${members} members, which is the limit.`);
      return;
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      this.refuse(ErrorCode.parse, "Not JSON.");
      return;
    }
    try {
      if (Array.isArray(value)) {
        if (value.length > batchMessages) throw new Fault("invalid", `A batch has at most ${batchMessages} messages.`);
        this.takeBatch(splitBatch(text, value));
      } else this.take(toMessage(text, value));
    } catch (error) {
      if (error instanceof Fault) this.refuse(ErrorCode.invalidRequest, error.message);
      else {
        this.#options.failed(error);
        this.refuse(ErrorCode.internal, toRpcError(error).message);
      }
    }
  }

  /** An error that belongs to no request that could be read, or to `id`. */
  refuse(code: number, message: string, id = "null"): void {
    this.#options.out.send(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code, message })}}`);
  }

  take(message: Message): void {
    this.#onMessage(message, undefined);
  }

  takeBatch(messages: readonly Message[]): void {
    if (this.#session === undefined || !hasBatches(this.#session.version) || messages.length === 0) {
      this.refuse(ErrorCode.invalidRequest, "There are no batches in this version, nor empty ones in any.");
      return;
    }
    const waiting = messages.filter((message) => message.kind === "request").length;
    const batch: Gathering = { waiting, replies: [] };
    for (const message of messages) this.#onMessage(message, batch);
  }

  #onMessage(message: Message, batch: Gathering | undefined): void {
    const { service, modern } = this.#options;
    if (modern !== undefined && batch === undefined && this.#isModern(modern, message)) return;
    if (message.kind === "request" && message.method === "initialize" && batch === undefined) {
      this.#initialize(message);
      return;
    }
    const session = this.#session;
    if (session === undefined) {
      if (message.kind === "request") this.#beforeInitialize(message);
      return;
    }
    session.lastUsedMs = this.#options.clock.now();
    if (message.kind === "request") this.#onRequest(session, message, batch);
    else if (message.kind === "response") session.answered(message);
    else {
      this.#open(session);
      session.notified(message, service);
    }
  }

  /** True where the message is of the modern era, and was taken. */
  #isModern(modern: PipeModern, message: Message): boolean {
    if (message.kind === "response") return false;
    if (message.kind === "notification") {
      if (message.method === "notifications/cancelled" && modern.cancelled(message)) return true;
      if (!saysModern(message)) return false;
      modern.notified(message);
      return true;
    }
    if (!saysModern(message) && message.method !== "server/discover") return false;
    modern.request(message);
    return true;
  }

  #beforeInitialize(message: RequestMessage): void {
    const id = idText(message);
    if (message.method === "ping") this.#options.out.send(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    else if (message.method === "server/discover") {
      const versions = LEGACY_VERSIONS.join(", ");
      this.refuse(ErrorCode.methodNotFound, `Versions ${versions} are spoken here. Send initialize first.`, id);
    } else this.refuse(ErrorCode.invalidRequest, "Send initialize first.", id);
  }

  #initialize(message: RequestMessage): void {
    const { service, principal, scope, limits, clock, out } = this.#options;
    this.#endSession(new Fault("closing", "The session was begun anew."));
    const facts = initializeFacts(message, principal.id, scope, clock.wall());
    const session = new PipeSession(principal, facts, limits, clock.now(), out);
    this.#session = session;
    const result = introduction(facts.version, service.introduce(session, scope));
    out.send(`{"jsonrpc":"2.0","id":${idText(message)},"result":${JSON.stringify(result)}}`);
  }

  /** At the first thing said after initialize: nothing unasked may reach an agent before. */
  #open(session: PipeSession): void {
    if (session.opened) return;
    session.opened = true;
    this.#options.service.sessionOpened(session, session.scope);
  }

  #onRequest(session: PipeSession, message: RequestMessage, batch: Gathering | undefined): void {
    const call = new PipeCall(session, message, batch);
    const refusal = batch !== undefined && message.method === "initialize" ? NO_INITIALIZE : session.begin(call);
    if (refusal !== undefined) {
      call.reply({ kind: "error", error: { code: ErrorCode.invalidRequest, message: refusal } });
    } else if (message.method === "ping") call.reply({ kind: "result", result: {} });
    else {
      this.#open(session);
      handOver(this.#options.service, call, this.#options.failed);
    }
  }

  #endSession(fault: Fault): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    session.close(fault);
    if (session.opened) this.#options.service.sessionClosed(session);
  }

  /** What is in flight is answered with `fault`, if anybody still reads. */
  close(fault: Fault): void {
    this.#endSession(fault);
    this.#options.modern?.close(fault);
    this.#options.out.end();
  }
}

const NO_INITIALIZE = "initialize cannot be part of a batch.";
