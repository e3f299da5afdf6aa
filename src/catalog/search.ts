// The opt-in menu "search": two tools in place of a long list. The index behind the first of them is in tool-index.ts.
// What may be found is decided by the view, as for lists; calling goes the way of any other call.

import { ownToolName } from "../contracts/names.js";
import { RECEIPT_TOOL } from "../contracts/outbox.js";
import { Fault } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { edited, locate, type RequestMessage } from "../protocol/message.js";
import type { Entry } from "./merge.js";
import type { ToolIndex } from "./tool-index.js";
import type { View } from "./view.js";

export const FIND_TOOLS = "find_tools";
export const CALL_TOOL = "call_tool";
export const SEARCH_NAMES: readonly string[] = [FIND_TOOLS, CALL_TOOL];

/** A definition costs some 200 tokens: five are a thousand, about what one wrong turn of an agent costs. */
const DEFAULT_LIMIT = 5;
/** More than this is a list, not a search. */
const MAX_LIMIT = 20;
/** Names of servers that the description of find_tools lists, so that an agent knows what there is to find. */
const MAX_SERVER_NAMES = 50;

export interface FoundTool {
  readonly name: string;
  readonly description?: string;
  readonly inputSchema: unknown;
}

/** The definitions of the two tools. Only servers of which the view shows something are named. */
export function searchMenu(entries: readonly Entry[], view: View): string[] {
  const servers = new Map<string, number>();
  for (const { server, item } of entries) {
    if (view.allows(server, ownToolName(item.own))) servers.set(server, (servers.get(server) ?? 0) + 1);
  }
  const names = [...servers].slice(0, MAX_SERVER_NAMES).map(([server, count]) => `${server} (${count})`);
  if (servers.size > names.length) names.push(`${servers.size - names.length} more`);
  const there = names.length === 0 ? "" : ` Servers, with their number of tools: ${names.join(", ")}.`;
  const find = {
    name: FIND_TOOLS,
    title: "Find tools",
    description:
      `Finds the tools for a task among all that are available: returns their names, descriptions and input ` +
      `schemas, best first. Then run one of them with ${CALL_TOOL}.${there}`,
    inputSchema: {
      type: "object",
      properties: {
        query: { type: "string", description: "What the tool should do, in a few words." },
        limit: { type: "integer", minimum: 1, maximum: MAX_LIMIT, default: DEFAULT_LIMIT },
      },
      required: ["query"],
    },
    annotations: { readOnlyHint: true, openWorldHint: false },
  };
  const call = {
    name: CALL_TOOL,
    title: "Call a tool",
    description: `Runs a tool that ${FIND_TOOLS} has found, with arguments that fit its input schema.`,
    inputSchema: {
      type: "object",
      properties: {
        name: { type: "string", description: `The tool's name, as ${FIND_TOOLS} gave it.` },
        arguments: { type: "object", description: "The tool's arguments." },
      },
      required: ["name"],
    },
  };
  return [JSON.stringify(find), JSON.stringify(call)];
}

export class ToolSearch {
  #built: { entries: readonly Entry[]; index: Promise<ToolIndex> } | undefined;

  /** `entries` is the same array for as long as the menu is the same; the index is built once for each. */
  async find(entries: readonly Entry[], query: string, limit: number, view: View): Promise<FoundTool[]> {
    const wanted = Math.min(Math.max(1, Math.trunc(limit)), MAX_LIMIT);
    if (this.#built?.entries !== entries) this.#built = { entries, index: build(entries) };
    const index = await this.#built.index;
    return await index.find(query, wanted, ({ server, item }) => view.allows(server, ownToolName(item.own)));
  }
}

async function build(entries: readonly Entry[]): Promise<ToolIndex> {
  // Loaded when first needed: most gateways show the full menu.
  const { buildIndex } = await import("./tool-index.js");
  return await buildIndex(entries);
}

/** What an agent gave to find_tools; a text for it where that cannot be used. */
export function parseFindArguments(args: unknown): { query: string; limit: number } | string {
  const { query, limit } = isObject(args) ? args : {};
  if (typeof query !== "string" || query.trim() === "") return `${FIND_TOOLS} needs "query": what the tool should do.`;
  if (limit !== undefined && (typeof limit !== "number" || !Number.isFinite(limit))) return '"limit" is a number.';
  return { query, limit: limit ?? DEFAULT_LIMIT };
}

/** What find_tools answers, as the result of a tools/call. */
export function findResult(found: readonly FoundTool[] | string): JsonObject {
  if (typeof found === "string") return { content: [{ type: "text", text: found }], isError: true };
  const text =
    found.length === 0
      ? "No tool fits. Try other words, or fewer."
      : found.map((tool) => JSON.stringify(tool)).join("\n");
  return { content: [{ type: "text", text }] };
}

/**
 * The tools/call that a call of call_tool stands for, to be treated like any other. Throws a Fault `invalid` that
 * says what is wrong.
 */
export function unwrapCall(message: RequestMessage): RequestMessage {
  const args = message.params?.["arguments"];
  const { name, arguments: inner } = isObject(args) ? args : {};
  if (typeof name !== "string")
    throw new Fault("invalid", `${CALL_TOOL} needs "name": a tool that ${FIND_TOOLS} gave.`);
  if (SEARCH_NAMES.includes(name) || name === RECEIPT_TOOL)
    throw new Fault("invalid", `Call ${name} itself, without ${CALL_TOOL}.`);
  if (inner !== undefined && !isObject(inner)) throw new Fault("invalid", '"arguments" of the tool is an object.');
  const [nameAt, argsAt] = [locate(message, ["params", "name"]), locate(message, ["params", "arguments"])];
  const at = locate(message, ["params", "arguments", "arguments"]);
  if (nameAt === undefined || argsAt === undefined) throw new Fault("invalid", "Not a call of a tool.");
  const edits = [
    { start: nameAt.start, end: nameAt.end, text: JSON.stringify(name) },
    {
      start: argsAt.start,
      end: argsAt.end,
      text: at === undefined ? "{}" : message.text.slice(at.start, at.end),
    },
  ];
  return edited(message, edits, { ...message.params, name, arguments: inner ?? {} });
}
