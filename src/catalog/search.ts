// The opt-in menu "search": two tools in place of a long list, and the index behind the first of them.
// What may be found is decided by the view, as for lists; calling goes the way of any other call.

import type MiniSearch from "minisearch";
import { ownToolName } from "../contracts/names.js";
import { RECEIPT_TOOL } from "../contracts/outbox.js";
import { Fault } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { edited, locate, type RequestMessage } from "../protocol/message.js";
import { turns } from "../runtime/turns/turns.js";
import type { Entry } from "./merge.js";
import type { View } from "./view.js";

export const FIND_TOOLS = "find_tools";
export const CALL_TOOL = "call_tool";
export const SEARCH_NAMES: readonly string[] = [FIND_TOOLS, CALL_TOOL];

/** A definition costs some 200 tokens: five are a thousand, about what one wrong turn of an agent costs. */
const DEFAULT_LIMIT = 5;
/** More than this is a list, not a search. */
const MAX_LIMIT = 20;
/** A query is a phrase; the rest of a longer one is not looked at. */
const MAX_QUERY = 400;
const MAX_TERMS = 24;
/** What a short word begins with is no hint of what it means. */
const PREFIX_CHARS = 3;
/** So long is a word in which a typo is forgiven. More than one typo is not: with each, many more of all words have to be looked at. */
const TYPO_CHARS = 5;
const TYPOS = 1;
/** Names of servers that the description of find_tools lists, so that an agent knows what there is to find. */
const MAX_SERVER_NAMES = 50;
/** So many names of a tool's parameters are indexed; the first ones tell what it is about. */
const MAX_PARAMETERS = 50;
/** So much of each text of a tool is indexed: what it is about stands at its beginning. */
const MAX_TEXT_CHARS = 1_500;
const MAX_WORDS = 150;
/**
 * Different words of one server's tools. Thousands of tools described in prose have fewer; each search goes through the words
 * of all servers.
 */
const MAX_WORDS_OF_SERVER = 20_000;
/** So many tools are indexed in one turn of the event loop, which takes some milliseconds. */
const TOOLS_A_TURN = 25;

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

/** Words of a name or text: `create_pull-request` and `createPullRequest` are three each. */
function tokenize(text: string): string[] {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
}

/** Endings of English words, longest first, and how much of the word must be left: `sending`, `sends` → `send`. */
const ENDINGS: readonly [string, number][] = [
  ["ing", 4],
  ["ed", 4],
  ["es", 4],
  ["s", 3],
  ["e", 4],
];

function stem(word: string): string {
  const lower = word.toLowerCase();
  const ending = ENDINGS.find(([end, left]) => lower.endsWith(end) && lower.length - end.length >= left);
  return ending === undefined ? lower : lower.slice(0, -ending[0].length);
}

export class ToolSearch {
  #built: { entries: readonly Entry[]; index: Promise<MiniSearch> } | undefined;

  /** `entries` is the same array for as long as the menu is the same; the index is built once for each. */
  async find(entries: readonly Entry[], query: string, limit: number, view: View): Promise<FoundTool[]> {
    const wanted = Math.min(Math.max(1, Math.trunc(limit)), MAX_LIMIT);
    if (this.#built?.entries !== entries) this.#built = { entries, index: build(entries) };
    const index = await this.#built.index;
    const terms = termsOf(query);
    // A search takes milliseconds, and many may be asked for at once.
    await turns.turn();
    const hits = index.search(terms.join(" "), {
      tokenize: (text) => text.split(" "),
      processTerm: (term) => term,
      boost: { name: 3, title: 2, parameters: 0.5 },
      // What begins with the longer one of two begins with the shorter one as well: nothing is looked at twice.
      prefix: (term) => isPrefix(term) && !terms.some((other) => begins(term, other)),
      fuzzy: (term) => (term.length >= TYPO_CHARS ? TYPOS : false),
      filter: (hit) => {
        const entry = entries[hit.id as number];
        return entry !== undefined && view.allows(entry.server, ownToolName(entry.item.own));
      },
    });
    const found: FoundTool[] = [];
    for (const hit of hits.slice(0, wanted)) {
      const entry = entries[hit.id as number];
      if (entry === undefined) continue;
      const inputSchema = entry.item.value["inputSchema"] ?? { type: "object" };
      const { name, description } = entry;
      found.push(description === undefined ? { name, inputSchema } : { name, description, inputSchema });
    }
    return found;
  }
}

/** The words of a query as they are looked for, each once. */
function termsOf(query: string): readonly string[] {
  const words = tokenize(query.slice(0, MAX_QUERY)).slice(0, MAX_TERMS);
  return [...new Set(words.map(stem))];
}

const isPrefix = (term: string) => term.length >= PREFIX_CHARS;
const begins = (term: string, other: string) => other !== term && isPrefix(other) && term.startsWith(other);

/** Turn by turn: what thousands of tools say of themselves is read for a second and more. */
async function build(entries: readonly Entry[]): Promise<MiniSearch> {
  // Loaded when first needed: most gateways show the full menu.
  const { default: Index } = await import("minisearch");
  let server: string | undefined;
  let words = new Set<string>();
  const index = new Index({
    fields: ["name", "title", "description", "parameters"],
    tokenize: (text) => tokenize(text.slice(0, MAX_TEXT_CHARS)).slice(0, MAX_WORDS),
    processTerm: (word, field) => {
      const term = stem(word);
      // By its name a tool is always found.
      if (field !== "name" && !words.has(term) && words.size >= MAX_WORDS_OF_SERVER) return null;
      words.add(term);
      return term;
    },
  });
  for (const [id, { name, description, item, server: of }] of entries.entries()) {
    if (id % TOOLS_A_TURN === 0) await turns.turn();
    // They are in the order of their servers.
    if (of !== server) words = new Set();
    server = of;
    const { title, inputSchema } = item.value;
    const properties = isObject(inputSchema) ? inputSchema["properties"] : undefined;
    const parameters = isObject(properties) ? Object.keys(properties).slice(0, MAX_PARAMETERS).join(" ") : "";
    index.add({ id, name, title: typeof title === "string" ? title : "", description: description ?? "", parameters });
  }
  return index;
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
