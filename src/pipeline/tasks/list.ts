// tasks/list over many servers: the tasks of one principal, as their servers describe them now. Which those are is known
// from the table of owners, so that no server needs to have lists, and nobody sees the tasks of others.

import type { Caller } from "../../contracts/caller.js";
import { type OwnName, ownName } from "../../contracts/names.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Upstream, UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { ErrorCode, type JsonObject } from "../../protocol/jsonrpc.js";
import { type HopChanges, requestText } from "../../protocol/message.js";
import { faultReply, type Reply, responseOf, resultBytes } from "../../protocol/reply.js";
import type { ListPosition } from "./ids.js";
import { describedAs, taskAnswer } from "./messages.js";
import type { TaskRecord } from "./table.js";

/** Each entry is a question to a server, all of them at once: as many as one can have without noticing. */
export const LIST_PAGE = 50;
/** A server that has not answered by then is shown as it was: one must not hold up the list of the others. */
const LIST_WAIT_MS = 5_000;

/** A request of ours about one task. `caller`: whose capabilities it declares, where the server's era wants that. */
export class TaskRequest implements UpstreamCall {
  readonly caller: Caller | undefined;
  readonly method: string;
  readonly subject: OwnName;
  readonly params: JsonObject;
  readonly progressToken = undefined;
  readonly reply: (reply: Reply) => void;

  constructor(method: string, own: string, caller: Caller | undefined, reply: (reply: Reply) => void) {
    this.method = method;
    this.subject = ownName(own);
    this.params = { taskId: own };
    this.caller = caller;
    this.reply = reply;
  }

  render(id: number, changes?: HopChanges): string {
    return requestText(id, this.method, this.params, changes);
  }
}

export interface ListedTask {
  readonly position: ListPosition;
  readonly record: TaskRecord;
  readonly exposed: string;
  /** Throws a Fault where the server cannot be asked. */
  readonly upstream: () => Upstream;
}

export interface TaskListOptions {
  /** At most LIST_PAGE of them. */
  readonly tasks: readonly ListedTask[];
  /** Undefined on the last page. */
  readonly nextCursor: string | undefined;
  /** What a server says of a task now. */
  readonly described: (record: TaskRecord, text: string, ended: boolean) => void;
}

/** Answers the call, when all servers have answered or the time is over. */
export function answerList(call: AgentCall, { tasks, nextCursor, described }: TaskListOptions): void {
  const texts = new Map<ListedTask, string | undefined>();
  const pending = new Map<UpstreamCall, Upstream>();
  let over = false;
  const end = (reply: Reply): void => {
    if (over) return;
    over = true;
    clearTimeout(timer);
    call.onCancel = undefined;
    for (const [request, upstream] of pending) upstream.cancel(request, "the list is answered");
    call.reply(reply);
  };
  const answer = (): void => {
    const entries = tasks.flatMap((task) => {
      const text = texts.has(task) ? texts.get(task) : task.record.task;
      return text === undefined ? [] : [describedAs(text, task.exposed)];
    });
    const next = nextCursor === undefined ? "" : `,"nextCursor":${JSON.stringify(nextCursor)}`;
    end(resultBytes(`{"tasks":[${entries.join(",")}]${next}}`));
  };
  const timer = setTimeout(answer, LIST_WAIT_MS);
  call.onCancel = (reason) => end(faultReply(new Fault("cancelled", reason ?? "Cancelled.")));
  let asking = tasks.length;
  const asked = (): void => {
    if (--asking === 0) answer();
  };
  for (const task of tasks) {
    const request = new TaskRequest("tasks/get", task.record.own, undefined, (reply) => {
      pending.delete(request);
      if (over) return;
      if (reply.kind === "bytes") texts.set(task, describedNow(reply, task.record, described));
      asked();
    });
    try {
      const upstream = task.upstream();
      pending.set(request, upstream);
      upstream.send(request);
    } catch (error) {
      pending.delete(request);
      if (!(error instanceof Fault)) throw error;
      asked();
    }
  }
  if (tasks.length === 0) answer();
}

/** Undefined for a task that its server does not know any more. */
function describedNow(reply: Reply, record: TaskRecord, described: TaskListOptions["described"]): string | undefined {
  const error = responseOf(reply)?.error;
  let task: { readonly text: string; readonly ended: boolean } | undefined;
  try {
    task = error === undefined ? taskAnswer(reply)?.task : undefined;
  } catch {
    // A description that cannot be read is none.
  }
  const isUnknown = error?.code === ErrorCode.invalidParams;
  if (task !== undefined || isUnknown) described(record, task?.text ?? "", task?.ended ?? true);
  return isUnknown ? undefined : (task?.text ?? record.task);
}
