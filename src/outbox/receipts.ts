// Where agents ask after their writes: the tool, the resource with its subscriptions, and tasks for modern agents that
// know them. Only the principal of a write learns of it; to anybody else its id is unknown.

import type { Caller, Principal } from "../contracts/caller.js";
import { type OwnName, type OwnToolName, ownName } from "../contracts/names.js";
import {
  DEFAULT_RECEIPTS_LISTED,
  MAX_RECEIPT_WAIT_S,
  MAX_RECEIPTS_LISTED,
  RECEIPT_PLACE,
  RECEIPT_TOOL,
  RECEIPT_URI,
  type Receipt,
  type ReceiptHandler,
  type Receipts,
} from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import { ErrorCode, isObject, isRpcError, type JsonObject, type RpcError } from "../protocol/jsonrpc.js";
import { makeNotification } from "../protocol/message.js";
import { TASKS_EXTENSION } from "../protocol/modern.js";
import { type Reply, resultBytes } from "../protocol/reply.js";
import { ENDED_MS } from "./lanes/limits.js";
import { News } from "./news.js";
import {
  hasEnded,
  parsed,
  queuedResult,
  receiptJson,
  receiptResult,
  receiptsResult,
  stateSentence,
  withMembers,
} from "./receipt-text.js";

/** So often an agent that waits hears that we are still at it. */
const PROGRESS_MS = 5_000;
/** So many calls wait at one time; one more is answered at once with what is known. */
const MAX_WAITING = 1_000;

/** So long an agent should wait before it asks again for a task: servers that were away come back in seconds. */
const POLL_MS = 5_000;

interface ReceiptTask {
  readonly server: string;
  readonly place: string;
  readonly own: OwnName;
  readonly tool: OwnToolName | undefined;
  readonly principal: string;
}

export interface ReceiptHandlerOptions {
  readonly receipts: Receipts;
  /** Whom a write is kept for; the operator is nobody that a token could name. */
  readonly keyOf: (principal: Principal) => string;
  /** Whether calls may be kept at this path: only there are the names ours. */
  readonly hasOutbox: (scope: string | undefined) => boolean;
  /** Whether what became of a write of this tool is told unasked. */
  readonly tells: (server: string, tool: OwnToolName) => boolean;
  readonly subscribers: {
    subscribe(sessionKey: string, uri: string): "new" | "known" | Fault;
    unsubscribe(sessionKey: string, uri: string): void;
    updated(uri: string): void;
  };
  /** How other tasks' ids are sealed, so that these look the same. */
  readonly taskIds: {
    expose(task: ReceiptTask): string;
    open(exposed: string, principal: string): ReceiptTask | undefined;
  };
  /** Milliseconds since 1970. */
  readonly wall: () => number;
}

/** A call that waits for the end of a write. */
interface Waiting {
  readonly id: string;
  /** Answers with what is known, and lets go of all that it holds. */
  end(): void;
}

export class LocalReceiptHandler implements ReceiptHandler {
  readonly #options: ReceiptHandlerOptions;
  readonly #news: News;
  readonly #waiting = new Map<string, Set<Waiting>>();
  readonly #stop: () => void;
  #waitingCount = 0;

  constructor(options: ReceiptHandlerOptions) {
    this.#options = options;
    this.#news = new News(options.wall());
    this.#stop = options.receipts.onChange((principal, receipt) => this.#changed(principal, receipt));
  }

  close(): void {
    this.#stop();
    for (const all of [...this.#waiting.values()]) for (const one of [...all]) one.end();
  }

  handle(call: AgentCall): boolean {
    const { method, params } = call.message;
    switch (method) {
      case "tools/call": {
        const args = params?.["arguments"];
        const id = isObject(args) ? args["id"] : undefined;
        if (params?.["name"] !== RECEIPT_TOOL || !this.#isOurs(call, id)) return false;
        this.#tool(call, args);
        return true;
      }
      case "resources/read":
      case "resources/subscribe":
      case "resources/unsubscribe": {
        const uri = params?.["uri"];
        if (typeof uri !== "string" || !uri.startsWith(RECEIPT_URI)) return false;
        if (!this.#isOurs(call, uri.slice(RECEIPT_URI.length))) return false;
        this.#resource(call, uri);
        return true;
      }
      case "tasks/get":
      case "tasks/cancel":
      case "tasks/update": {
        const id = params?.["taskId"];
        return call.caller.era === "modern" && typeof id === "string" && this.#task(call, id);
      }
      default:
        return false;
    }
  }

  /** Where no tool has an outbox any more, the names are whoever's they are; but who has a receipt may ask after it. */
  #isOurs({ caller, scope }: AgentCall, id: unknown): boolean {
    if (this.#options.hasOutbox(scope)) return true;
    const { receipts, keyOf } = this.#options;
    return typeof id === "string" && receipts.get(keyOf(caller.principal), id) !== undefined;
  }

  taken(caller: Caller, receipt: Receipt): Reply {
    if (knowsTasks(caller))
      return { kind: "result", result: { ...this.#described(caller, receipt), resultType: "task" } };
    this.#news.given(receipt.id);
    return { kind: "result", result: queuedResult(receipt) };
  }

  withNews(caller: Caller, reply: Reply): Reply {
    return this.#news.into(reply, this.#options.keyOf(caller.principal));
  }

  #changed(principal: string, receipt: Receipt): void {
    if (this.#options.tells(receipt.server, receipt.tool)) this.#news.changed(principal, receipt);
    this.#options.subscribers.updated(RECEIPT_URI + receipt.id);
    if (hasEnded(receipt)) for (const one of [...(this.#waiting.get(receipt.id) ?? [])]) one.end();
  }

  /** Whoever asks has heard of its end. */
  #find(caller: Caller, id: string): Receipt | undefined {
    const principal = this.#options.keyOf(caller.principal);
    const receipt = this.#options.receipts.get(principal, id);
    if (receipt !== undefined && hasEnded(receipt)) this.#news.heard(principal, id);
    return receipt;
  }

  // ── The tool ─────────────────────────────────────────────────────────────────────────────────────────────────

  #tool(call: AgentCall, args: unknown): void {
    const read = readArguments(args);
    if (typeof read === "string") {
      call.reply({ kind: "result", result: mistake(read) });
      return;
    }
    const { id, waitMs, limit } = read;
    const { caller } = call;
    if (id === undefined) {
      const all = this.#options.receipts.of(this.#options.keyOf(caller.principal), limit);
      if (!(all instanceof Promise)) call.reply({ kind: "result", result: receiptsResult(all) });
      else void all.then((found) => call.reply({ kind: "result", result: receiptsResult(found) }));
      return;
    }
    const receipt = this.#find(caller, id);
    if (receipt === undefined) {
      call.reply({ kind: "result", result: mistake(`You have no receipt ${JSON.stringify(id)}. ${LIST_HINT}`) });
    } else if (waitMs === 0 || hasEnded(receipt) || this.#waitingCount >= MAX_WAITING) {
      call.reply(resultBytes(receiptResult(receipt)));
    } else {
      this.#wait(call, id, waitMs);
    }
  }

  #wait(call: AgentCall, id: string, waitMs: number): void {
    const { caller } = call;
    const token = progressToken(call.message.params);
    let beats = 0;
    const progress =
      token === undefined
        ? undefined
        : setInterval(() => {
            beats++;
            const params = { progressToken: token, progress: beats, message: "Still waiting for the end of the call." };
            const method = "notifications/progress";
            caller.notify(makeNotification(method, params));
          }, PROGRESS_MS).unref();
    const letGo = () => {
      clearTimeout(timer);
      clearInterval(progress);
      call.onCancel = undefined;
      const all = this.#waiting.get(id);
      if (all?.delete(waiting) === true) this.#waitingCount--;
      if (all?.size === 0) this.#waiting.delete(id);
    };
    const waiting: Waiting = {
      id,
      end: () => {
        letGo();
        const receipt = this.#find(caller, id);
        if (receipt !== undefined) call.reply(resultBytes(receiptResult(receipt)));
        else call.reply({ kind: "result", result: mistake(`The receipt ${JSON.stringify(id)} is gone.`) });
      },
    };
    const timer = setTimeout(waiting.end, waitMs).unref();
    call.onCancel = () => {
      letGo();
      call.reply({ kind: "error", error: toRpcError(new Fault("cancelled", "The question was taken back.")) });
    };
    const all = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, all.add(waiting));
    this.#waitingCount++;
  }

  // ── The resource ─────────────────────────────────────────────────────────────────────────────────────────────

  #resource(call: AgentCall, uri: string): void {
    const { caller, message } = call;
    const { subscribers } = this.#options;
    if (message.method === "resources/unsubscribe") {
      subscribers.unsubscribe(caller.sessionKey, uri);
      call.reply({ kind: "result", result: {} });
      return;
    }
    const receipt = this.#find(caller, uri.slice(RECEIPT_URI.length));
    if (receipt === undefined) {
      const error = { code: ErrorCode.resourceNotFound, message: `Resource not found: ${uri}`, data: { uri } };
      call.reply({ kind: "error", error });
    } else if (message.method === "resources/read") {
      const contents = [{ uri, mimeType: "application/json", text: receiptJson(receipt) }];
      call.reply({ kind: "result", result: { contents } });
    } else {
      const kept = subscribers.subscribe(caller.sessionKey, uri);
      if (kept instanceof Fault) throw kept;
      call.reply({ kind: "result", result: {} });
    }
  }

  // ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────

  #task(call: AgentCall, exposed: string): boolean {
    const { caller, message, scope } = call;
    const principal = this.#options.keyOf(caller.principal);
    const task = this.#options.taskIds.open(exposed, principal);
    if (task?.place !== RECEIPT_PLACE) return false;
    const receipt = (scope ?? task.server) === task.server ? this.#find(caller, task.own) : undefined;
    if (receipt === undefined || !knowsTasks(caller)) throw new Fault("not-found", `Unknown task: ${exposed}`);
    if (message.method === "tasks/get") call.reply(this.#taskReply(caller, receipt));
    else if (message.method === "tasks/update") {
      throw new Fault("invalid", "This task asks nothing, so that there is nothing to answer.");
    } else void this.#cancel(call, principal, receipt.id);
    return true;
  }

  /** Never rejects. What was sent is not taken back; the task says so. */
  async #cancel(call: AgentCall, principal: string, id: string): Promise<void> {
    try {
      await this.#options.receipts.cancel(principal, id);
      call.reply({ kind: "result", result: {} });
    } catch (error) {
      const fault =
        error instanceof Fault ? error : new Fault("unavailable", `It could not be taken back: ${String(error)}`);
      call.reply({ kind: "error", error: toRpcError(fault), fault });
    }
  }

  /** The server's result in it is as it was written. */
  #taskReply(caller: Caller, receipt: Receipt): Reply {
    const task = this.#described(caller, receipt);
    if (task["status"] !== "completed" || receipt.result === undefined) return { kind: "result", result: task };
    const { result: _result, ...rest } = task;
    return resultBytes(withMembers(JSON.stringify(rest), { result: receipt.result }));
  }

  #described({ principal }: Caller, receipt: Receipt): JsonObject {
    const { id, server, tool, takenMs, sinceMs } = receipt;
    const owner = this.#options.keyOf(principal);
    return {
      taskId: this.#options.taskIds.expose({ server, place: RECEIPT_PLACE, own: ownName(id), tool, principal: owner }),
      statusMessage: stateSentence(receipt),
      createdAt: new Date(takenMs).toISOString(),
      lastUpdatedAt: new Date(sinceMs).toISOString(),
      ttlMs: ENDED_MS,
      pollIntervalMs: POLL_MS,
      ...outcomeOf(receipt),
    };
  }
}

const LIST_HINT = `Call ${RECEIPT_TOOL} without an id for all that you have.`;

function mistake(text: string): JsonObject {
  return { content: [{ type: "text", text }], isError: true };
}

/** A text for the agent where its arguments cannot be used. */
function readArguments(
  args: unknown,
): { readonly id: string | undefined; readonly waitMs: number; readonly limit: number } | string {
  if (args !== undefined && !isObject(args)) return `The arguments of ${RECEIPT_TOOL} are an object.`;
  const { id, wait = 0, limit = DEFAULT_RECEIPTS_LISTED } = args ?? {};
  if (id !== undefined && (typeof id !== "string" || id === "")) return `"id" is the id of a receipt. ${LIST_HINT}`;
  if (typeof wait !== "number" || !(wait >= 0)) return `"wait" is a number of seconds, ${MAX_RECEIPT_WAIT_S} at most.`;
  if (wait > 0 && id === undefined) return '"wait" needs "id": the receipt whose end is waited for.';
  if (typeof limit !== "number" || !(limit >= 1)) return `"limit" is a number from 1 to ${MAX_RECEIPTS_LISTED}.`;
  return {
    id,
    waitMs: Math.min(wait, MAX_RECEIPT_WAIT_S) * 1000,
    limit: Math.min(Math.trunc(limit), MAX_RECEIPTS_LISTED),
  };
}

function progressToken(params: JsonObject | undefined): string | number | undefined {
  const meta = params?.["_meta"];
  const token = isObject(meta) ? meta["progressToken"] : undefined;
  return typeof token === "string" || typeof token === "number" ? token : undefined;
}

function knowsTasks({ era, capabilities }: Caller): boolean {
  const { extensions } = capabilities;
  return era === "modern" && isObject(extensions) && TASKS_EXTENSION in extensions;
}

/** The state of a write in the words of tasks, with what it led to. */
function outcomeOf(receipt: Receipt): JsonObject {
  const error = parsed(receipt.error);
  switch (receipt.state) {
    case "queued":
    case "sending":
      return { status: "working" };
    case "cancelled":
      return { status: "cancelled" };
    case "done":
      if (receipt.result !== undefined || !isRpcError(error)) {
        return { status: "completed", result: parsed(receipt.result) ?? withoutResult(receipt) };
      }
      return { status: "failed", error };
    case "failed":
      return { status: "failed", error: isRpcError(error) ? error : ourError("unavailable", receipt) };
    case "expired":
      return { status: "failed", error: ourError("timeout", receipt) };
    case "unknown":
      return { status: "failed", error: ourError("outcome-unknown", receipt) };
  }
}

/** Where its result is not kept, that is what there is to say. */
function withoutResult(receipt: Receipt): JsonObject {
  return { content: receipt.lostBytes === undefined ? [] : [{ type: "text", text: stateSentence(receipt) }] };
}

function ourError(code: "unavailable" | "timeout" | "outcome-unknown", receipt: Receipt): RpcError {
  return toRpcError(new Fault(code, stateSentence(receipt)));
}
