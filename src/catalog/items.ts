// One entry of a server's list: what makes it usable, when it has changed, and its text under another name.
// The server's own bytes are kept; only the name, and a description that the config overrides, are replaced.

import { isDeepStrictEqual } from "node:util";
import { type ExposedName, type OwnName, type OwnToolName, ownName, ownToolName } from "../contracts/names.js";
import type { Listed, ListKind } from "../contracts/upstream.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { type Edit, scanMembers, splice } from "../protocol/scan.js";

export interface Item {
  /** The name, URI or URI template by which the server knows it. */
  readonly own: OwnName;
  readonly json: string;
  readonly value: JsonObject;
}

export interface ItemList {
  readonly items: readonly Item[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
}

/** The member that identifies an entry of each list. */
const KEY_OF: Record<ListKind, "name" | "uri" | "uriTemplate"> = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
};

/** A list with more is a fault of the server: no agent can use it, and one bad server must not fill our memory. */
const MAX_ITEMS = 10_000;
/** Names are words and URIs are lines; what is longer is not passed on to every agent. */
const MAX_KEY_LENGTH = 4096;

export function readItems(server: string, kind: ListKind, listed: readonly Listed[]): ItemList {
  const key = KEY_OF[kind];
  const items: Item[] = [];
  const notes: string[] = [];
  const seen = new Set<string>();
  const duplicates = new Set<string>();
  let nameless = 0;
  for (const { json, value } of listed) {
    const own = value[key];
    if (typeof own !== "string" || own === "" || own.length > MAX_KEY_LENGTH) {
      nameless++;
    } else if (seen.has(own)) {
      duplicates.add(own);
    } else if (items.length < MAX_ITEMS) {
      seen.add(own);
      // A line break between members is legal JSON, but would break the line framing of stdio and SSE.
      items.push({ own: ownName(own), json: /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, " ") : json, value });
    }
  }
  const of = `of server ${JSON.stringify(server)}`;
  if (nameless > 0) notes.push(`${nameless} of the ${kind} ${of} left out: they have no usable "${key}".`);
  for (const own of [...duplicates].slice(0, 5)) {
    notes.push(`${JSON.stringify(own.slice(0, 80))} stands twice in the ${kind} ${of}; the first one counts.`);
  }
  if (items.length === MAX_ITEMS && seen.size + nameless + duplicates.size < listed.length) {
    notes.push(`The ${kind} ${of} are more than ${MAX_ITEMS}; the rest is left out.`);
  }
  return { items, notes };
}

/** The name by which policy and pins know the entry; undefined where it is no tool. */
export function ownTool(kind: ListKind, { own }: Item): OwnToolName | undefined {
  return kind === "tools" ? ownToolName(own) : undefined;
}

/** The order of an object's members is no difference; `ignore` names a member that agents do not see. */
export function sameDefinition(a: Item, b: Item, ignore: string | undefined): boolean {
  if (a.own !== b.own) return false;
  if (a.json === b.json) return true;
  try {
    if (ignore === undefined) return isDeepStrictEqual(a.value, b.value);
    return isDeepStrictEqual({ ...a.value, [ignore]: undefined }, { ...b.value, [ignore]: undefined });
  } catch {
    return false; // Nested too deep to compare: then it counts as changed.
  }
}

/** The entry's text with `name` as its name, and `description` in place of its own where one is given. */
export function renderItem(item: Item, name: ExposedName, description: string | undefined): string {
  if ((name as string) === item.own && description === undefined) return item.json;
  const members = scanMembers(item.json, 0);
  const edits: Edit[] = [];
  let added = description === undefined || members.some((member) => member.key === "description");
  for (const { key, start, end } of members) {
    // A member that stands twice is replaced twice: parsers differ in which one they take.
    if (key === "name") {
      const text = JSON.stringify(name);
      edits.push({ start, end, text: added ? text : `${text},"description":${JSON.stringify(description)}` });
      added = true;
    } else if (key === "description" && description !== undefined) {
      edits.push({ start, end, text: JSON.stringify(description) });
    }
  }
  return splice(item.json, edits);
}

const indexed = new WeakMap<readonly Item[], ReadonlyMap<OwnName, Item>>();

/** One entry of a list. Asked for with each call of a modern agent: a list of thousands is not walked for that. */
export function itemNamed(items: readonly Item[], own: OwnName): Item | undefined {
  let byName = indexed.get(items);
  if (byName === undefined) {
    byName = new Map(items.map((item) => [item.own, item]));
    indexed.set(items, byName);
  }
  return byName.get(own);
}
