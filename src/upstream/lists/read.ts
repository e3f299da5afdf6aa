// Reads a server's lists, page by page. Entries keep the text that the server wrote.

import type { Listed, ListKind } from "../../contracts/upstream.js";
import { excessOf, MESSAGE_BOUNDS, type TextBounds } from "../../protocol/bytes/text-bounds.js";
import { prepareCanonical } from "../../protocol/canonical.js";
import { prepareJudgement } from "../../protocol/definitions/mend.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { scanElements } from "../../protocol/scan.js";
import { MIB } from "../../runtime/sizes.js";
import { ownTurn } from "../../runtime/turns/turns.js";
import { askPage, type CallSender } from "../link/own-call.js";

/** A server whose cursors never end would be read for ever; real ones have one page, a few have tens. */
const MAX_PAGES = 500;
/** So many entries are taken of one list, ten times the largest menu we know of. The catalog says what is left out. */
const MAX_ITEMS = 5_000;
/** So long may all pages of one list be together: 20,000 entries of about 1 kB, which is what a definition has. */
const MAX_CHARS = 20_000_000;
/** So much is taken of one list: as many entries as there may be, of 1.6 kB each. They are kept while the server is in the config. */
const MAX_LIST_BYTES = 8 * MIB;
/** The deadline of all pages of one list; one page has the connection's own deadline. */
export const LIST_MS = 60_000;
/** A definition has about 1 kB; from here on it is counted what is in one. */
const LONG_ENTRY_CHARS = 64 * 1024;
/** How deep one may be is said by those who use it, with its name. */
const ENTRY_BOUNDS: TextBounds = { ...MESSAGE_BOUNDS, depth: Number.POSITIVE_INFINITY };

/** So many entries are prepared in one turn of the loop, which takes some milliseconds. */
const ITEMS_A_TURN = 100;

const METHOD: Record<ListKind, string> = {
  tools: "tools/list",
  prompts: "prompts/list",
  resources: "resources/list",
  resourceTemplates: "resources/templates/list",
};

/** Which lists a server with these capabilities has. */
export function listKinds(capabilities: Record<string, unknown>): ListKind[] {
  const kinds: ListKind[] = [];
  if (isObject(capabilities["tools"])) kinds.push("tools");
  if (isObject(capabilities["prompts"])) kinds.push("prompts");
  if (isObject(capabilities["resources"])) kinds.push("resources", "resourceTemplates");
  return kinds;
}

/** Whether a server has this list at all. It is asked for each list that an agent reads. */
export function hasList(capabilities: Record<string, unknown>, kind: ListKind): boolean {
  return isObject(capabilities[kind === "resourceTemplates" ? "resources" : kind]);
}

/** Which lists a list_changed notification is about. */
export function changedKinds(method: string): readonly ListKind[] {
  switch (method) {
    case "notifications/tools/list_changed":
      return ["tools"];
    case "notifications/prompts/list_changed":
      return ["prompts"];
    case "notifications/resources/list_changed":
      return ["resources", "resourceTemplates"];
    default:
      return [];
  }
}

/**
 * `onPage` is shown each page's result: what it says beside its entries. `prepares`: somebody compares the definitions
 * with their pins, for whom that is made ready here, turn by turn; `before` are the texts of the last reading, of which that
 * is known: most readings bring the same ones again.
 */
export async function readList(
  sender: CallSender,
  kind: ListKind,
  signal: AbortSignal,
  onPage?: (result: JsonObject) => void,
  prepares = false,
  before: readonly string[] = [],
): Promise<Listed[]> {
  const items: Listed[] = [];
  let cursor: string | undefined;
  let chars = 0;
  let bytes = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor };
    const { result, list, chars: length } = await askPage(sender, METHOD[kind], params, signal, kind);
    onPage?.(result);
    if (list === undefined) throw new Fault("protocol", `The result of ${METHOD[kind]} has no "${kind}" list.`);
    chars += length;
    if (chars > MAX_CHARS) throw new Fault("limit", `${METHOD[kind]} has more than ${MAX_CHARS} characters.`);
    // One more than is taken shows that there are more.
    const room = MAX_ITEMS + 1 - items.length;
    const elements = scanElements(list, 0, room);
    if (elements.length < room && list.slice(elements.at(-1)?.end ?? 1).trim() !== "]") throw notJson(METHOD[kind]);
    for (const { start, end } of elements) {
      const text = withinBounds(list.slice(start, end));
      const known = before[items.length];
      const isKnown = known === text;
      // The text of the last reading is the one that others hold: this one, and the page that it is a part of, can go.
      const json = isKnown ? known : text;
      bytes += Buffer.byteLength(json);
      if (bytes > MAX_LIST_BYTES)
        throw new Fault(
          "limit",
          `The list that ${METHOD[kind]} tells has more than ${MAX_LIST_BYTES} bytes, which is the limit for one.`,
        );
      const value = parsed(json, METHOD[kind]);
      // What is no object has no name either, and is left out for that, by those who say so.
      const item: Listed = { json, value: isObject(value) ? value : {} };
      items.push(item);
      if (prepares && !isKnown && isObject(value)) prepareCanonical(item);
      // What is short is judged in one turn, and mostly not at all: most readings bring what is known.
      if (elements.length > ITEMS_A_TURN && isObject(value)) prepareJudgement(kind, json, value);
      if (items.length % ITEMS_A_TURN === 0) await ownTurn();
    }
    if (items.length > MAX_ITEMS) return items;
    const next = result["nextCursor"];
    if (typeof next !== "string" || next === "" || next === cursor) return items;
    cursor = next;
  }
  throw new Fault("limit", `${METHOD[kind]} has more than ${MAX_PAGES} pages.`);
}

function parsed(json: string, method: string): unknown {
  try {
    return JSON.parse(json);
  } catch (cause) {
    throw notJson(method, cause);
  }
}

function notJson(method: string, cause?: unknown): Fault {
  return new Fault("protocol", `The answer to ${method} is not JSON.`, { cause });
}

/** The text of an entry; one that is too much to be parsed in one turn becomes one without a name, which is left out. */
function withinBounds(json: string): string {
  if (json.length < LONG_ENTRY_CHARS) return json;
  return excessOf([Buffer.from(json)], ENTRY_BOUNDS) === undefined ? json : "{}";
}
