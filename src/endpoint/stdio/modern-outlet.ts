// Modern requests on a pipe (stdio): they stand for themselves, share the channel with a legacy session if there is
// one, and are taken back by their ids.

import type { Principal } from "../../contracts/caller.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { ErrorCode, type RpcError, type RpcId } from "../../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage } from "../../protocol/message.js";
import type { RequestMeta } from "../../protocol/modern.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { Table } from "../../runtime/table.js";
import { checkRequest } from "../modern/checks.js";
import type { ModernEra } from "../modern/era.js";
import type { Outlet } from "../modern/outlet.js";
import { idText } from "../session/call.js";
import type { EndpointLimits } from "../session/limits.js";
import type { PipeOut } from "./out.js";

class PipeOutlet implements Outlet {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #pipe: PipeModern;
  #replied = false;

  constructor(pipe: PipeModern, message: RequestMessage, meta: RequestMeta) {
    this.#pipe = pipe;
    this.message = message;
    this.meta = meta;
  }

  get listening(): boolean {
    return this.message.method === "subscriptions/listen";
  }

  notify(text: string): void {
    if (!this.#replied) this.#pipe.out.notify(text);
  }

  reply(reply: Reply): void {
    if (this.#replied) return;
    this.#replied = true;
    const { out, limits } = this.#pipe;
    const id = idText(this.message);
    this.#pipe.ended(this);
    if (reply.kind === "stream") {
      const broken = new Fault("outcome-unknown", "The reply broke off on its way. The call may have taken effect.");
      out.sendBody(reply.open(id), () => out.send(renderReply({ kind: "error", error: toRpcError(broken) }, id)));
    } else if (reply.kind === "bytes" && reply.bytes.length > limits.outputBytes) {
      const message = `The reply has ${reply.bytes.length} bytes; the limit is ${limits.outputBytes}.`;
      out.send(renderReply({ kind: "error", error: toRpcError(new Fault("limit", message)) }, id));
    } else out.send(renderReply(reply, id));
  }

  /** The agent wants no answer any more, and gets none. */
  cancel(reason: string | undefined): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#pipe.ended(this);
    this.onGone?.(reason);
  }
}

export interface PipeModernOptions {
  readonly era: ModernEra;
  readonly principal: Principal;
  readonly scope: string | undefined;
  readonly limits: EndpointLimits;
  readonly out: PipeOut;
}

export class PipeModern {
  readonly out: PipeOut;
  readonly limits: EndpointLimits;
  readonly #era: ModernEra;
  readonly #principal: Principal;
  readonly #scope: string | undefined;
  readonly #requests = new Table<RpcId, PipeOutlet>();

  constructor({ era, principal, scope, limits, out }: PipeModernOptions) {
    this.#era = era;
    this.#principal = principal;
    this.#scope = scope;
    this.limits = limits;
    this.out = out;
  }

  /** Requests that wait for their answer; one that listens does not. */
  get inFlight(): number {
    let waiting = 0;
    for (const request of this.#requests.values()) if (!request.listening) waiting++;
    return waiting;
  }

  request(message: RequestMessage): void {
    const meta = checkRequest(message, undefined);
    if ("code" in meta) this.#refuse(message, meta);
    else if (this.#requests.get(message.id) !== undefined) {
      const text = `A request with the id ${JSON.stringify(message.id)} is still in flight; ids must be unique.`;
      this.#refuse(message, { code: ErrorCode.invalidRequest, message: text });
    } else {
      const outlet = new PipeOutlet(this, message, meta);
      this.#requests.set(message.id, outlet);
      this.#era.serve(outlet, this.#principal, this.#scope);
    }
  }

  #refuse(message: RequestMessage, error: RpcError): void {
    this.out.send(renderReply({ kind: "error", error }, idText(message)));
  }

  notified(message: NotificationMessage): void {
    this.#era.notified(message, this.#principal, this.#scope);
  }

  /** False where the id is of no modern request. */
  cancelled(message: NotificationMessage): boolean {
    const { requestId, reason } = message.params ?? {};
    const request = this.#requests.get(requestId as RpcId);
    request?.cancel(typeof reason === "string" ? reason : undefined);
    return request !== undefined;
  }

  ended(outlet: PipeOutlet): void {
    this.#requests.delete(outlet.message.id);
  }

  close(fault: Fault): void {
    this.#era.close(fault);
  }
}
