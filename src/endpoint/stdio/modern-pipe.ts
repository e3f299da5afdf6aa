// Modern requests on a pipe (stdio): they stand for themselves, share the channel with a legacy session if there is
// one, and are cancelled by their ids.

import type { Principal } from "../../contracts/caller.js";
import type { Fault } from "../../protocol/errors.js";
import { ErrorCode, type RpcError, type RpcId } from "../../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage } from "../../protocol/message.js";
import type { RequestMeta } from "../../protocol/modern.js";
import type { Reply } from "../../protocol/reply.js";
import { Table } from "../../runtime/containers/table.js";
import { checkRequest } from "../modern/checks.js";
import type { ModernEra } from "../modern/era.js";
import type { Outlet } from "../modern/outlet.js";
import { idText } from "../session/call.js";
import type { PipeOut } from "./out.js";

class PipeOutlet implements Outlet {
  readonly message: RequestMessage;
  readonly meta: RequestMeta;
  onGone: ((reason: string | undefined) => void) | undefined = undefined;
  readonly #pipe: ModernPipe;
  #replied = false;

  constructor(pipe: ModernPipe, message: RequestMessage, meta: RequestMeta) {
    this.#pipe = pipe;
    this.message = message;
    this.meta = meta;
    message.held?.claim();
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
    this.#pipe.ended(this);
    const id = idText(this.message);
    const text = this.#pipe.instead?.(reply, id);
    if (text === undefined) this.#pipe.out.reply(reply, id);
    else this.#pipe.out.send(text);
  }

  /** The agent wants no answer any more, and gets none. */
  cancel(reason: string | undefined): void {
    if (this.#replied) return;
    this.#replied = true;
    this.#pipe.ended(this);
    this.onGone?.(reason);
  }
}

export interface ModernPipeOptions {
  readonly era: ModernEra;
  readonly principal: Principal;
  readonly scope: string | undefined;
  readonly out: PipeOut;
  /** The line in place of a reply. Undefined, or its answer is: the reply goes as it is. */
  readonly instead?: ((reply: Reply, idText: string) => string | undefined) | undefined;
}

export class ModernPipe {
  readonly out: PipeOut;
  readonly instead: ModernPipeOptions["instead"];
  readonly #era: ModernEra;
  readonly #principal: Principal;
  readonly #scope: string | undefined;
  readonly #requests = new Table<RpcId, PipeOutlet>();

  constructor({ era, principal, scope, out, instead }: ModernPipeOptions) {
    this.#era = era;
    this.#principal = principal;
    this.#scope = scope;
    this.out = out;
    this.instead = instead;
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
    this.out.reply({ kind: "error", error }, idText(message));
  }

  notified(message: NotificationMessage): void {
    this.#era.notified(message, this.#principal, this.#scope);
  }

  /** Cancels the request that the notification names. False where that is no modern one. */
  cancel(message: NotificationMessage): boolean {
    const { requestId, reason } = message.params ?? {};
    const request = this.#requests.get(requestId as RpcId);
    request?.cancel(typeof reason === "string" ? reason : undefined);
    return request !== undefined;
  }

  ended(outlet: PipeOutlet): void {
    outlet.message.held?.drop();
    this.#requests.delete(outlet.message.id);
  }

  close(fault: Fault): void {
    this.#era.close(fault);
  }
}
