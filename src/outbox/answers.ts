// What is read of servers' answers: what is kept of a result, and what a confirming tool says.

import type { ConfirmTerms } from "../contracts/outbox.js";
import { replySize } from "../protocol/arrived.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import { isObject } from "../protocol/jsonrpc.js";
import { locate, makeMessage, type RequestMessage } from "../protocol/message.js";
import { type Reply, responseOf, resultBytes } from "../protocol/reply.js";
import { scanMembers } from "../protocol/scan.js";
import type { KeptResult } from "./journal.js";
import { classify } from "./lanes/classify.js";
import { MAX_KEPT_RESULT_BYTES } from "./lanes/limits.js";

export function asFault(error: unknown): Fault {
  return error instanceof Fault ? error : new Fault("protocol", toRpcError(error).message, { cause: error });
}

/** The agent answers what a modern server asked it before it did anything: that is between the two. */
export function isAnswer({ params }: RequestMessage): boolean {
  return params?.["inputResponses"] !== undefined || params?.["requestState"] !== undefined;
}

/** What is read of an answer to be kept with the receipt. */
export interface ReadResult {
  readonly kept: KeptResult | undefined;
  /** How large it is, where it is too large to be kept; 0 where that is not known. */
  readonly lostBytes: number | undefined;
}

/** `most`: how many bytes are kept. */
export function readResult(reply: Reply, most = MAX_KEPT_RESULT_BYTES): ReadResult {
  if (reply.kind === "stream") return { kept: undefined, lostBytes: reply.size?.("0") ?? 0 };
  if (reply.kind === "result") return bounded({ result: JSON.stringify(reply.result) }, most);
  if (reply.kind === "error") return bounded({ error: JSON.stringify(reply.error) }, most);
  const bytes = replySize(reply);
  if (bytes > most) return { kept: undefined, lostBytes: bytes };
  const message = responseOf(reply);
  if (message === undefined) return { kept: undefined, lostBytes: undefined };
  const textAt = (name: string) => {
    const at = locate(message, [name]);
    return at === undefined ? undefined : message.text.slice(at.start, at.end);
  };
  const kept = message.error === undefined ? { result: textAt("result") } : { error: textAt("error") };
  return { kept, lostBytes: undefined };
}

/** A result that was kept, as it was written: a number may say more than a double holds. */
export function keptReply(json: string): Reply {
  const reply = resultBytes(json);
  // A modern server's says what it is, and lacks nothing.
  const isModern =
    json.includes(RESULT_TYPE) && scanMembers(json, json.indexOf("{")).some(({ key }) => key === "resultType");
  return isModern ? { ...reply, era: "modern" } : reply;
}

const RESULT_TYPE = '"resultType"';

/** About as many bytes as it takes on disk. */
export function sizeOf(kept: KeptResult | undefined): number {
  return (kept?.result ?? kept?.error ?? "").length;
}

function bounded(kept: KeptResult, most: number): ReadResult {
  const bytes = sizeOf(kept);
  return bytes > most ? { kept: undefined, lostBytes: bytes } : { kept, lostBytes: undefined };
}

/** The call of a confirming tool that asks after the write of this key. */
export function questionAbout({ tool, arguments: text }: ConfirmTerms, key: string): RequestMessage {
  const params = { name: tool, arguments: withKey(JSON.parse(text), key) };
  return makeMessage({ jsonrpc: "2.0", id: 0, method: "tools/call", params }) as RequestMessage;
}

/** `{key}` in every text of a value. */
function withKey(value: unknown, key: string): unknown {
  if (typeof value === "string") return value.replaceAll("{key}", () => key);
  if (Array.isArray(value)) return value.map((one) => withKey(one, key));
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withKey(one, key)]));
}

/** Whether something is there at a JSON pointer into the structured result; undefined where that was not answered. */
export function foundIn(reply: Reply, pointer: string): boolean | undefined {
  const outcome = classify(reply);
  if (outcome.kind !== "answered" || outcome.failed) return undefined;
  const result = reply.kind === "result" ? reply.result : responseOf(reply)?.result;
  let at: unknown = isObject(result) ? (result["structuredContent"] ?? textOf(result["content"])) : undefined;
  if (at === undefined) return undefined;
  for (const part of pointer.split("/").slice(1)) {
    const name = part.replaceAll("~1", "/").replaceAll("~0", "~");
    at = isObject(at) || Array.isArray(at) ? (at as Record<string, unknown>)[name] : undefined;
  }
  return at !== undefined && at !== null;
}

/** Older servers write their structured result as the text of the first block. */
function textOf(content: unknown): unknown {
  const first: unknown = Array.isArray(content) ? content[0] : undefined;
  if (!isObject(first) || typeof first["text"] !== "string") return undefined;
  try {
    return JSON.parse(first["text"]);
  } catch {
    return undefined;
  }
}
