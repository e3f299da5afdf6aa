// The index behind find_tools: built of what all tools say of themselves, and looked through, both some in each turn of the event loop.

import MiniSearch from "minisearch";
import { isObject } from "../protocol/jsonrpc.js";
import { ownTurn } from "../runtime/turns/turns.js";
import type { Entry } from "./merge.js";
import type { FoundTool } from "./search.js";

/** A query is a phrase; the rest of a longer one is not looked at. */
const MAX_QUERY = 400;
const MAX_TERMS = 24;
/** What a short word begins with is no hint of what it means. */
const PREFIX_CHARS = 3;
/** So long is a word in which a typo is forgiven. More than one typo is not: with each, many more of all words have to be looked at. */
const TYPO_CHARS = 5;
const TYPOS = 1;
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

export class ToolIndex {
  readonly #entries: readonly Entry[];
  readonly #index: MiniSearch;

  constructor(entries: readonly Entry[], index: MiniSearch) {
    this.#entries = entries;
    this.#index = index;
  }

  /** The `count` tools that fit best, of those that may be shown. */
  async find(query: string, count: number, mayShow: (entry: Entry) => boolean): Promise<FoundTool[]> {
    const terms = termsOf(query);
    // A search takes milliseconds, and many may be asked for at once.
    await ownTurn();
    const entryOf = ({ id }: { readonly id: unknown }) => this.#entries[id as number] as Entry;
    const hits = this.#index.search(terms.join(" "), {
      tokenize: (text) => text.split(" "),
      processTerm: (term) => term,
      boost: { name: 3, title: 2, parameters: 0.5 },
      // What begins with the longer one of two begins with the shorter one as well: nothing is looked at twice.
      prefix: (term) => isPrefix(term) && !terms.some((other) => begins(term, other)),
      fuzzy: (term) => (term.length >= TYPO_CHARS ? TYPOS : false),
      filter: (hit) => mayShow(entryOf(hit)),
    });
    return hits.slice(0, count).map((hit) => {
      const { name, description, item } = entryOf(hit);
      const inputSchema = item.value["inputSchema"] ?? { type: "object" };
      return description === undefined ? { name, inputSchema } : { name, description, inputSchema };
    });
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
export async function buildIndex(entries: readonly Entry[]): Promise<ToolIndex> {
  let server: string | undefined;
  let words = new Set<string>();
  const index = new MiniSearch({
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
    if (id % TOOLS_A_TURN === 0) await ownTurn();
    // They are in the order of their servers.
    if (of !== server) words = new Set();
    server = of;
    const { title, inputSchema } = item.value;
    const properties = isObject(inputSchema) ? inputSchema["properties"] : undefined;
    const parameters = isObject(properties) ? Object.keys(properties).slice(0, MAX_PARAMETERS).join(" ") : "";
    index.add({ id, name, title: typeof title === "string" ? title : "", description: description ?? "", parameters });
  }
  return new ToolIndex(entries, index);
}
