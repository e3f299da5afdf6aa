// Tasks over many servers: ids that name their server go out with results, and lead the agent's next request back.
// At /mcp/<server> the server's own ids pass as they are. What tasks are is the servers' business.

import { createHmac, timingSafeEqual } from "node:crypto";
import type { Caller } from "../contracts/caller.js";
import { type OwnName, ownName } from "../contracts/names.js";
import type { AgentCall } from "../contracts/service.js";
import type { ServerIntro } from "../contracts/upstream.js";
import { replySize } from "../protocol/arrived.js";
import { Fault } from "../protocol/errors.js";
import { ErrorCode, isObject, type RpcError } from "../protocol/jsonrpc.js";
import { idSpan, locate, parseMessage, rewrite } from "../protocol/message.js";
import { ModernError, TASKS_EXTENSION } from "../protocol/modern.js";
import { type BytesReply, type Reply, renderReply } from "../protocol/reply.js";
import { CallWrapper } from "./call-wrapper.js";

export const TASK_ID = ["params", "taskId"];

/** Methods that are about one task. tasks/list of many servers would need their cursors merged: it is not offered. */
export const TASK_METHODS: ReadonlySet<string> = new Set(["tasks/get", "tasks/update", "tasks/cancel", "tasks/result"]);

/** A reply longer than this is a result, not a task: nothing is looked for in it. */
const MAX_TASK_REPLY = 256 * 1024;

/** Where a legacy result says whose it is. */
const RELATED_TASK = "io.modelcontextprotocol/related-task";

const MARK = Buffer.from('"taskId"');

/** 96 bits: a guess is hopeless, and ids stay short enough for a header. */
const MAC_BYTES = 12;

/** Ids of tasks as agents see them: nobody can make one up, and the same task has the same id each time. */
export class TaskIds {
  readonly #key: Uint8Array;

  constructor(key: Uint8Array) {
    this.#key = key;
  }

  expose(server: string, principalId: string, own: string): string {
    const payload = Buffer.from(JSON.stringify([server, own])).toString("base64url");
    return `${payload}.${this.#mac(principalId, payload).toString("base64url")}`;
  }

  /** Undefined for an id that is not ours, or was given to somebody else. */
  resolve(exposed: string, principalId: string): { readonly server: string; readonly own: OwnName } | undefined {
    const [payload, mac, ...rest] = exposed.split(".");
    if (payload === undefined || mac === undefined || rest.length > 0) return undefined;
    const given = Buffer.from(mac, "base64url");
    const right = this.#mac(principalId, payload);
    if (given.length !== right.length || !timingSafeEqual(given, right)) return undefined;
    const [server, own] = JSON.parse(Buffer.from(payload, "base64url").toString()) as [string, OwnName];
    return { server, own };
  }

  #mac(principalId: string, payload: string): Buffer {
    const text = JSON.stringify(["task", principalId, payload]);
    return createHmac("sha256", this.#key).update(text).digest().subarray(0, MAC_BYTES);
  }
}

export function hasTasks(intro: ServerIntro | undefined): boolean {
  const { extensions, tasks } = intro?.capabilities ?? {};
  return isObject(tasks) || (isObject(extensions) && TASKS_EXTENSION in extensions);
}

/** In the modern era tasks are an extension, which a request must declare, and tasks/result is gone. */
export function taskRefusal({ era, capabilities }: Caller, method: string): RpcError | undefined {
  if (era === "legacy") return undefined;
  if (method === "tasks/result") return { code: ErrorCode.methodNotFound, message: `Method not found: ${method}` };
  const { extensions } = capabilities;
  if (isObject(extensions) && TASKS_EXTENSION in extensions) return undefined;
  const message = `${method} needs the extension "${TASKS_EXTENSION}" in the request's client capabilities.`;
  const requiredCapabilities = { extensions: { [TASKS_EXTENSION]: {} } };
  return { code: ModernError.missingCapability, message, data: { requiredCapabilities } };
}

/** Where a request about one task goes: `id` as the server knows it, `own` where the agent knows it by another. */
export type TaskAddress =
  | { readonly kind: "found"; readonly server: string; readonly id: OwnName; readonly own: OwnName | undefined }
  | { readonly kind: "refused"; readonly error: RpcError };

/** The task's id names the server. Throws a Fault where there is none. */
export function taskAddress({ message, caller, scope }: AgentCall, ids: TaskIds): TaskAddress {
  const error = taskRefusal(caller, message.method);
  if (error !== undefined) return { kind: "refused", error };
  const id = message.params?.["taskId"];
  if (typeof id !== "string") throw new Fault("invalid", `${message.method} needs "taskId".`);
  if (scope !== undefined) return { kind: "found", server: scope, id: ownName(id), own: undefined };
  const found = ids.resolve(id, caller.principal.id);
  if (found === undefined) throw new Fault("not-found", `Unknown task: ${id}`);
  return { kind: "found", server: found.server, id: found.own, own: found.own };
}

/** Over many servers, the ids of tasks in a reply must say whose they are. */
export function watchTasks(call: AgentCall, ids: TaskIds, server: string, intro: ServerIntro | undefined): AgentCall {
  if (call.scope !== undefined || !hasTasks(intro)) return call;
  return new CallWrapper(call, call.message, (reply) => exposeTasks(reply, ids, server, call.caller));
}

/** The reply with the ids of its tasks as the agent is to see them; most replies have none and stay as they are. */
export function exposeTasks(reply: Reply, ids: TaskIds, server: string, caller: Caller): Reply {
  if (reply.kind !== "bytes" || replySize(reply) > MAX_TASK_REPLY || !reply.bytes.includes(MARK)) return reply;
  const message = parseMessage(renderReply(reply, "0").toString());
  const changes = [
    ["result", "taskId"],
    ["result", "task", "taskId"],
    ["result", "_meta", RELATED_TASK, "taskId"],
  ].flatMap((path) => {
    const at = locate(message, path);
    const own: unknown = at === undefined ? undefined : JSON.parse(message.text.slice(at.start, at.end));
    if (typeof own !== "string") return [];
    return [{ path, json: JSON.stringify(ids.expose(server, caller.principal.id, own)) }];
  });
  return changes.length === 0 ? reply : toBytes(rewrite(message, changes), reply);
}

function toBytes(text: string, before: BytesReply): BytesReply {
  const span = idSpan(parseMessage(text));
  return span === undefined ? before : { ...before, ...span, bytes: Buffer.from(text) };
}
