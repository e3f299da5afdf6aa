// An agent's request on its way to a server: the agent's own text, with our id, the server's own name of the tool,
// and our progress token in it. Everything else in it is passed on as it came.

import type { Caller } from "./caller.js";
import { isObject, type RpcId } from "./protocol/jsonrpc.js";
import { rewrite } from "./protocol/message.js";
import type { Reply } from "./protocol/reply.js";
import type { AgentCall } from "./service.js";
import type { Upstream, UpstreamCall } from "./upstream.js";

/** The one value of a request that the catalog changes, e.g. `params.name`. */
export interface Renamed {
  readonly path: readonly string[];
  readonly own: string;
}

export class Forward implements UpstreamCall {
  readonly subject: string | undefined;
  readonly progressToken: RpcId | undefined;
  readonly #call: AgentCall;
  readonly #renamed: Renamed | undefined;

  constructor(call: AgentCall, subject: string | undefined, renamed: Renamed | undefined) {
    this.#call = call;
    this.subject = subject;
    this.#renamed = renamed;
    this.progressToken = progressTokenOf(call);
  }

  get caller(): Caller {
    return this.#call.caller;
  }

  get method(): string {
    return this.#call.message.method;
  }

  sendTo(upstream: Upstream): void {
    this.#call.onCancel = (reason) => upstream.cancel(this, reason);
    upstream.send(this);
  }

  render(id: number): string {
    const json = String(id);
    const changes: { path: readonly string[]; json: string }[] = [{ path: ["id"], json }];
    if (this.#renamed !== undefined) {
      changes.push({ path: this.#renamed.path, json: JSON.stringify(this.#renamed.own) });
    }
    if (this.progressToken !== undefined) changes.push({ path: ["params", "_meta", "progressToken"], json });
    return rewrite(this.#call.message, changes);
  }

  reply(reply: Reply): void {
    this.#call.onCancel = undefined;
    this.#call.reply(reply);
  }
}

function progressTokenOf(call: AgentCall): RpcId | undefined {
  const meta = call.message.params?.["_meta"];
  const token = isObject(meta) ? meta["progressToken"] : undefined;
  return typeof token === "string" || typeof token === "number" ? token : undefined;
}
