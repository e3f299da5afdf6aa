// The structured output of a tool for a legacy agent. In the modern era it is any JSON value, in the legacy era an
// object: what is none goes as `{"result": …}`, as the list of tools told the agent. It stands before the cache, which
// keeps what the server wrote.

import type { AgentCall } from "../contracts/service.js";
import { replySize } from "../protocol/arrived.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { locate, parseBytes } from "../protocol/message.js";
import { type BytesReply, editedReply, type Reply, renderReply } from "../protocol/reply.js";
import { type Edit, isSpace } from "../protocol/scan.js";
import { CallWrapper } from "./call-wrapper.js";

/**
 * A longer reply passes as it is: it would have to be parsed whole, and every other call would wait for that. What
 * large outputs there are (tables, files) are objects as a rule, which need no wrapping.
 */
const MAX_PARSED_BYTES = 8 * 1024 * 1024;

const MARK = Buffer.from('"structuredContent"');
const OPEN_BRACE = 0x7b;
const COLON = 0x3a;

/** One call of a legacy agent whose reply may have to be wrapped. */
export class LegacyOutput extends CallWrapper {
  readonly #isWrapped: boolean;

  /** `isWrapped`: the agent was told that the output is wrapped, whatever it is. */
  constructor(call: AgentCall, isWrapped: boolean) {
    super(call, call.message);
    this.#isWrapped = isWrapped;
  }

  override reply(reply: Reply): void {
    super.reply(toLegacyReply(reply, this.#isWrapped));
  }
}

export function toLegacyReply(reply: Reply, isWrapped: boolean): Reply {
  if (reply.kind !== "bytes") return reply;
  const { bytes } = reply;
  const first = bytes.indexOf(MARK);
  if (first < 0 || (!isWrapped && areObjects(bytes, first)) || replySize(reply) > MAX_PARSED_BYTES) return reply;
  try {
    return wrapped(reply, isWrapped) ?? reply;
  } catch {
    // What cannot be read is for its reader, as every long reply is inside.
    return reply;
  }
}

/** Whether every member of that name is an object, wherever it stands: then nothing needs to be parsed. */
function areObjects(bytes: Buffer, first: number): boolean {
  for (let at = first; at >= 0; at = bytes.indexOf(MARK, at)) {
    at += MARK.length;
    while (isSpace(bytes[at])) at++;
    if (bytes[at] !== COLON) continue;
    at++;
    while (isSpace(bytes[at])) at++;
    if (bytes[at] !== OPEN_BRACE) return false;
  }
  return true;
}

/** Undefined where there is nothing to wrap. */
function wrapped(reply: BytesReply, isWrapped: boolean): BytesReply | undefined {
  const message = parseBytes(renderReply(reply, "0"));
  const result = message.kind === "response" ? message.result : undefined;
  if (!isObject(result) || result["structuredContent"] === undefined) return undefined;
  const isValue = !isObject(result["structuredContent"]);
  const at = locate(message, ["result", "structuredContent"]);
  if (at === undefined || (!isWrapped && !isValue)) return undefined;
  const json = message.text.slice(at.start, at.end);
  const own = locate(message, ["result", "content"]);
  const block = isValue && !hasText(result) ? textBlock(result["structuredContent"]) : undefined;
  const added = block !== undefined && own === undefined ? `,"content":[${block}]` : "";
  const edits: Edit[] = [{ start: at.start, end: at.end, text: `{"result":${json}}${added}` }];
  if (block !== undefined && own !== undefined) {
    const { content } = result;
    const others = Array.isArray(content) && content.length > 0 ? message.text.slice(own.start + 1, own.end - 1) : "";
    edits.push({ start: own.start, end: own.end, text: `[${others}${others === "" ? "" : ","}${block}]` });
  }
  return editedReply(reply, message, edits);
}

function hasText({ content }: JsonObject): boolean {
  return Array.isArray(content) && content.some((block) => isObject(block) && block["type"] === "text");
}

/** Most legacy agents read the texts alone, and a value in words is what the SDK's servers give them. */
function textBlock(value: unknown): string {
  return JSON.stringify({ type: "text", text: JSON.stringify(value) });
}
