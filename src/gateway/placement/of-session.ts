// A call that another gateway passed on, as one of the session that it has there.

import type { Caller, NotificationText, SubscribedUris } from "../../contracts/caller.js";
import type { AgentCall, CallNotes } from "../../contracts/service.js";
import type { RequestMessage, ResponseMessage } from "../../protocol/message.js";
import type { Reply } from "../../protocol/reply.js";
import { isSessionMark, takeSession } from "../../upstream/placed/session-mark.js";

/** The call itself where nobody says whose it is. */
export function ofItsSession(call: AgentCall): AgentCall {
  const taken = takeSession(call.message.text);
  return taken === undefined ? call : new SessionCall(call, taken.text, taken.sessionKey);
}

class SessionCall implements AgentCall {
  readonly caller: Caller;
  readonly message: RequestMessage;
  readonly #call: AgentCall;

  constructor(call: AgentCall, text: string, sessionKey: string) {
    const { message } = call;
    this.#call = call;
    this.caller = new SessionCaller(call.caller, sessionKey);
    this.message = { ...message, text, members: message.members.filter(({ key }) => !isSessionMark(key)) };
  }

  get scope(): string | undefined {
    return this.#call.scope;
  }

  get notes(): CallNotes | undefined {
    return this.#call.notes;
  }

  get onCancel(): AgentCall["onCancel"] {
    return this.#call.onCancel;
  }

  set onCancel(act: AgentCall["onCancel"]) {
    this.#call.onCancel = act;
  }

  reply(reply: Reply): void {
    this.#call.reply(reply);
  }
}

/** The way back is the call's own. */
class SessionCaller implements Caller {
  readonly sessionKey: string;
  readonly principal: Caller["principal"];
  readonly era: Caller["era"];
  readonly logLevel: string | undefined;
  readonly version: string;
  readonly capabilities: Caller["capabilities"];
  readonly clientInfo: Caller["clientInfo"];
  readonly takesAnyOutput = true;
  readonly passesOn = true;
  readonly #caller: Caller;

  constructor(caller: Caller, sessionKey: string) {
    this.#caller = caller;
    this.sessionKey = sessionKey;
    this.principal = caller.principal;
    this.era = caller.era;
    this.logLevel = caller.logLevel;
    this.version = caller.version;
    this.capabilities = caller.capabilities;
    this.clientInfo = caller.clientInfo;
  }

  get subscribed(): SubscribedUris | undefined {
    return this.#caller.subscribed;
  }

  setLogLevel(level: string): void {
    this.#caller.setLogLevel(level);
  }

  notify(notification: NotificationText): void {
    this.#caller.notify(notification);
  }

  ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    return this.#caller.ask(request, signal);
  }
}
