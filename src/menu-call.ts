// The call inside the search menu's call_tool: another message, the same way back.

import type { Caller } from "./caller.js";
import type { RequestMessage } from "./protocol/message.js";
import type { Reply } from "./protocol/reply.js";
import type { AgentCall } from "./service.js";

export class MenuCall implements AgentCall {
  readonly message: RequestMessage;
  readonly #outer: AgentCall;

  constructor(outer: AgentCall, message: RequestMessage) {
    this.#outer = outer;
    this.message = message;
  }

  get caller(): Caller {
    return this.#outer.caller;
  }

  get scope(): string | undefined {
    return this.#outer.scope;
  }

  get onCancel(): AgentCall["onCancel"] {
    return this.#outer.onCancel;
  }

  set onCancel(cancel: AgentCall["onCancel"]) {
    this.#outer.onCancel = cancel;
  }

  reply(reply: Reply): void {
    this.#outer.reply(reply);
  }
}
