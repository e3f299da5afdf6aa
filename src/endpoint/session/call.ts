// One request of a legacy session, as the service sees it: the call and the way back for what belongs to it.
// How its messages leave is decided by the kinds of call (legacy/post-call.ts, legacy/batch.ts, stdio/legacy-pipe.ts).

import type { AgentProfile, Caller, NotificationText, Principal } from "../../contracts/caller.js";
import type { AgentCall, Service } from "../../contracts/service.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, type JsonObject } from "../../protocol/jsonrpc.js";
import type { RequestMessage, ResponseMessage } from "../../protocol/message.js";
import type { Era } from "../../protocol/modern.js";
import type { Reply } from "../../protocol/reply.js";
import { sentence } from "../../runtime/words/sentence.js";
import type { LegacySession } from "./session.js";

export abstract class LegacyCall implements AgentCall, Caller {
  readonly message: RequestMessage;
  readonly session: LegacySession;
  onCancel: ((reason: string | undefined) => void) | undefined = undefined;
  protected done = false;

  constructor(session: LegacySession, message: RequestMessage) {
    this.session = session;
    this.message = message;
    message.held?.claim();
  }

  get caller(): Caller {
    return this;
  }

  get scope(): string | undefined {
    return this.session.scope;
  }

  get principal(): Principal {
    return this.session.principal;
  }

  get sessionKey(): string {
    return this.session.sessionKey;
  }

  get era(): Era {
    return this.session.era;
  }

  get logLevel(): string | undefined {
    return this.session.logLevel;
  }

  setLogLevel(level: string): void {
    this.session.setLogLevel(level);
  }

  get version(): string {
    return this.session.version;
  }

  get capabilities(): JsonObject {
    return this.session.capabilities;
  }

  get profile(): AgentProfile | undefined {
    return this.session.profile;
  }

  get clientInfo(): JsonObject {
    return this.session.clientInfo;
  }

  get takesAnyOutput(): true | undefined {
    return this.session.takesAnyOutput;
  }

  /** The agent can no longer get this call's reply, so it may use the id again. */
  get unreachable(): boolean {
    return false;
  }

  abstract notify(notification: NotificationText): void;

  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    return this.session.askBy(request, signal, (text) => this.sendRequest(text));
  }

  reply(reply: Reply): void {
    if (this.done) return;
    this.done = true;
    this.onCancel = undefined;
    this.session.ended(this);
    this.message.held?.drop();
    this.write(reply);
  }

  /** The agent cancelled the request, which ends without a response. */
  cancel(reason: string | undefined): void {
    if (this.done) return;
    this.done = true;
    const { onCancel } = this;
    this.onCancel = undefined;
    this.session.ended(this);
    this.message.held?.drop();
    this.abandon();
    onCancel?.(reason);
  }

  /** The session ends: the agent is told, if it can be told, and the service need not go on. */
  close(fault: Fault): void {
    if (this.done) return;
    const { onCancel } = this;
    this.reply({ kind: "error", error: toRpcError(cutOff(this.message.method, fault)) });
    onCancel?.(fault.message);
  }

  /** Sends a server's request, or its cancellation. It must reach the agent, if not on this call's own stream. */
  protected abstract sendRequest(text: string): void;
  protected abstract write(reply: Reply): void;
  protected abstract abandon(): void;
}

/** What the agent is told of a request that ends before its answer: a call of a tool may have been made by then. */
export function cutOff(method: string, fault: Fault): Fault {
  if (method !== "tools/call") return fault;
  return new Fault("outcome-unknown", `${sentence(fault.message)} The call was cancelled, and may have taken effect.`);
}

export const NO_INITIALIZE = "initialize cannot be part of a batch.";

/** Answers what the endpoint answers by itself: a request that cannot be taken in, and a ping. False for all others. */
export function answersItself(call: LegacyCall, refusal: string | undefined): boolean {
  if (refusal !== undefined) {
    call.reply({ kind: "error", error: { code: ErrorCode.invalidRequest, message: refusal } });
  } else if (call.message.method === "ping") call.reply({ kind: "result", result: {} });
  else return false;
  return true;
}

/** A service never throws; should one do so, it costs that call and not the gateway. */
export function handOver(service: Service, call: LegacyCall, failed: (error: unknown) => void): void {
  try {
    service.handle(call);
  } catch (error) {
    failed(error);
    call.reply({ kind: "error", error: toRpcError(error) });
  }
}

/** The id as the agent wrote it, so that numbers which JavaScript cannot hold come back unharmed. */
export function idText(message: RequestMessage): string {
  for (const member of message.members) {
    if (member.key === "id") return message.text.slice(member.start, member.end);
  }
  return JSON.stringify(message.id);
}
