// Tasks over many servers, in both eras: whose they are, which id an agent knows them by, and who may ask about them.
// What a task does is its server's business. Tasks of the two eras are different things, and are not translated.

import { createHash } from "node:crypto";
import type { Caller, Principal } from "../contracts/caller.js";
import { type OwnName, type OwnToolName, ownName } from "../contracts/names.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { AgentCall } from "../contracts/service.js";
import type { ServerIntro, Upstream } from "../contracts/upstream.js";
import { Fault } from "../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject, type RpcError } from "../protocol/jsonrpc.js";
import type { NotificationMessage, RequestMessage } from "../protocol/message.js";
import { ModernError, RELATED_TASK, relatedTask, TASKS_EXTENSION } from "../protocol/modern.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import { messageOf } from "../runtime/expected-error.js";
import { type Access, OPERATOR } from "./access.js";
import type { AgentNotifications } from "./agent-notifications.js";
import { CallWrapper } from "./call-wrapper.js";
import type { OwnedTask, TaskIds } from "./tasks/ids.js";
import { answerList, LIST_PAGE, type ListedTask, TaskRequest } from "./tasks/list.js";
import {
  begunTask,
  type DescribedTask,
  exposeParams,
  exposeReply,
  type TaskReply,
  taskAnswer,
} from "./tasks/messages.js";
import type { TaskOwners } from "./tasks/owners.js";
import type { TaskRecord } from "./tasks/table.js";

export const TASK_ID = ["params", "taskId"];

/** Methods that are about one task. */
export const TASK_METHODS: ReadonlySet<string> = new Set(["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"]);

/** Methods that the modern era has not. */
const LEGACY_METHODS: ReadonlySet<string> = new Set(["tasks/result", "tasks/list"]);

/** What servers tell of a task's state, in the legacy and in the modern era. */
const STATUS: ReadonlySet<string> = new Set(["notifications/tasks/status", "notifications/tasks"]);

/** A session's name in ids: so many characters of its hash are as good as all of it. */
const PLACE_CHARS = 16;

export interface TasksOptions {
  readonly ids: TaskIds;
  readonly owners: TaskOwners;
  readonly access: Access;
  readonly sessions: AgentNotifications;
  readonly servers: () => Servers;
  /** Whether the server's own word is that a tool cannot be called but as a task of 2025-11-25. */
  readonly needsTask: (server: string, tool: OwnToolName) => boolean;
  readonly log: (level: "warn", text: string, error?: unknown) => void;
}

/** Where a request about one task goes. */
export interface TaskAddress {
  readonly server: string;
  readonly tool: OwnToolName | undefined;
  readonly own: OwnName;
  /** The agent's call, whose answer has the ids that it knows. */
  readonly call: AgentCall;
}

/** Whether a call may become a task, or belongs to one. Asked of every call, and hardly ever so. */
export function concernsTasks({ caller, message }: AgentCall): boolean {
  const { params } = message;
  if (params === undefined) return false;
  if (params["task"] !== undefined) return true;
  const meta = params["_meta"];
  if (isObject(meta) && meta[RELATED_TASK] !== undefined) return true;
  return caller.era === "modern" && caller.capabilities["extensions"] !== undefined;
}

export class Tasks {
  readonly #options: TasksOptions;
  readonly #ids: TaskIds;
  readonly #owners: TaskOwners;
  /** By server: other gateways, whose agents may have begun its tasks. */
  readonly #hearing = new Map<string, Set<(message: NotificationMessage) => void>>();

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#ids = options.ids;
    this.#owners = options.owners;
  }

  // ── What agents ask ──────────────────────────────────────────────────────────────────────────────────────────

  /** Undefined where the call has been answered. Throws a Fault for a task that is not this agent's. */
  address(call: AgentCall): TaskAddress | undefined {
    const { caller, message, scope } = call;
    const error = taskRefusal(caller, message.method);
    if (error !== undefined) {
      call.reply({ kind: "error", error });
      return undefined;
    }
    const id = message.params?.["taskId"];
    if (typeof id !== "string") throw new Fault("invalid", `${message.method} needs "taskId".`);
    const { task, record } = this.#resolve(id, caller, scope);
    if (record.era !== caller.era) throw new Fault("invalid", otherEra(id, record));
    const answered = new CallWrapper(call, message, (reply) => this.#answered(reply, task, record, message.method));
    return { server: task.server, tool: task.tool, own: task.own, call: answered };
  }

  list(call: AgentCall): void {
    const { caller, message, scope } = call;
    const error = taskRefusal(caller, message.method);
    if (error !== undefined) {
      call.reply({ kind: "error", error });
      return;
    }
    const principal = keyOf(caller.principal);
    const cursor = message.params?.["cursor"];
    const behind = typeof cursor === "string" ? this.#ids.position(cursor, principal, scope) : undefined;
    if (cursor !== undefined && behind === undefined) {
      throw new Fault("invalid", "Unknown cursor; list again from the start.");
    }
    const tasks: ListedTask[] = [];
    let isMore = false;
    for (const [key, record] of this.#owners.of(principal, behind)) {
      const upstream = this.#listable(record, caller, scope);
      if (upstream === undefined) continue;
      isMore = tasks.length === LIST_PAGE;
      if (isMore) break;
      const exposed = this.#ids.expose({ ...record, tool: record.tool ?? undefined });
      tasks.push({ position: { at: record.at, key }, record, exposed, upstream });
    }
    const last = tasks.at(-1);
    answerList(call, {
      tasks,
      nextCursor: isMore && last !== undefined ? this.#ids.cursor(last.position, principal, scope) : undefined,
      described: (record, text, ended) => this.#owners.described(record, text, ended),
    });
  }

  /** Undefined for a task that this agent is not to see here. */
  #listable(record: TaskRecord, caller: Caller, scope: string | undefined): (() => Upstream) | undefined {
    const { server, tool, place, era } = record;
    const hosted = this.#options.servers().get(server);
    if (hosted === undefined || era !== caller.era || (scope ?? server) !== server) return undefined;
    if (place !== placeOf(hosted, caller)) return undefined;
    if (this.#options.access.decideUnderWay(caller.principal, server, tool ?? undefined).kind === "deny")
      return undefined;
    return () => this.#upstream(hosted, caller);
  }

  /** Why the call cannot be what it asks to be, where eras or bounds forbid it: before it has cost anything. */
  refusal(call: AgentCall, { name, intro }: ServerHandle, tool: OwnToolName | undefined): RpcError | undefined {
    const { caller, message } = call;
    const isTask = asksForTask(message);
    const serverEra = intro === undefined ? undefined : (intro.ownEra ?? intro.era ?? "legacy");
    if (isTask && serverEra !== undefined && serverEra !== caller.era) {
      const what = tool === undefined ? message.method : `Tool "${tool}"`;
      const why =
        caller.era === "legacy" ? "its server speaks 2026-07-28" : "you speak 2026-07-28, where servers decide";
      return notFound(`${what} of server "${name}" cannot be run as a task of 2025-11-25: ${why}. Leave "task" out.`);
    }
    if (caller.era === "modern" && serverEra === "legacy" && tool !== undefined && hasTasks(intro)) {
      if (this.#options.needsTask(name, tool)) {
        return notFound(
          `Tool "${tool}" of server "${name}" runs only as a task of 2025-11-25, which an agent of 2026-07-28 does not ` +
            "have. Use an agent of that era.",
        );
      }
    }
    if (isTask && caller.era === "legacy") this.#owners.demandRoom(keyOf(caller.principal));
    return undefined;
  }

  /** The call with an eye on its reply, where it may become a task; and with the server's own ids in it. */
  watch(call: AgentCall, hosted: ServerHandle, tool: OwnToolName | undefined): AgentCall {
    const message = this.#towards(call, hosted);
    if (!this.#mayBegin(call)) return message === call.message ? call : new CallWrapper(call, message);
    return new CallWrapper(call, message, (reply) => this.#replied(call, reply, hosted, tool));
  }

  #mayBegin({ caller, message }: AgentCall): boolean {
    if (caller.era === "legacy") return asksForTask(message);
    return message.method === "tools/call" && declaresTasks(caller.capabilities);
  }

  /** Throws a Fault where the task that the call belongs to is not this agent's. */
  #towards({ message, caller, scope }: AgentCall, hosted: ServerHandle): RequestMessage {
    const id = relatedTask(message.params);
    if (id === undefined) return message;
    const { task } = this.#resolve(id, caller, scope);
    if (task.server !== hosted.name) throw unknownTask(id);
    return exposeParams(message, () => task.own, false);
  }

  /**
   * An agent's notification as the server is to get it, with the server's own ids. Undefined where it names a task that
   * is not this agent's: a server that others use too would take it for one of theirs. A task of the agent's own, which
   * no server began, is told of where the connection is the agent's alone.
   */
  tellServer(
    message: NotificationMessage,
    caller: Caller,
    hosted: ServerHandle,
    scope: string | undefined,
  ): NotificationMessage | undefined {
    const isOfTask = message.method.startsWith("notifications/tasks");
    const related = relatedTask(message.params);
    if (!isOfTask && related === undefined) return message;
    const named: unknown[] = isOfTask ? [message.params?.["taskId"]] : [];
    if (related !== undefined) named.push(related);
    const owns = new Map<string, string>();
    for (const id of named) {
      const own = typeof id === "string" ? this.#ownOf(id, caller, hosted, scope) : undefined;
      if (own === undefined) return undefined;
      owns.set(id as string, own);
    }
    try {
      return exposeParams(message, (id) => owns.get(id) ?? id, isOfTask);
    } catch {
      // Two ids in one place: nobody can tell which is meant, and there is nobody to tell.
      return undefined;
    }
  }

  /** The server's own id of a task that this agent may tell of. */
  #ownOf(id: string, caller: Caller, hosted: ServerHandle, scope: string | undefined): string | undefined {
    try {
      const { task, record } = this.#resolve(id, caller, scope);
      return task.server === hosted.name && this.#mayHear(caller, record) ? task.own : undefined;
    } catch {
      return hosted.isolation === "session" && !this.#ids.isOurs(id) ? id : undefined;
    }
  }

  #resolve(
    id: string,
    caller: Caller,
    scope: string | undefined,
  ): { readonly task: OwnedTask; readonly record: TaskRecord } {
    const task = this.#ids.open(id, keyOf(caller.principal));
    const record = task === undefined || (scope ?? task.server) !== task.server ? undefined : this.#owners.find(task);
    if (task === undefined || record === undefined) throw unknownTask(id);
    const hosted = this.#options.servers().get(task.server);
    if (hosted !== undefined && task.place !== placeOf(hosted, caller)) throw unknownTask(id);
    return { task, record };
  }

  // ── What servers answer ──────────────────────────────────────────────────────────────────────────────────────

  /** Undefined where the agent is answered once its task is on disk. */
  #replied(call: AgentCall, reply: Reply, hosted: ServerHandle, tool: OwnToolName | undefined): Reply | undefined {
    let begun: (TaskReply & { readonly task: DescribedTask }) | undefined;
    try {
      begun = begunTask(reply);
      if (begun === undefined) return reply;
      void this.#begin(call, begun, hosted, tool);
      return undefined;
    } catch (error) {
      return unreadable(hosted.name, error);
    }
  }

  async #begin(
    call: AgentCall,
    begun: TaskReply & { readonly task: DescribedTask },
    hosted: ServerHandle,
    tool: OwnToolName | undefined,
  ): Promise<void> {
    const { caller } = call;
    const own = ownName(begun.task.own);
    const task = { server: hosted.name, place: placeOf(hosted, caller), own, tool, principal: keyOf(caller.principal) };
    try {
      const reply = exposeReply(begun, this.#exposer(task), false);
      await this.#owners.begun(task, caller.era, begun.task.lifetimeMs, begun.task.text);
      call.reply(reply);
    } catch (error) {
      this.#giveUp(hosted, caller, own);
      const why = messageOf(error);
      this.#options.log("warn", `a task of server "${hosted.name}" was cancelled, since it could not be kept: ${why}`);
      const code = error instanceof Fault ? error.code : "outcome-unknown";
      const message = `Server "${hosted.name}" began a task that cannot be kept, and was told to cancel it; it may have had effects. ${why}`;
      call.reply(faultReply(new Fault(code, message, { cause: error })));
    }
  }

  /** Nobody can ask about the task, so it is not to go on. */
  #giveUp(hosted: ServerHandle, caller: Caller, own: string): void {
    try {
      this.#upstream(hosted, caller).send(new TaskRequest("tasks/cancel", own, caller, () => {}));
    } catch {
      // The server is gone, and the task with it.
    }
  }

  #answered(reply: Reply, task: OwnedTask, record: TaskRecord, method: string): Reply {
    try {
      const answer = taskAnswer(reply);
      if (answer === undefined) return reply;
      const isResult = method === "tasks/result";
      if (!isResult && answer.task?.own === task.own) {
        this.#owners.described(record, answer.task.text, answer.task.ended);
      }
      return exposeReply(answer, this.#exposer(task), isResult);
    } catch (error) {
      return unreadable(task.server, error);
    }
  }

  // ── What servers say of their own accord ─────────────────────────────────────────────────────────────────────

  /** Calls `act` with what the server says of tasks, under its own ids. The returned function takes that back. */
  onNews(server: string, act: (message: NotificationMessage) => void): () => void {
    const hearing = this.#hearing.get(server) ?? new Set();
    this.#hearing.set(server, hearing.add(act));
    return () => {
      if (hearing.delete(act) && hearing.size === 0 && this.#hearing.get(server) === hearing)
        this.#hearing.delete(server);
    };
  }

  /** True where the notification is about a task: it reaches the task's owner, or nobody. */
  notified(server: string, message: NotificationMessage, caller: Caller | undefined, isOwn: boolean): boolean {
    const isStatus = STATUS.has(message.method);
    const own = isStatus ? message.params?.["taskId"] : relatedTask(message.params);
    if (typeof own !== "string") return isStatus;
    for (const act of this.#hearing.get(server) ?? []) act(message);
    const hosted = this.#options.servers().get(server);
    const place = hosted === undefined || caller === undefined ? "" : placeOf(hosted, caller);
    const record = this.#owners.at({ server, place, own: ownName(own) });
    if (record === undefined) return true;
    if (isStatus) this.#owners.described(record, "", isOver(message.params));
    const told = exposeParams(message, this.#exposer({ ...record, tool: record.tool ?? undefined }));
    const { sessions } = this.#options;
    if (caller !== undefined && this.#mayHear(caller, record)) this.#tell(server, told, caller, isOwn);
    else if (!isOwn) {
      sessions.eachAt(server, (session) => {
        if (this.#mayHear(session, record)) this.#tell(server, told, session, false);
      });
    }
    return true;
  }

  #tell(server: string, message: NotificationMessage, caller: Caller, isOwn: boolean): void {
    const isFor = isOwn ? (session: Caller) => session.sessionKey === caller.sessionKey : undefined;
    this.#options.sessions.notify(server, message, caller, isFor);
  }

  #mayHear({ principal, era }: Caller, record: TaskRecord): boolean {
    if (keyOf(principal) !== record.principal || era !== record.era) return false;
    return this.#options.access.decideUnderWay(principal, record.server, record.tool ?? undefined).kind === "allow";
  }

  /** As `UpstreamEvents.aboutTask`. */
  aboutTask<M extends RequestMessage | NotificationMessage>(server: string, message: M, caller: Caller): M | undefined {
    const own = relatedTask(message.params);
    const hosted = this.#options.servers().get(server);
    if (own === undefined || hosted === undefined || caller.passesOn === true) return message;
    const place = placeOf(hosted, caller);
    const record = this.#owners.at({ server, place, own: ownName(own) });
    if (record !== undefined && !this.#mayHear(caller, record)) return undefined;
    const tool = record?.tool ?? undefined;
    const task = { server, place, own: ownName(own), tool, principal: keyOf(caller.principal) };
    return exposeParams(message, this.#exposer(task));
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** Another task that is named beside `task` gets the id by which its owner knows it, or one that leads nowhere. */
  #exposer(task: OwnedTask): (own: string) => string {
    return (id) => {
      if (id === task.own) return this.#ids.expose(task);
      const own = ownName(id);
      return this.#ids.expose({ ...task, own, tool: this.#owners.at({ ...task, own })?.tool ?? undefined });
    };
  }

  #upstream(hosted: ServerHandle, caller: Caller): Upstream {
    return hosted.upstream(hosted.isolation === "shared" ? caller : this.#options.sessions.sessionOf(caller));
  }
}

/** The operator is nobody that a token could name. */
function keyOf(principal: Principal): string {
  return principal === OPERATOR ? "" : principal.id;
}

/** Processes of one server that belong to different sessions may number their tasks alike. */
function placeOf({ isolation }: ServerHandle, { sessionKey }: Caller): string {
  if (isolation === "shared") return "";
  return createHash("sha256").update(sessionKey).digest("base64url").slice(0, PLACE_CHARS);
}

/** In the legacy era the agent decides. Of what it can ask a server for, only calls of tools become tasks. */
function asksForTask({ method, params }: RequestMessage): boolean {
  return method === "tools/call" && isObject(params?.["task"]);
}

function isOver(params: JsonObject | undefined): boolean {
  return ["completed", "failed", "cancelled"].includes(String(params?.["status"]));
}

function declaresTasks({ extensions }: JsonObject): boolean {
  return isObject(extensions) && TASKS_EXTENSION in extensions;
}

export function hasTasks(intro: ServerIntro | undefined): boolean {
  const { extensions, tasks } = intro?.capabilities ?? {};
  return isObject(tasks) || (isObject(extensions) && TASKS_EXTENSION in extensions);
}

/** In the modern era tasks are an extension, which a request must declare, and has fewer methods. */
export function taskRefusal({ era, capabilities }: Caller, method: string): RpcError | undefined {
  if (era === "legacy") return undefined;
  if (LEGACY_METHODS.has(method)) return notFound(`Method not found: ${method}`);
  if (declaresTasks(capabilities)) return undefined;
  const message = `${method} needs the extension "${TASKS_EXTENSION}" in the request's client capabilities.`;
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  return { code: ModernError.missingCapability, message, data: { requiredCapabilities } };
}

function notFound(message: string): RpcError {
  return { code: ErrorCode.methodNotFound, message };
}

function unknownTask(id: string): Fault {
  return new Fault("not-found", `Unknown task: ${id}`);
}

function otherEra(id: string, { era }: TaskRecord): string {
  const version = era === "legacy" ? "2025-11-25" : "2026-07-28";
  return `Task ${id} was begun by an agent of ${version}; only one of that era can ask about it or cancel it.`;
}

function unreadable(server: string, cause: unknown): Reply {
  const why = messageOf(cause);
  return faultReply(
    new Fault("protocol", `Server "${server}" said something of a task that cannot be read: ${why}`, { cause }),
  );
}
