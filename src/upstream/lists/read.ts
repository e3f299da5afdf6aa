// Reads a server's lists, page by page. Entries keep the text that the server wrote.

import { setImmediate as nextTurn } from "node:timers/promises";
import type { Listed, ListKind } from "../../contracts/upstream.js";
import { prepareCanonical } from "../../protocol/canonical.js";
import { Fault } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { locate } from "../../protocol/message.js";
import { scanElements } from "../../protocol/scan.js";
import { ask, type CallSender } from "../link/own-call.js";

/** A server whose cursors never end would be read for ever; real ones have one page, a few have tens. */
const MAX_PAGES = 500;
/** So many entries are taken of one list, ten times the largest menu we know of. The catalog says what is left out. */
const MAX_ITEMS = 5_000;
/** So long may all pages of one list be together: 20,000 entries of about 1 kB, which is what a definition has. */
const MAX_CHARS = 20_000_000;
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

/** `onPage` is shown each page's result: what it says beside its entries. */
export async function readList(
  sender: CallSender,
  kind: ListKind,
  signal: AbortSignal,
  onPage?: (result: JsonObject) => void,
): Promise<Listed[]> {
  const items: Listed[] = [];
  let cursor: string | undefined;
  let chars = 0;
  for (let page = 0; page < MAX_PAGES; page++) {
    const message = await ask(sender, METHOD[kind], cursor === undefined ? {} : { cursor }, signal);
    onPage?.(message.result);
    const values = message.result[kind];
    const at = locate(message, ["result", kind]);
    if (!Array.isArray(values) || at === undefined) {
      throw new Fault("protocol", `The result of ${METHOD[kind]} has no "${kind}" list.`);
    }
    chars += message.text.length;
    if (chars > MAX_CHARS) throw new Fault("limit", `${METHOD[kind]} has more than ${MAX_CHARS} characters.`);
    // One more than is taken shows that there are more.
    const room = MAX_ITEMS + 1 - items.length;
    for (const [i, { start, end }] of scanElements(message.text, at.start, Math.min(values.length, room)).entries()) {
      const value: unknown = values[i];
      // What is no object has no name either, and is left out for that, by those who say so.
      const item: Listed = { json: message.text.slice(start, end), value: isObject(value) ? value : {} };
      items.push(item);
      if (kind === "tools" && isObject(value)) prepareCanonical(item);
      if (items.length % ITEMS_A_TURN === 0) await nextTurn();
    }
    if (items.length > MAX_ITEMS) return items;
    const next = message.result["nextCursor"];
    if (typeof next !== "string" || next === "" || next === cursor) return items;
    cursor = next;
  }
  throw new Fault("limit", `${METHOD[kind]} has more than ${MAX_PAGES} pages.`);
}
