// One server as other gateways have it: what it says and is asked goes through as it is, under its own names. Whether an agent may
// is decided at the gateway that it came to, which keeps its budget, its cache and its record too; only what was quarantined is
// asked about here once more, since a server that was started anew is seen here first.

import type { Caller, NotificationText, SubscribedUris } from "../../contracts/caller.js";
import { ownName, ownToolName } from "../../contracts/names.js";
import type { AgentCall, CallNotes, Introduction, Service } from "../../contracts/service.js";
import type { Pipeline } from "../../pipeline/pipeline.js";
import type { Fault } from "../../protocol/errors.js";
import type { NotificationMessage, RequestMessage, ResponseMessage } from "../../protocol/message.js";
import { faultReply, type Reply } from "../../protocol/reply.js";
import { isSessionMark, MOVED, takeSession } from "../../upstream/placed/words.js";
import type { ServerPool } from "../../upstream/servers.js";

/** What is kept for the server as a whole, whoever asked: gateways are counted among its sessions for these. */
const OF_SESSIONS: ReadonlySet<string> = new Set(["resources/subscribe", "resources/unsubscribe", "logging/setLevel"]);

/** Requests whose value at this name is what they are about. */
const SUBJECTS: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

interface OneServerParts {
  readonly server: string;
  readonly servers: ServerPool;
  readonly pipeline: Pipeline;
  readonly mayRun: () => boolean;
}

export class OneServer implements Service {
  readonly #parts: OneServerParts;

  constructor(parts: OneServerParts) {
    this.#parts = parts;
  }

  hasScope(server: string): boolean {
    return server === this.#parts.server;
  }

  introduce(): Introduction {
    const { server, servers } = this.#parts;
    const { capabilities = {}, serverInfo = {}, instructions, more } = servers.get(server)?.intro ?? {};
    return { capabilities, serverInfo, instructions, own: { serverInfo, ...(more === undefined ? {} : { more }) } };
  }

  handle(passed: AgentCall): void {
    const { server, pipeline, mayRun } = this.#parts;
    const { method, params } = passed.message;
    if (!mayRun()) {
      passed.reply(faultReply(MOVED));
      return;
    }
    if (OF_SESSIONS.has(method)) {
      pipeline.handle(passed);
      return;
    }
    const name = SUBJECTS.get(method);
    const value = name === undefined ? undefined : params?.[name];
    const subject = typeof value === "string" ? value : undefined;
    const isTool = method === "tools/call" && subject !== undefined;
    pipeline.sender.pass(ofItsSession(passed), {
      server,
      tool: isTool ? ownToolName(subject) : undefined,
      subject: subject === undefined ? undefined : ownName(subject),
      named: name === undefined ? undefined : { path: ["params", name], own: undefined },
    });
  }

  refusal(call: AgentCall): Fault | undefined {
    const name = call.message.method === "tools/call" ? call.message.params?.["name"] : undefined;
    const { pipeline, server } = this.#parts;
    return typeof name === "string" ? pipeline.access.quarantined(server, ownToolName(name)) : undefined;
  }

  handleNotification(session: Caller, message: NotificationMessage, scope: string | undefined): void {
    this.#parts.pipeline.handleNotification(session, message, scope);
  }

  sessionOpened(session: Caller, scope: string | undefined, isFromBefore?: boolean): void {
    this.#parts.pipeline.sessionOpened(session, scope, isFromBefore);
  }

  catchUp(session: Caller, scope: string | undefined): void {
    this.#parts.pipeline.catchUp(session, scope);
  }

  sessionClosed(session: Caller, fault?: string): void {
    this.#parts.pipeline.sessionClosed(session, fault);
  }
}

/** A call that another gateway passed on, as one of the session that it has there; the call itself where nobody says whose it is. */
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
