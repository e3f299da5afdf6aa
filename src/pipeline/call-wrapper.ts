// A call in place of an agent's own, with another message, or with somebody who sees the reply first, and the same way
// back.

import type { Caller } from "../contracts/caller.js";
import type { AgentCall } from "../contracts/service.js";
import type { RequestMessage } from "../protocol/message.js";
import type { Reply } from "../protocol/reply.js";

export class CallWrapper implements AgentCall {
  readonly message: RequestMessage;
  readonly #outer: AgentCall;
  readonly #onReply: ((reply: Reply) => Reply | undefined) | undefined;

  /**
   * `onReply` sees the reply before the agent does, and may put another in its place. Undefined: it answers the outer
   * call itself, later.
   */
  constructor(outer: AgentCall, message: RequestMessage, onReply?: (reply: Reply) => Reply | undefined) {
    this.#outer = outer;
    this.message = message;
    this.#onReply = onReply;
  }

  get caller(): Caller {
    return this.#outer.caller;
  }

  get scope(): string | undefined {
    return this.#outer.scope;
  }

  get traceHeaders(): AgentCall["traceHeaders"] {
    return this.#outer.traceHeaders;
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

  reply(reply: Reply): void {
    const passed = this.#onReply === undefined ? reply : this.#onReply(reply);
    if (passed !== undefined) this.#outer.reply(passed);
  }
}
