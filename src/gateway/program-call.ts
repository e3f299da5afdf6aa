// A call that comes from the operator or from the program that embeds us, not through an endpoint.

import type { Caller, Principal } from "../contracts/caller.js";
import type { AgentCall, Service } from "../contracts/service.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject, RpcError } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { type Reply, replyText } from "../protocol/reply.js";
import { ExpectedError } from "../runtime/expected-error.js";

/** What a server, or the gateway for it, answered instead of a result. */
export class CallError extends ExpectedError {
  override readonly name = "CallError";
  override readonly kind = "failed";
  readonly code: number;
  readonly data: unknown;

  constructor(error: RpcError) {
    super(error.message);
    this.code = error.code;
    this.data = error.data;
  }
}

/** Nobody sits behind it: it can be told things, but not asked. */
export class LocalCaller implements Caller {
  readonly principal: Principal;
  readonly sessionKey: string;
  readonly era = "legacy";
  readonly logLevel = undefined;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = {};
  readonly clientInfo: JsonObject = { name: "toolway" };

  constructor(principal: Principal) {
    this.principal = principal;
    this.sessionKey = `local ${principal.id}`;
  }

  setLogLevel(): void {}

  notify(): void {}

  ask(request: RequestMessage): Promise<never> {
    return Promise.reject(
      new Fault("no-caller", `${request.method} cannot be answered here: no agent is behind this call.`),
    );
  }
}

/** Sends one request through the service and reads the whole answer. Rejects with a CallError. */
export async function callLocally(
  service: Service,
  caller: Caller,
  method: string,
  params: JsonObject,
  signal?: AbortSignal,
): Promise<JsonObject> {
  signal?.throwIfAborted();
  const message = parseMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })) as RequestMessage;
  let onAbort = () => {};
  const answered = new Promise<Reply>((resolve, reject) => {
    const call: AgentCall = { caller, message, scope: undefined, reply: resolve, onCancel: undefined };
    onAbort = () => {
      reject(signal?.reason as Error);
      call.onCancel?.("cancelled");
    };
    signal?.addEventListener("abort", onAbort, { once: true });
    service.handle(call);
  });
  // A signal may outlive many calls.
  const reply = await answered.finally(() => signal?.removeEventListener("abort", onAbort));
  const answer = parseMessage(await replyText(reply, "1", { signal }));
  if (answer.kind !== "response") throw new Fault("protocol", `The answer to ${method} is not a response.`);
  if (answer.error !== undefined) throw new CallError(answer.error);
  return answer.result as JsonObject;
}
