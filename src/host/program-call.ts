// One request of the embedding program to one server, through the same line that agents' requests take; and what it
// gets instead of a result: an error that says which server, in what state, and when to try again.

import type { Caller, Principal } from "../contracts/caller.js";
import type { AgentCall, Service } from "../contracts/service.js";
import type { ServerState } from "../contracts/status.js";
import { CallError, LocalCaller } from "../gateway/program-call.js";
import { Fault, type FaultCode, toRpcError } from "../protocol/errors.js";
import { isObject, type JsonObject, type RpcError } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { type Reply, replyText } from "../protocol/reply.js";

/** How a server stands when a call to it fails. */
export interface Standing {
  readonly state: ServerState;
  readonly nextTryInMs: number | undefined;
}

/** Why a server, or the host for it, gave no result. */
export class HostCallError extends CallError {
  readonly server: string;
  /** What went wrong on our side of the wire; undefined where the server itself answered with an error. */
  readonly fault: FaultCode | undefined;
  /** Undefined where no such server is hosted. */
  readonly state: ServerState | undefined;
  /** When trying again makes sense: the server's next start, the end of an open breaker, a budget's reset. */
  readonly retryInMs: number | undefined;

  constructor(server: string, error: RpcError, fault: FaultCode | undefined, standing: Standing | undefined) {
    super(error);
    this.server = server;
    this.fault = fault;
    const data = isObject(error.data) ? error.data : {};
    const said = fault === undefined ? undefined : (data["nextTryInMs"] ?? data["resetsInMs"]);
    this.state = standing?.state;
    this.retryInMs = typeof said === "number" ? said : HELD_BY_STATE.has(fault) ? standing?.nextTryInMs : undefined;
  }
}

/** Faults that last as long as the server's state does. */
const HELD_BY_STATE: ReadonlySet<FaultCode | undefined> = new Set(["unavailable", "unauthorized"] as const);

export function hostError(server: string, fault: Fault, standing: Standing | undefined): HostCallError {
  return new HostCallError(server, toRpcError(fault), fault.code, standing);
}

/** A principal of the embedding program: nobody can be asked anything through it. */
export class HostCaller extends LocalCaller {
  override readonly sessionKey: string;
  inFlight = 0;

  constructor(principal: Principal) {
    super(principal);
    this.sessionKey = sessionKeyOf(principal);
  }
}

export function sessionKeyOf({ id, role }: Principal): string {
  return `host ${JSON.stringify([id, role])}`;
}

export interface HostRequest {
  readonly service: Service;
  readonly caller: Caller;
  readonly server: string;
  readonly method: string;
  readonly params: JsonObject;
  readonly signal: AbortSignal | undefined;
  /** Asked when the request fails. */
  readonly standing: () => Standing | undefined;
}

/** Rejects with a HostCallError, or with the signal's reason. */
export async function ask({ service, server, method, params, signal, ...rest }: HostRequest): Promise<JsonObject> {
  signal?.throwIfAborted();
  const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })) as RequestMessage;
  let onAbort = () => {};
  const answered = new Promise<Reply>((resolve, reject) => {
    const call: AgentCall = { caller: rest.caller, message, scope: server, reply: resolve, onCancel: undefined };
    onAbort = () => {
      reject(signal?.reason as Error);
      call.onCancel?.("cancelled");
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    service.handle(call);
  });
  // A signal may outlive many calls.
  const reply = await answered.finally(() => signal?.removeEventListener("abort", onAbort));
  if (reply.kind === "error") throw new HostCallError(server, reply.error, reply.fault?.code, rest.standing());
  const answer = parseMessage(await replyText(reply, "1", { signal }));
  if (answer.kind !== "response") {
    throw hostError(server, new Fault("protocol", `The answer to ${method} is not a response.`), rest.standing());
  }
  if (answer.error !== undefined) throw new HostCallError(server, answer.error, undefined, rest.standing());
  return answer.result as JsonObject;
}
