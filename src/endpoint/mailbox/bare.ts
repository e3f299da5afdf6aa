// The bare requests of a mailbox, which any client can write by hand: which tools there are, and a call of one. They are
// asked as a modern agent would, and answered in forms that language models know.

import { DENIED } from "../../protocol/errors.js";
import { isObject, type JsonObject, type RpcError } from "../../protocol/jsonrpc.js";
import { locate, makeMessage, type RequestMessage, type ResponseMessage, toMessage } from "../../protocol/message.js";
import { Meta, MODERN_VERSION } from "../../protocol/modern.js";
import { scanElements } from "../../protocol/scan.js";
import type { Arguments } from "./body.js";

/** What a bare client is: nothing can be asked of it. */
const META: JsonObject = {
  [Meta.version]: MODERN_VERSION,
  [Meta.capabilities]: {},
  [Meta.clientInfo]: { name: "mailbox", version: "1" },
};
const META_JSON = JSON.stringify(META);

export function listRequest(cursor: string | undefined): RequestMessage {
  const params = { ...(cursor === undefined ? {} : { cursor }), _meta: META };
  return makeMessage({ jsonrpc: "2.0", id: 1, method: "tools/list", params }) as RequestMessage;
}

/** The arguments are passed on as they were written. Throws a Fault where they cannot be. */
export function callRequest(tool: string, { json, value }: Arguments): RequestMessage {
  const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(tool)},"arguments":${json},"_meta":${META_JSON}}}`;
  const params = { name: tool, arguments: value, _meta: META };
  return toMessage(text, { jsonrpc: "2.0", id: 1, method: "tools/call", params }) as RequestMessage;
}

/** The entries of one page, as JSON texts, and where the next begins. */
export function manifestPage(page: ResponseMessage): { readonly entries: string[]; readonly next: string | undefined } {
  const result = isObject(page.result) ? page.result : {};
  const tools = Array.isArray(result["tools"]) ? result["tools"] : [];
  const at = locate(page, ["result", "tools"]);
  const spans = at === undefined ? [] : scanElements(page.text, at.start);
  const entries = spans.map(({ start, end }, index) => manifestEntry(tools[index], page.text.slice(start, end)));
  const next = result["nextCursor"];
  return { entries, next: typeof next === "string" ? next : undefined };
}

function manifestEntry(tool: unknown, text: string): string {
  const { name, description = "", inputSchema: parameters } = isObject(tool) ? tool : ({} as JsonObject);
  return `{"type":"function","function":${JSON.stringify({ name, description, parameters })},"tool":${text}}`;
}

export function manifestBody(entries: readonly string[]): string {
  return `{"manifest":[${entries.join(",")}]}`;
}

/** The reply to a call. The whole result stands beside what a bare client reads, as `mcp`. */
export function resultBody(response: ResponseMessage, tool: string, role: string): string {
  if (response.error !== undefined) return errorBody(errorText(response.error, tool, role));
  const result = isObject(response.result) ? response.result : {};
  const at = locate(response, ["result"]);
  const whole = at === undefined ? "{}" : response.text.slice(at.start, at.end);
  const success = result["isError"] !== true;
  return `{"result":{"success":${success},"result":${JSON.stringify(textOf(result))},"mcp":${whole}}}`;
}

export function errorBody(error: string): string {
  return JSON.stringify({ error });
}

function errorText({ code, message }: RpcError, tool: string, role: string): string {
  if (code !== DENIED) return message;
  return `tool '${tool}' is not allowed for role '${role === "" ? "<none>" : role}': ${message}`;
}

/** What a model reads of a result: its texts; of what is none, that it is there. */
function textOf({ content, structuredContent }: JsonObject): string {
  const blocks = Array.isArray(content) ? content.filter(isObject) : [];
  if (blocks.length === 0 && structuredContent !== undefined) return JSON.stringify(structuredContent);
  return blocks
    .map(({ type, text, mimeType, uri }) =>
      typeof text === "string" ? text : `[${[type, mimeType, uri].filter((part) => part !== undefined).join(" ")}]`,
    )
    .join("\n");
}
