// The way of a request, on one page: from its method and name to the server that it is for. It knows all stages; the second
// half of a call's way is send.ts, and what servers tell back of their own accord is from-servers.ts.

import type { Cache } from "../cache/cache.js";
import type { Catalog } from "../catalog/catalog.js";
import { findResult, parseFindArguments, unwrapCall } from "../catalog/search.js";
import type { View } from "../catalog/view.js";
import type { Caller, Principal } from "../contracts/caller.js";
import { type ExposedName, type OwnName, type OwnToolName, ownName } from "../contracts/names.js";
import type { ReceiptHandler } from "../contracts/outbox.js";
import type { Pins } from "../contracts/pins.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { AgentCall, Introduction, Service, SessionWatch } from "../contracts/service.js";
import type { ListKind } from "../contracts/upstream.js";
import type { CallObserver } from "../observe/observed-call.js";
import type { Budgets } from "../policy/budget.js";
import { type ContextChanges, Contexts } from "../policy/contexts.js";
import { type Guard, ProgramGuard } from "../policy/guard.js";
import type { Menus } from "../policy/menus.js";
import { decide, type Policy } from "../policy/policy.js";
import { Fault } from "../protocol/errors.js";
import { ErrorCode, isObject } from "../protocol/jsonrpc.js";
import { isLoggingLevel } from "../protocol/log-levels.js";
import type { NotificationMessage } from "../protocol/message.js";
import { agentHeaders } from "../protocol/param-headers.js";
import { faultReply } from "../protocol/reply.js";
import { Access } from "./access.js";
import { AgentNotifications } from "./agent-notifications.js";
import { CallWrapper } from "./call-wrapper.js";
import type { NamedValue } from "./forward.js";
import { FromServers } from "./from-servers.js";
import { looksKnown } from "./lookalikes.js";
import { withContextChange } from "./menu-changes.js";
import { NAME, nameAt } from "./name-at.js";
import { PrincipalMenus } from "./principal-menus.js";
import { Sender } from "./send.js";
import { Subscriptions } from "./subscriptions.js";
import type { TaskIds } from "./tasks/ids.js";
import type { TaskOwners } from "./tasks/owners.js";
import { TASK_ID, TASK_METHODS, Tasks } from "./tasks.js";
import {
  afterFirstTry,
  afterRenewal,
  FirstLists,
  renewalsOf,
  renewed,
  unknownName,
  unreadLists,
} from "./wait-for-lists.js";

/** It is a Map, since a method may be called `constructor`. */
const LISTS: ReadonlyMap<string, ListKind> = new Map([
  ["tools/list", "tools"],
  ["prompts/list", "prompts"],
  ["resources/list", "resources"],
  ["resources/templates/list", "resourceTemplates"],
]);

const REF_NAME = ["params", "ref", "name"];
const REF_URI = ["params", "ref", "uri"];
const URI = ["params", "uri"];

const OF_RESOURCES = ["resources", "resourceTemplates"] as const;
const NO_READINGS: readonly Promise<void>[] = [];

/** What a request that names something unknown has waited for already. It waits for each once. */
type Waited = "nothing" | "first-try" | "renewal";

export interface PipelineDeps {
  readonly catalog: Catalog;
  readonly policy: Policy;
  readonly pins: Pins;
  readonly cache: Cache;
  readonly now: () => number;
  readonly version: string;
  readonly taskIds: TaskIds;
  readonly taskOwners: TaskOwners;
  /** Undefined where nobody wants to know of calls. */
  readonly observer?: CallObserver | undefined;
  /** Told of agents that come and go. Undefined where nobody wants to know. */
  readonly onSession?: SessionWatch | undefined;
  /** Called when what is known of a server has changed: keep its snapshot. */
  readonly onKnown: (server: string) => void;
  readonly log: (level: "info" | "warn" | "error", text: string, error?: unknown) => void;
  /** A text of the server's without the secrets of its entry. Where it is absent, the text is logged as it is. */
  readonly redact?: (server: string, text: string) => string;
}

export class Pipeline implements Service {
  readonly #catalog: Catalog;
  readonly #deps: PipelineDeps;
  readonly #firstLists = new FirstLists((server, kind) => this.#catalog.counts(server)[kind] === 0);
  readonly sessions: AgentNotifications;
  readonly access: Access;
  readonly contexts = new Contexts();
  readonly #guard: ProgramGuard;
  readonly tasks: Tasks;
  /** The second half of a call's way. */
  readonly sender: Sender;
  readonly #observer: CallObserver | undefined;
  readonly fromServers: FromServers;
  /** Undefined where no tool's calls are kept. */
  receipts: Pick<ReceiptHandler, "handle"> | undefined;
  #attached: { servers: Servers; subscriptions: Subscriptions } | undefined;

  constructor(deps: PipelineDeps) {
    this.#deps = deps;
    this.#catalog = deps.catalog;
    this.#observer = deps.observer;
    this.#guard = new ProgramGuard((text, error) => deps.log("error", text, error));
    this.access = new Access(deps.policy, this.#guard, deps.pins);
    this.sessions = new AgentNotifications((session, server) => this.access.sees(session.principal, server));
    const { cache, taskIds, taskOwners, now, log } = deps;
    const { access, sessions } = this;
    const servers = () => this.#servers;
    const needsTask = (server: string, tool: OwnToolName) => this.#catalog.taskSupport(server, tool) === "required";
    this.tasks = new Tasks({ ids: taskIds, owners: taskOwners, access, sessions, servers, needsTask, log });
    this.sender = new Sender({
      access,
      sessions,
      cache,
      tasks: this.tasks,
      now,
      paramHeaders: (server, tool) => agentHeaders(this.#catalog.inputSchema(server, tool)),
      wrapsOutput: (server, tool) => this.#catalog.wrapsOutput(server, tool),
      servers,
      refuse: (call, error) => this.#refuse(call, error),
    });
    const { catalog, pins, onKnown, redact } = deps;
    const subscriptions = () => this.#inUse.subscriptions;
    const parts = { catalog, pins, cache, access, sessions, tasks: this.tasks, servers, subscriptions };
    this.fromServers = new FromServers({ ...parts, now, onKnown, log, redact });
  }

  /** The servers report to us and we send to them: they are attached once they exist. */
  attach(servers: Servers): void {
    const subscriptions = new Subscriptions(this.sessions, servers, (text) => this.#deps.log("info", text));
    this.#attached = { servers, subscriptions };
  }

  /** Whoever is connected is told to look again. */
  setPolicy(policy: Policy): void {
    this.access.policy = policy;
    this.access.menus?.rolesChanged();
    this.#announceLists();
  }

  /** Undefined where there are no rules. Whoever is connected is told to look again. */
  setMenus(menus: Menus | undefined): void {
    const allowsByRole = (principal: Principal, server: string, tool: OwnToolName) =>
      decide(this.access.policy, principal, server, tool).kind === "allow";
    this.access.menus = menus && new PrincipalMenus(menus, this.contexts, this.#catalog, allowsByRole);
    this.#announceLists();
  }

  /** Those of the principal whose lists become others are told, and no call under way is touched. Throws a Fault. */
  changeContext(principal: string, changes: ContextChanges): void {
    const { sessions, access } = this;
    withContextChange({ sessions, access, catalog: this.#catalog }, principal, () => {
      this.contexts.change(principal, changes);
      access.menus?.contextChanged(principal);
    });
  }

  setBudgets(budgets: Budgets | undefined): void {
    this.sender.budgets = budgets;
  }

  get budgets(): Budgets | undefined {
    return this.sender.budgets;
  }

  setGuard(guard: Guard | undefined): void {
    this.#guard.set(guard);
    this.#announceLists();
  }

  /**
   * Asks the guard about a tool, as it is called at `/mcp/<server>`, that handle() could not ask about at once: its
   * server has not been read, or does not list it. Throws a Fault `denied`.
   */
  demandUnlisted(principal: Principal, server: string, tool: ExposedName): void {
    const isRead = this.#servers.get(server)?.listed === true;
    if (isRead && this.#catalog.resolveTool(tool, server).kind === "found") return;
    this.access.demandByGuard(principal, server, this.#catalog.ownTool(server, tool));
  }

  /** Reads the tools of servers again whose lists may be old, as for an agent that asks. Waits a short time alone. */
  async renewTools(): Promise<void> {
    const readings = [...this.#servers.all].flatMap((server) => server.renew?.("tools", "asked") ?? []);
    if (readings.length > 0) await renewed(readings);
  }

  /** Tools of the server were quarantined or set free. */
  pinsChanged(server: string): void {
    this.#catalog.clearPages();
    this.sessions.listChanged("tools", [server]);
  }

  #announceLists(): void {
    this.#catalog.clearPages();
    // Templates are told of with resources.
    for (const kind of ["tools", "prompts", "resources"] as const) this.sessions.listChanged(kind, undefined);
  }

  // ── Service: what agents ask ─────────────────────────────────────────────────────────────────────────────────

  hasScope(server: string): boolean {
    return this.#servers.get(server) !== undefined;
  }

  introduce(caller: Caller, scope: string | undefined): Introduction {
    const sees = (server: string) => this.access.sees(caller.principal, server);
    return {
      capabilities: this.#catalog.capabilities(scope, sees, caller.era),
      serverInfo: { name: "toolway", title: "Toolway", version: this.#deps.version },
      instructions: this.#catalog.instructions(scope, sees),
      own: scope !== undefined && sees(scope) ? this.#catalog.introOf(scope) : undefined,
    };
  }

  handle(call: AgentCall): void {
    const own = this.#observer === undefined ? call : this.#observer.observed(call);
    try {
      this.#route(own);
    } catch (error) {
      this.#refuse(own, error);
    }
  }

  refusal(call: AgentCall): Fault | undefined {
    try {
      this.#demandStill(call);
      return undefined;
    } catch (error) {
      if (error instanceof Fault) return error;
      throw error;
    }
  }

  handleNotification(session: Caller, message: NotificationMessage, scope: string | undefined): void {
    const { method } = message;
    if (method === "notifications/progress") {
      for (const server of this.#servers.all) {
        if (server.sessionConnection(session)?.agentProgress(session.sessionKey, message)) return;
      }
    } else if (method === "notifications/roots/list_changed") {
      // A shared server could not ask for the new roots: it would not be told whose.
      for (const server of this.#servers.all) {
        if (server.isolation === "session") server.sessionConnection(session)?.notify(message, session);
      }
    } else if (!looksKnown(method)) {
      // A request without its id would reach tools that nobody judged, at a server that does not look for the id.
      const name = this.#soleServer(scope);
      const server = name === undefined ? undefined : this.#servers.get(name);
      if (server === undefined || this.access.decide(session.principal, server.name, undefined).kind !== "allow")
        return;
      const told = this.tasks.tellServer(message, session, server, scope);
      if (told !== undefined) server.sessionConnection(session)?.notify(told, session);
    }
  }

  sessionOpened(session: Caller, scope: string | undefined, isFromBefore = false): void {
    this.#inUse.subscriptions.sessionOpened(session, scope);
    this.#deps.onSession?.(isFromBefore ? "resumed" : "opened", session, scope);
  }

  catchUp(session: Caller, scope: string | undefined): void {
    const capabilities = this.#catalog.capabilities(scope, (server) => this.access.sees(session.principal, server));
    this.sessions.catchUp(session.sessionKey, capabilities);
  }

  sessionClosed(session: Caller, fault?: string): void {
    this.#deps.onSession?.("closed", session, undefined, fault);
    this.#inUse.subscriptions.sessionClosed(session);
    this.#servers.sessionClosed(session.sessionKey);
  }

  // ── From a method to its server ─────────────────────────────────────────────────────────────────────────────────────────────────

  #route(call: AgentCall): void {
    if (this.receipts?.handle(call) === true) return;
    const { message } = call;
    const kind = LISTS.get(message.method);
    if (kind !== undefined) {
      const cursor = message.params?.["cursor"];
      if (cursor !== undefined && typeof cursor !== "string") throw new Fault("invalid", '"cursor" is a string.');
      // Pages that follow are of the list that the first one was of.
      const { listEvents } = this.#servers;
      const wait =
        cursor === undefined
          ? this.#firstLists.waitFor(this.#seen(call), kind, this.#deps.now(), listEvents)
          : undefined;
      if (wait === undefined) this.#list(call, kind, cursor);
      else this.#afterRenewal(call, wait.readings, () => this.#list(call, kind, cursor), wait.withinMs);
      return;
    }
    switch (message.method) {
      case "tools/call":
        this.#tool(call);
        return;
      case "prompts/get":
        this.#prompt(call, NAME);
        return;
      case "resources/read":
      case "resources/subscribe":
      case "resources/unsubscribe":
        this.#resource(call);
        return;
      case "completion/complete":
        this.#complete(call);
        return;
      case "logging/setLevel":
        this.#setLevel(call);
        return;
      case "tasks/list":
        this.tasks.list(call);
        return;
      default:
        if (TASK_METHODS.has(message.method)) this.#task(call);
        else this.#unknown(call);
    }
  }

  #list(call: AgentCall, kind: ListKind, cursor: string | undefined): void {
    call.reply(this.#catalog.page(kind, this.access.view(call.caller, call.scope), cursor));
  }

  #tool(call: AgentCall, waited: Waited = "nothing"): void {
    const name = nameAt(call, NAME);
    const found = this.#catalog.resolveTool(name, call.scope);
    if (found.kind === "found") {
      const { server, own } = found;
      this.#send(call, server, own, own, renamed(NAME, name, own));
    } else if (found.kind === "unknown") {
      this.#unlisted(call, "tools", name, found.server, waited, (next) => this.#tool(call, next));
    } else if (found.tool === "find_tools") this.#findTools(call);
    else this.#tool(foundCall(call));
  }

  #prompt(call: AgentCall, path: readonly string[], waited: Waited = "nothing"): void {
    const name = nameAt(call, path);
    const found = this.#catalog.resolvePrompt(name, call.scope);
    if (found.kind === "found") this.#send(call, found.server, undefined, found.own, renamed(path, name, found.own));
    else this.#unlisted(call, "prompts", name, found.server, waited, (next) => this.#prompt(call, path, next));
  }

  /** A name that is not listed; `server` is the only one that may yet list it. */
  #unlisted(
    call: AgentCall,
    kind: "tools" | "prompts",
    name: ExposedName,
    server: string | undefined,
    waited: Waited,
    again: (waited: Waited) => void,
  ): void {
    const meant = () => this.#catalog.candidates(kind, name, call.scope);
    const isWaiting = this.#awaits(
      call,
      [kind],
      meant,
      // A name with nobody's prefix is waited for by nobody: it is a typo, and no list will bring it.
      unreadLists(this.#servers, server === undefined ? meant() : [server]),
      waited,
      again,
    );
    if (!isWaiting) throw unknownName(this.#servers, kind === "tools" ? "tool" : "prompt", name, server);
  }

  /** True where what is asked for may come with lists that are yet to be read, or are read again for it. */
  #awaits(
    call: AgentCall,
    kinds: readonly ListKind[],
    meant: () => readonly string[],
    unread: readonly Promise<void>[],
    waited: Waited,
    again: (waited: Waited) => void,
  ): boolean {
    if (waited === "nothing" && unread.length > 0) {
      this.#afterFirstTry(call, unread, () => again("first-try"));
      return true;
    }
    const readings = waited === "renewal" ? NO_READINGS : renewalsOf(this.#seen(call, meant()), kinds, "missed");
    if (readings.length === 0) return false;
    this.#afterRenewal(call, readings, () => again("renewal"));
    return true;
  }

  /** These servers, as far as the principal may know of them. */
  #seen({ caller, scope }: AgentCall, names?: readonly string[]): readonly ServerHandle[] {
    const servers = this.#servers;
    const of = names ?? (scope === undefined ? undefined : [scope]);
    const meant = of === undefined ? servers.handles : of.flatMap((name) => servers.get(name) ?? []);
    return this.access.seen(caller.principal, meant);
  }

  #findTools(call: AgentCall): void {
    const find = () => {
      const view = this.access.view(call.caller, call.scope);
      this.#find(call, view).catch((error: unknown) => this.#refuse(call, error));
    };
    const readings = renewalsOf(this.#seen(call), ["tools"], "asked");
    if (readings.length === 0) find();
    else this.#afterRenewal(call, readings, find);
  }

  /** Rejects where the search itself failed; the call has then not been answered. */
  async #find(call: AgentCall, view: View): Promise<void> {
    const wanted = parseFindArguments(call.message.params?.["arguments"]);
    const found = typeof wanted === "string" ? wanted : await this.#catalog.find(wanted.query, wanted.limit, view);
    call.reply({ kind: "result", result: findResult(found) });
  }

  #resource(call: AgentCall, waited: Waited = "nothing"): void {
    const { method, params } = call.message;
    const uri = params?.["uri"];
    if (typeof uri !== "string") throw new Fault("invalid", `${method} needs "uri".`);
    const server = this.#catalog.resolveResource(uri, call.scope);
    if (server === undefined) {
      const meant = () => (call.scope === undefined ? this.#servers.names : [call.scope]);
      const unread = unreadLists(this.#servers, meant());
      if (this.#awaits(call, OF_RESOURCES, meant, unread, waited, (next) => this.#resource(call, next))) return;
      call.reply({
        kind: "error",
        error: { code: ErrorCode.resourceNotFound, message: `Resource not found: ${uri}`, data: { uri } },
      });
      return;
    }
    if (method === "resources/subscribe") this.#subscribe(call, server, uri);
    else if (method === "resources/unsubscribe") this.#unsubscribe(call, server, uri);
    else this.#send(call, server, undefined, ownName(uri), { path: URI, own: undefined });
  }

  #subscribe(call: AgentCall, server: string, uri: string): void {
    const { watched, undo } = this.#inUse.subscriptions.subscribe(call, server, uri);
    try {
      this.#send(watched, server, undefined, ownName(uri), { path: URI, own: undefined });
    } catch (error) {
      undo();
      throw error;
    }
  }

  #unsubscribe(call: AgentCall, server: string, uri: string): void {
    this.sessions.unsubscribe(call.caller.sessionKey, server, uri);
    if (this.#inUse.subscriptions.isHeld(server, uri, call.caller)) call.reply({ kind: "result", result: {} });
    else this.#send(call, server, undefined, ownName(uri), { path: URI, own: undefined });
  }

  #complete(call: AgentCall): void {
    const ref = call.message.params?.["ref"];
    if (isObject(ref) && ref["type"] === "ref/prompt") {
      this.#prompt(call, REF_NAME);
      return;
    }
    const uri = isObject(ref) ? ref["uri"] : undefined;
    if (typeof uri !== "string") throw new Fault("invalid", 'completion/complete needs "ref": a prompt or a resource.');
    const server = this.#catalog.resolveTemplate(uri, call.scope);
    if (server === undefined) throw new Fault("not-found", `Unknown resource template: ${uri}`);
    this.#send(call, server, undefined, ownName(uri), { path: REF_URI, own: undefined });
  }

  #setLevel(call: AgentCall): void {
    const level = call.message.params?.["level"];
    if (!isLoggingLevel(level)) throw new Fault("invalid", "logging/setLevel needs a level from debug to emergency.");
    void this.#inUse.subscriptions.setLevel(call.caller, level).then(() => call.reply({ kind: "result", result: {} }));
  }

  /** A request about one task goes to the server that the task's id names. */
  #task(call: AgentCall): void {
    const to = this.tasks.address(call);
    if (to !== undefined) this.#send(to.call, to.server, to.tool, to.own, { path: TASK_ID, own: to.own });
  }

  /** A method we do not know goes to the server that alone can be meant. */
  #unknown(call: AgentCall): void {
    const server = looksKnown(call.message.method) ? undefined : this.#soleServer(call.scope);
    if (server !== undefined) {
      this.#send(call, server, undefined, undefined, undefined);
      return;
    }
    const next = looksKnown(call.message.method)
      ? "Write it as the protocol does."
      : "At /mcp/<server> it reaches that server.";
    const message = `Method not found: ${call.message.method}. ${next}`;
    call.reply({ kind: "error", error: { code: ErrorCode.methodNotFound, message } });
  }

  #send(
    call: AgentCall,
    server: string,
    tool: OwnToolName | undefined,
    subject: OwnName | undefined,
    named: NamedValue | undefined,
  ): void {
    this.sender.send(call, { server, tool, subject, named });
  }

  /**
   * Roles, guard and pins once more, of a call that was let through and has waited for its agent since. Menus are not asked
   * again: a change of context touches nothing that is under way. Throws a Fault.
   */
  #demandStill(call: AgentCall): void {
    const { caller, message, scope } = call;
    const { principal } = caller;
    if (message.method === "tools/call") {
      const name = nameAt(call, NAME);
      const found = this.#catalog.resolveTool(name, scope);
      if (found.kind === "unknown") throw unknownName(this.#servers, "tool", name, found.server);
      if (found.kind === "found") {
        this.access.demandUnderWay(principal, found.server, found.own);
        this.access.demandPinned(found.server, found.own);
      } else if (found.tool !== "find_tools") this.#demandStill(foundCall(call));
    } else if (message.method === "prompts/get") {
      const found = this.#catalog.resolvePrompt(nameAt(call, NAME), scope);
      if (found.kind === "found") this.access.demandUnderWay(principal, found.server, undefined);
    } else if (message.method === "resources/read") {
      const server = this.#catalog.resolveResource(String(message.params?.["uri"]), scope);
      if (server !== undefined) this.access.demandUnderWay(principal, server, undefined);
    }
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────

  get #inUse(): { servers: Servers; subscriptions: Subscriptions } {
    if (this.#attached === undefined) throw new Error("pipeline used before attach()");
    return this.#attached;
  }

  get #servers(): Servers {
    return this.#inUse.servers;
  }

  #soleServer(scope: string | undefined): string | undefined {
    const { names } = this.#servers;
    return scope ?? (names.length === 1 ? names[0] : undefined);
  }

  #afterRenewal(call: AgentCall, readings: readonly Promise<void>[], act: () => void, withinMs?: number): void {
    afterRenewal(call, readings, () => this.#guarded(call, act), withinMs);
  }

  #afterFirstTry(call: AgentCall, tries: readonly Promise<void>[], act: () => void): void {
    afterFirstTry(call, tries, () => this.#guarded(call, act));
  }

  /** Whatever goes wrong, the agent is answered. */
  #guarded(call: AgentCall, act: () => void): void {
    try {
      act();
    } catch (error) {
      this.#refuse(call, error);
    }
  }

  /** The agent is told the fault; of what was not foreseen it learns nothing but that there was something. */
  #refuse(call: AgentCall, error: unknown): void {
    if (error instanceof Fault) {
      call.reply(faultReply(error));
      return;
    }
    this.#deps.log("error", `${call.message.method} failed inside the gateway`, error);
    call.reply({
      kind: "error",
      error: { code: ErrorCode.internal, message: "Internal error of the gateway; its log has the details." },
    });
  }
}

/** In plain mode most names are the server's own already. */
function renamed(path: readonly string[], name: ExposedName, own: OwnName): NamedValue {
  return { path, own: (name as string) === own ? undefined : own };
}

/** call_tool{name, arguments} of the search menu becomes the call that it stands for; policy sees that one. */
function foundCall(call: AgentCall): AgentCall {
  return new CallWrapper(call, unwrapCall(call.message));
}
