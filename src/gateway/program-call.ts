// Calls that come from the operator or from the program that embeds us, not through an endpoint: whose they are, and
// which are under way. A gateway that closes lets them end.

import type { Caller, Principal } from "../contracts/caller.js";
import type { AgentCall, Service } from "../contracts/service.js";
import type { ToolResult } from "../contracts/tool-result.js";
import { OPERATOR } from "../pipeline/access.js";
import { Fault, type FaultCode, toRpcError } from "../protocol/errors.js";
import type { JsonObject, RpcError } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { ExpectedError } from "../runtime/expected-error.js";
import { resultWithin } from "../runtime/wait.js";

/** So many principals are kept in mind: each is a session, which may have a process of its own. */
const MAX_CALLERS = 1_000;

/** What a server, or the gateway for it, answered instead of a result. */
export class CallError extends ExpectedError {
  override readonly name: string = "CallError";
  override readonly kind = "failed";
  readonly code: number;
  readonly data: unknown;
  /** What went wrong on our side of the wire; undefined where the server itself answered with an error. */
  readonly fault: FaultCode | undefined;

  constructor(error: RpcError, fault?: FaultCode) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
    this.fault = fault;
  }
}

/** Nobody sits behind it: what it is told is heard by nobody, and it cannot be asked. */
export class ProgramCaller implements Caller {
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era = "legacy";
  readonly logLevel = undefined;
  readonly hearsNothing = true;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = { name: "toolway" };
  readonly takesAnyOutput = true;
  inFlight = 0;

  constructor(principal: Principal) {
    this.principal = principal;
    this.sessionKey = sessionKeyOf(principal);
  }

  setLogLevel(): void {}

  notify(): void {}

  ask(request: RequestMessage): Promise<never> {
    return Promise.reject(
      new Fault("no-caller", `${request.method} cannot be answered here: no agent is behind this call.`),
    );
  }
}

/** The operator is known by identity: nobody else's principal makes the same key. */
function sessionKeyOf(principal: Principal): string {
  return principal === OPERATOR ? "operator" : `program ${JSON.stringify([principal.id, principal.role])}`;
}

export interface ProgramRequest {
  readonly principal: Principal;
  /** The one server that is meant, under its own names; undefined for all servers, under the names that agents see. */
  readonly scope: string | undefined;
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal | undefined;
}

export class ProgramCalls {
  readonly #service: Service;
  /** By session key; the one used last is last. */
  readonly #callers = new Map<string, ProgramCaller>();
  readonly #inFlight = new Set<Promise<unknown>>();

  constructor(service: Service) {
    this.#service = service;
  }

  /** Sessions of the service that are the program's, and no agent's. */
  get sessions(): number {
    return this.#callers.size;
  }

  /** Sends one request and reads the whole answer. Rejects with a CallError, a Fault `limit` or the signal's reason. */
  async send(request: ProgramRequest): Promise<JsonObject> {
    const caller = this.#callerOf(request.principal);
    const answered = answerTo(this.#service, caller, request);
    caller.inFlight++;
    this.#inFlight.add(answered);
    try {
      return await answered;
    } finally {
      caller.inFlight--;
      this.#inFlight.delete(answered);
    }
  }

  /** Resolves when all have ended, after `drainMs` at the latest. */
  async ended(drainMs: number): Promise<void> {
    await resultWithin(Promise.allSettled(this.#inFlight), drainMs);
  }

  #callerOf(principal: Principal): ProgramCaller {
    const key = sessionKeyOf(principal);
    let caller = this.#callers.get(key);
    if (caller === undefined) {
      if (this.#callers.size >= MAX_CALLERS) this.#closeOne();
      caller = new ProgramCaller(principal);
      this.#service.sessionOpened(caller, undefined);
    }
    this.#callers.delete(key);
    this.#callers.set(key, caller);
    return caller;
  }

  #closeOne(): void {
    for (const [key, caller] of this.#callers) {
      if (caller.inFlight > 0) continue;
      this.#callers.delete(key);
      this.#service.sessionClosed(caller);
      return;
    }
    throw new Fault("limit", `${MAX_CALLERS} principals have calls in flight; no more are let in.`);
  }
}

/** The service for somebody who uses all servers, and hears of one alone what is said outside a call. */
export function hearingOf(service: Service, server: string): Service {
  return {
    hasScope: (name) => service.hasScope(name),
    introduce: (caller, scope) => service.introduce(caller, scope),
    handle: (call) => service.handle(call),
    refusal: (call) => service.refusal(call),
    handleNotification: (session, message, scope) => service.handleNotification(session, message, scope),
    sessionOpened: (session) => service.sessionOpened(session, server),
    catchUp: (session) => service.catchUp(session, server),
    sessionClosed: (session) => service.sessionClosed(session),
  };
}

async function answerTo(service: Service, caller: Caller, request: ProgramRequest): Promise<JsonObject> {
  const { scope, method, params, signal } = request;
  signal?.throwIfAborted();
  const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })) as RequestMessage;
  let onAbort = () => {};
  const answered = new Promise<Reply>((resolve, reject) => {
    const call: AgentCall = { caller, message, scope, reply: resolve, onCancel: undefined };
    onAbort = () => {
      reject(signal?.reason as Error);
      call.onCancel?.("cancelled");
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    service.handle(call);
  });
  // A signal may outlive many calls.
  const reply = await answered.finally(() => signal?.removeEventListener("abort", onAbort));
  if (reply.kind === "error") throw new CallError(reply.error, reply.fault?.code);
  const answer = parseMessage(await replyText(reply, "1", { signal }));
  if (answer.kind !== "response") {
    const fault = new Fault("protocol", `The answer to ${method} is not a response.`);
    throw new CallError(toRpcError(fault), fault.code);
  }
  if (answer.error !== undefined) throw new CallError(answer.error);
  return answer.result as JsonObject;
}

/** A result without content, as some servers give, has an empty one. */
export function toToolResult(result: JsonObject): ToolResult {
  return (Array.isArray(result["content"]) ? result : { ...result, content: [] }) as ToolResult;
}
