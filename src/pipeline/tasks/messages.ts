// Ids of tasks in messages: where they stand, what a reply says of a task, and the message with other ids in it.
// Everything else in a message stays as its sender wrote it.

import { replySize } from "../../protocol/arrived.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import {
  edited,
  locate,
  type Message,
  type NotificationMessage,
  parseBytes,
  type RequestMessage,
  type ResponseMessage,
  rewrite,
  type ScannedText,
  type Scans,
  scanText,
  withValueAt,
} from "../../protocol/message.js";
import { RELATED_TASK } from "../../protocol/modern.js";
import { type BytesReply, editedReply, type Reply, renderReply } from "../../protocol/reply.js";
import type { Edit } from "../../protocol/scan.js";

/** A reply to a call that is longer than this is a result, not a task: nothing is looked for in it. */
const MAX_BEGUN = 256 * 1024;
/** An answer about a task may have its result in it. Reading more than this would hold up everybody else. */
const MAX_ANSWER = 2 * 1024 * 1024;

const MARK = Buffer.from('"taskId"');
const ENDED: ReadonlySet<unknown> = new Set(["completed", "failed", "cancelled"]);

type Path = readonly string[];

const RELATED: Path = ["_meta", RELATED_TASK, "taskId"];
const RESULT_ID: Path = ["result", "taskId"];
const RELATED_IN_PARAMS: Path = ["params", ...RELATED];
const IN_PARAMS: readonly Path[] = [["params", "taskId"], RELATED_IN_PARAMS];

/** A reply that has an id of a task in it, read. */
export interface TaskReply {
  readonly reply: BytesReply;
  readonly message: ResponseMessage & { readonly result: JsonObject };
}

/** What a server says of one task. */
export interface DescribedTask {
  readonly own: string;
  /** The JSON text of its description. */
  readonly text: string;
  readonly ended: boolean;
  /** How long its server keeps it, in milliseconds; null where it does not say. */
  readonly lifetimeMs: number | null;
}

/** The task that a call has become; undefined for any other reply, which nearly all are. */
export function begunTask(reply: Reply): (TaskReply & { readonly task: DescribedTask }) | undefined {
  const read = readReply(reply, MAX_BEGUN);
  if (read === undefined) return undefined;
  const { result } = read.message;
  const path = result["resultType"] === "task" ? ["result"] : ["result", "task"];
  const task = describedAt(read.message, path, path.length === 1 ? result : result["task"]);
  return task === undefined ? undefined : { ...read, task };
}

/** An answer about a task, and what it says of it; undefined where it names none. */
export function taskAnswer(reply: Reply): (TaskReply & { readonly task: DescribedTask | undefined }) | undefined {
  const read = readReply(reply, MAX_ANSWER);
  return read && { ...read, task: describedAt(read.message, ["result"], read.message.result) };
}

function readReply(reply: Reply, maxBytes: number): TaskReply | undefined {
  if (reply.kind !== "bytes" || replySize(reply) > maxBytes || !reply.bytes.includes(MARK)) return undefined;
  const message = parseBytes(renderReply(reply, "0"));
  return message.kind === "response" && isObject(message.result) ? ({ reply, message } as TaskReply) : undefined;
}

function describedAt(message: ScannedText, path: Path, value: unknown): DescribedTask | undefined {
  const own = isObject(value) ? value["taskId"] : undefined;
  const at = locate(message, path);
  if (!isObject(value) || typeof own !== "string" || at === undefined) return undefined;
  const lifetime = value["ttlMs"] ?? value["ttl"];
  return {
    own,
    text: message.text.slice(at.start, at.end),
    ended: ENDED.has(value["status"]),
    lifetimeMs: typeof lifetime === "number" && lifetime >= 0 ? lifetime : null,
  };
}

/** Gives the id that agents see for a server's own. */
export type Expose = (own: string) => string;

/** The same reply, with ids as the agent is to see them. `isResult`: of tasks/result, which is what the tool made. */
export function exposeReply({ reply, message }: TaskReply, expose: Expose, isResult: boolean): BytesReply {
  const paths: Path[] = [
    ["result", ...RELATED],
    ["result", "result", ...RELATED],
  ];
  if (!isResult) paths.push(RESULT_ID, ["result", "task", "taskId"]);
  const { inputRequests } = message.result;
  for (const key of isObject(inputRequests) ? Object.keys(inputRequests) : []) {
    paths.push(["result", "inputRequests", key, "params", ...RELATED]);
  }
  const found = exposures(message, paths, expose);
  return editedReply(
    reply,
    message,
    found.map(({ edit }) => edit),
  );
}

/**
 * A notification or a request with the ids in its params as its receiver is to see them. `isOfTask`: its own `taskId` is
 * one of them. It may be as long as a body can be, and is not read again.
 */
export function exposeParams<M extends RequestMessage | NotificationMessage>(
  message: M,
  expose: Expose,
  isOfTask = true,
): M {
  const exposed = exposures(message, isOfTask ? IN_PARAMS : [RELATED_IN_PARAMS], expose);
  if (exposed.length === 0) return message;
  let params = message.params ?? {};
  for (const { path, id } of exposed) params = withValueAt(params, path.slice(1), id);
  return edited(
    message,
    exposed.map(({ edit }) => edit),
    params,
  );
}

/** The description of a task, under another id. */
export function describedAs(text: string, exposed: string): string {
  const changed = rewrite(scanText(`{"jsonrpc":"2.0","id":0,"result":${text}}`), [
    { path: RESULT_ID, json: JSON.stringify(exposed) },
    { path: ["result", ...RELATED], json: JSON.stringify(exposed) },
  ]);
  const at = locate(scanText(changed), ["result"]);
  return at === undefined ? "{}" : changed.slice(at.start, at.end);
}

function exposures(
  message: Message,
  paths: readonly Path[],
  expose: Expose,
): readonly { readonly path: Path; readonly id: string; readonly edit: Edit }[] {
  const scans: Scans = [];
  return paths.flatMap((path) => {
    const at = locate(message, path, scans);
    const own = path.reduce<unknown>((value, key) => (isObject(value) ? value[key] : undefined), message);
    if (at === undefined || typeof own !== "string") return [];
    const id = expose(own);
    return [{ path, id, edit: { start: at.start, end: at.end, text: JSON.stringify(id) } }];
  });
}
