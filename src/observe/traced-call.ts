// A call with a span: the same call to everybody, but its reply ends the span.

import type { Caller } from "../contracts/caller.js";
import type { AgentCall } from "../contracts/service.js";
import type { RpcError } from "../protocol/jsonrpc.js";
import type { RequestMessage } from "../protocol/message.js";
import type { Era } from "../protocol/modern.js";
import type { ParamHeader } from "../protocol/param-headers.js";
import type { Reply } from "../protocol/reply.js";
import { outcomeOf } from "./outcome.js";
import type { Span } from "./traces.js";

export class TracedCall implements AgentCall {
  readonly span: Span;
  readonly #outer: AgentCall;
  readonly #eraOf: () => Era | undefined;

  /** `eraOf`: the server's era, asked for at the end: before the first call nobody may know it. */
  constructor(outer: AgentCall, span: Span, eraOf: () => Era | undefined) {
    this.#outer = outer;
    this.span = span;
    this.#eraOf = eraOf;
  }

  get caller(): Caller {
    return this.#outer.caller;
  }

  get message(): RequestMessage {
    return this.#outer.message;
  }

  get scope(): string | undefined {
    return this.#outer.scope;
  }

  get notes(): AgentCall["notes"] {
    return this.#outer.notes;
  }

  get onCancel(): AgentCall["onCancel"] {
    return this.#outer.onCancel;
  }

  set onCancel(cancel: AgentCall["onCancel"]) {
    this.#outer.onCancel = cancel;
  }

  headerMismatch(declared: readonly ParamHeader[]): RpcError | undefined {
    return this.#outer.headerMismatch?.(declared);
  }

  reply(reply: Reply): void {
    this.span.era ??= this.#eraOf();
    this.span.end(outcomeOf(reply));
    this.#outer.reply(reply);
  }
}
