// The call inside the search menu's call_tool: another message, the same way back.

import type { Caller } from "./caller.js";
import { Fault } from "./protocol/errors.js";
import { locate, parseMessage, type RequestMessage } from "./protocol/message.js";
import type { Reply } from "./protocol/reply.js";
import type { AgentCall } from "./service.js";

export class MenuCall implements AgentCall {
  readonly message: RequestMessage;
  readonly #outer: AgentCall;

  /** Throws a Fault where call_tool's arguments name no tool. */
  constructor(outer: AgentCall) {
    this.#outer = outer;
    this.message = innerMessage(outer.message);
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

/** call_tool{name, arguments} as the tools/call that it stands for, in the agent's own spelling of the values. */
function innerMessage(message: RequestMessage): RequestMessage {
  const text = (path: readonly string[]) => {
    const at = locate(message, path);
    return at === undefined ? undefined : message.text.slice(at.start, at.end);
  };
  const name = text(["params", "arguments", "name"]);
  if (name === undefined) throw new Fault("invalid", 'call_tool needs "name": a tool that find_tools gave.');
  const inner = text(["params", "arguments", "arguments"]);
  const meta = text(["params", "_meta"]);
  const members = [`"name":${name}`];
  if (inner !== undefined) members.push(`"arguments":${inner}`);
  if (meta !== undefined) members.push(`"_meta":${meta}`);
  const id = JSON.stringify(message.id);
  return parseMessage(
    `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${members.join(",")}}}`,
  ) as RequestMessage;
}
