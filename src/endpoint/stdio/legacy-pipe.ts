// The legacy era on a pipe: one session at a time, from initialize on, and its calls, alone or in batches.

import type { NotificationText, Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { LEGACY_VERSIONS } from "../../protocol/versions.js";
import type { Clock } from "../../runtime/clock.js";
import { brokenOff, collect } from "../session/bounded-reply.js";
import { answersItself, handOver, idText, LegacyCall, NO_INITIALIZE } from "../session/call.js";
import { hasBatches, initializeFacts, introduction } from "../session/initialize.js";
import type { EndpointLimits } from "../session/limits.js";
import { LegacySession } from "../session/session.js";
import type { SessionFacts } from "../session/session-id.js";
import type { PipeOut } from "./out.js";

const LEFT = "The agent has gone.";

class PipeSession extends LegacySession {
  readonly out: PipeOut;
  override readonly takesAnyOutput: true | undefined;
  opened = false;
  /** Nothing more comes from the agent, though it may still read. */
  #mute = false;

  constructor(options: LegacyPipeOptions, facts: SessionFacts) {
    const { principal, limits, clock, out, takesAnyOutput } = options;
    super(principal, facts, limits, clock.now());
    this.out = out;
    this.takesAnyOutput = takesAnyOutput;
  }

  tell(text: string): void {
    if (!this.closed) this.out.notify(text);
  }

  /** The agent will send nothing more: it can be told things, but answers nothing. */
  agentLeft(): void {
    this.#mute = true;
    this.unanswerable(LEFT);
  }

  override askBy(...[request, signal, send]: Parameters<LegacySession["askBy"]>): ReturnType<LegacySession["askBy"]> {
    if (this.#mute) return Promise.reject(new Fault("closing", `${request.method} was not asked. ${LEFT}`));
    return super.askBy(request, signal, send);
  }

  override ask(...[request, signal]: Parameters<LegacySession["ask"]>): ReturnType<LegacySession["ask"]> {
    return this.askBy(request, signal, (text) => this.out.send(text));
  }
}

/** The replies to one batch, which leave together. */
interface PipeBatch {
  waiting: number;
  readonly replies: string[];
}

class PipeCall extends LegacyCall {
  readonly #out: PipeOut;
  readonly #idText: string;
  readonly #batch: PipeBatch | undefined;

  constructor(session: PipeSession, message: RequestMessage, batch: PipeBatch | undefined) {
    super(session, message);
    this.#out = session.out;
    this.#idText = idText(message);
    this.#batch = batch;
  }

  notify({ text }: NotificationText): void {
    this.session.tell(text);
  }

  protected sendRequest(text: string): void {
    this.#out.send(text);
  }

  protected write(reply: Reply): void {
    const { limits } = this.session;
    if (this.#batch === undefined) this.#out.reply(reply, this.#idText);
    else if (reply.kind === "stream") {
      const whole = collect(reply.open(this.#idText), limits.outputBytes, this.#out.newHolder());
      void whole.then((bytes) => this.#gather(bytes ?? brokenOff(this.#idText)));
    } else this.#gather(renderReply(this.#out.fitting(reply), this.#idText));
  }

  #gather(bytes: Buffer): void {
    this.#batch?.replies.push(bytes.toString());
    this.#settle();
  }

  #settle(): void {
    const batch = this.#batch;
    if (batch === undefined) return;
    batch.waiting--;
    if (batch.waiting === 0 && batch.replies.length > 0) this.#out.send(`[${batch.replies.join(",")}]`);
  }

  protected abandon(): void {
    this.#settle();
  }
}

export interface LegacyPipeOptions {
  readonly service: Service;
  readonly principal: Principal;
  readonly scope: string | undefined;
  readonly limits: EndpointLimits;
  readonly clock: Clock;
  readonly out: PipeOut;
  readonly takesAnyOutput?: true | undefined;
  readonly failed: (error: unknown) => void;
}

export class LegacyPipe {
  readonly #options: LegacyPipeOptions;
  #session: PipeSession | undefined;

  constructor(options: LegacyPipeOptions) {
    this.#options = options;
  }

  /** Requests that wait for their answer. */
  get inFlight(): number {
    return this.#session?.calls.size ?? 0;
  }

  batch(messages: readonly Message[]): void {
    if (this.#session === undefined || !hasBatches(this.#session.version) || messages.length === 0) {
      const why = "There are no batches in this version, nor empty ones in any.";
      this.#options.out.refuse(ErrorCode.invalidRequest, why);
      return;
    }
    const waiting = messages.filter((message) => message.kind === "request").length;
    const batch: PipeBatch = { waiting, replies: [] };
    for (const message of messages) this.#take(message, batch);
  }

  message(message: Message): void {
    if (message.kind === "request" && message.method === "initialize") this.#initialize(message);
    else this.#take(message, undefined);
  }

  #take(message: Message, batch: PipeBatch | undefined): void {
    const session = this.#session;
    if (session === undefined) {
      if (message.kind === "request") this.#beforeInitialize(message);
      return;
    }
    session.lastUsedMs = this.#options.clock.now();
    if (message.kind === "request") this.#request(session, message, batch);
    else if (message.kind === "response") session.answered(message);
    else {
      this.#open(session);
      session.notified(message, this.#options.service);
    }
  }

  #beforeInitialize(message: RequestMessage): void {
    const { out } = this.#options;
    const id = idText(message);
    if (message.method === "ping") out.send(`{"jsonrpc":"2.0","id":${id},"result":{}}`);
    else if (message.method === "server/discover") {
      const versions = LEGACY_VERSIONS.join(", ");
      out.refuse(ErrorCode.methodNotFound, `Versions ${versions} are spoken here. Send initialize first.`, id);
    } else out.refuse(ErrorCode.invalidRequest, "Send initialize first.", id);
  }

  #initialize(message: RequestMessage): void {
    const { service, principal, scope, clock, out } = this.#options;
    this.#endSession(new Fault("closing", "The session was begun anew."));
    const facts = initializeFacts(message, principal.id, scope, clock.wall());
    const session = new PipeSession(this.#options, facts);
    this.#session = session;
    const result = introduction(facts.version, service.introduce(session, scope));
    out.send(`{"jsonrpc":"2.0","id":${idText(message)},"result":${JSON.stringify(result)}}`);
  }

  /** Opens the session at the first thing said after initialize: nothing unasked may reach an agent before. */
  #open(session: PipeSession): void {
    if (session.opened) return;
    session.opened = true;
    this.#options.service.sessionOpened(session, session.scope);
  }

  #request(session: PipeSession, message: RequestMessage, batch: PipeBatch | undefined): void {
    const call = new PipeCall(session, message, batch);
    const refusal = batch !== undefined && message.method === "initialize" ? NO_INITIALIZE : session.begin(call);
    if (answersItself(call, refusal)) return;
    this.#open(session);
    handOver(this.#options.service, call, this.#options.failed);
  }

  #endSession(fault: Fault): void {
    const session = this.#session;
    if (session === undefined) return;
    this.#session = undefined;
    session.close(fault);
    if (session.opened) this.#options.service.sessionClosed(session);
  }

  agentLeft(): void {
    this.#session?.agentLeft();
  }

  /** What is in flight is answered with `fault`, if anybody still reads. */
  close(fault: Fault): void {
    this.#endSession(fault);
  }
}
