// A legacy session: who the agent is and what it can do, its calls in flight and what servers ask of it.
// How messages get out is decided by the kinds of session (legacy/http-session.ts, stdio/legacy-pipe.ts).

import type { AgentProfile, Caller, NotificationText, Principal } from "../../contracts/caller.js";
import type { Service } from "../../contracts/service.js";
import { Fault } from "../../protocol/errors.js";
import type { JsonObject, RpcId } from "../../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../../protocol/message.js";
import { Table } from "../../runtime/containers/table.js";
import type { LegacyCall } from "./call.js";
import type { EndpointLimits } from "./limits.js";
import { profileOf } from "./profile.js";
import { SessionQuestions } from "./questions.js";
import type { SessionFacts } from "./session-id.js";

export abstract class LegacySession implements Caller {
  readonly era = "legacy";
  logLevel: string | undefined = undefined;
  /** As it was authenticated last, because a role may change while a session lives. */
  principal: Principal;
  readonly sessionKey: string;
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly profile: AgentProfile | undefined;
  readonly clientInfo: JsonObject;
  readonly scope: string | undefined;
  /** The gateway that made it, where there are several. */
  readonly madeAt: string | undefined;
  readonly takesAnyOutput?: true | undefined;
  /** Calls in flight, by the id that the agent chose. */
  readonly calls = new Table<RpcId, LegacyCall>();
  readonly limits: EndpointLimits;
  lastUsedMs: number;
  #questions: SessionQuestions | undefined;
  #closed = false;

  constructor(principal: Principal, facts: SessionFacts, limits: EndpointLimits, nowMs: number) {
    this.principal = principal;
    this.sessionKey = facts.key;
    this.version = facts.version;
    this.capabilities = facts.capabilities;
    this.profile = profileOf(facts.capabilities);
    this.clientInfo = facts.clientInfo;
    this.scope = facts.scope;
    this.madeAt = facts.home;
    this.limits = limits;
    this.lastUsedMs = nowMs;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /** True where nothing is under way, so that the session can be dropped from memory. */
  get idle(): boolean {
    return this.calls.size === 0 && !this.isAsked;
  }

  /** Where it is asked, where there are several. */
  protected get gateway(): string | undefined {
    return undefined;
  }

  setLogLevel(level: string): void {
    this.logLevel = level;
  }

  notify({ text }: NotificationText): void {
    this.tell(text);
  }

  /** Sends a message outside any request, given as its text. */
  abstract tell(text: string): void;

  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    return this.askBy(request, signal, (text) => this.tell(text));
  }

  askBy(request: RequestMessage, signal: AbortSignal, send: (text: string) => void): Promise<ResponseMessage> {
    if (this.#closed) return Promise.reject(new Fault("closing", "The agent's session has ended."));
    this.#questions ??= new SessionQuestions(this.limits, this.gateway);
    return this.#questions.ask(request, this.capabilities, signal, send);
  }

  /** Whether servers wait for this agent's answers. */
  get isAsked(): boolean {
    return this.#questions !== undefined && this.#questions.size > 0;
  }

  /** The agent will not answer what it is asked now; `why` is a sentence. */
  unanswerable(why: string): void {
    this.#questions?.rejectAll(why);
  }

  /** False for an answer that nobody waits for here. */
  answered(response: ResponseMessage): boolean {
    return this.#questions?.answered(response) ?? false;
  }

  hasCall(id: unknown): boolean {
    return (typeof id === "string" || typeof id === "number") && this.calls.get(id) !== undefined;
  }

  /** Why a request cannot be taken in, or undefined when it was. */
  begin(call: LegacyCall): string | undefined {
    const { id } = call.message;
    const other = this.calls.get(id);
    if (other !== undefined && !other.unreachable) {
      return `A request with the id ${JSON.stringify(id)} is still in flight in this session; ids must be unique.`;
    }
    if (this.calls.size >= this.limits.callsPerSession) {
      return `${this.calls.size} requests are in flight in this session, which is the limit.`;
    }
    this.calls.set(id, call);
    return undefined;
  }

  ended(call: LegacyCall): void {
    const { id } = call.message;
    if (this.calls.get(id) === call) this.calls.delete(id);
  }

  /** A notification of the agent: the endpoint's own stay here, the others go to the service. */
  notified(message: NotificationMessage, service: Service): void {
    if (message.method === "notifications/cancelled") this.#cancelled(message);
    else if (message.method !== "notifications/initialized") service.handleNotification(this, message, this.scope);
  }

  /** Finished and unknown ids are ignored: some clients send one after each success. */
  #cancelled(message: NotificationMessage): void {
    const id = message.params?.["requestId"];
    const reason = message.params?.["reason"];
    if (typeof id !== "string" && typeof id !== "number") return;
    this.calls.get(id)?.cancel(typeof reason === "string" ? reason : undefined);
  }

  /** Takes back what servers wait for, and answers what the agent waits for. */
  close(fault: Fault): void {
    if (this.#closed) return;
    this.#closed = true;
    this.unanswerable("The agent's session ended.");
    for (const call of [...this.calls.values()]) call.close(fault);
  }
}
