// One entry of a server's list: what makes it usable, when it has changed, and its text under another name.
// The server's own bytes are kept; only the name, a description that the config overrides, and what clients would
// refuse are replaced.

import { isDeepStrictEqual } from "node:util";
import { type ExposedName, type OwnName, type OwnToolName, ownName, ownToolName } from "../contracts/names.js";
import type { Listed, ListKind } from "../contracts/upstream.js";
import { judge, type Mended } from "../protocol/definitions/mend.js";
import { widenOutput } from "../protocol/definitions/widen-output.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type Edit, type Member, scanMembers, splice } from "../protocol/scan.js";
import { RECEIPT_SCHEMA } from "./receipt-menu.js";

export interface Item {
  /** The name, URI or URI template by which the server knows it. */
  readonly own: OwnName;
  /** As the server wrote it: what is kept, and what is compared. */
  readonly json: string;
  readonly value: JsonObject;
  /** What agents are shown in its place, where clients would refuse it, or the eras differ. */
  readonly mended?: Mended | undefined;
}

export interface ItemList {
  readonly items: readonly Item[];
  /** What was left out, and why. */
  readonly notes: readonly string[];
  /** What was mended, or left out since no client could use it. */
  readonly problems: readonly string[];
  /** The texts that it was made from. */
  readonly source: readonly string[];
  /** What those have in all. */
  readonly bytes: number;
  /** True where a legacy agent gets the output of one of them wrapped. */
  readonly wraps: boolean;
  /** It comes from disk: the server itself has not spoken yet. */
  readonly isFromBefore: boolean;
}

/** The member that identifies an entry of each list. */
const KEY_OF: Record<ListKind, "name" | "uri" | "uriTemplate"> = {
  tools: "name",
  prompts: "name",
  resources: "uri",
  resourceTemplates: "uriTemplate",
};

/** A list with more is a fault of the server: no agent can use it, and one bad server must not fill our memory. */
const MAX_ITEMS = 5_000;
/** Names are words and URIs are lines; what is longer is not passed on to every agent. */
const MAX_KEY_LENGTH = 4096;
/** So many problems of one list are told: the first few show what is wrong. */
const MAX_PROBLEMS = 10;

const NOUN_OF: Record<ListKind, string> = {
  tools: "Tool",
  prompts: "Prompt",
  resources: "Resource",
  resourceTemplates: "Resource template",
};

export function readItems(server: string, kind: ListKind, listed: readonly Listed[], isFromBefore = false): ItemList {
  const key = KEY_OF[kind];
  const items: Item[] = [];
  const notes: string[] = [];
  const problems: string[] = [];
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
      const line = /[\r\n]/.test(json) ? json.replace(/[\r\n]+/g, " ") : json;
      const judged = judge(kind, line, value);
      const mended = judged.kind === "mended" ? judged.mended : undefined;
      const wrong = judged.kind === "unusable" ? [`it is left out: ${judged.why}`] : (mended?.notes ?? []);
      for (const one of wrong) problems.push(`${NOUN_OF[kind]} ${JSON.stringify(own.slice(0, 80))}: ${one}.`);
      if (judged.kind !== "unusable") items.push({ own: ownName(own), json: line, value, mended });
    }
  }
  const more = problems.length - MAX_PROBLEMS;
  if (more > 0) problems.splice(MAX_PROBLEMS, more, `… and ${more} more of its ${kind}.`);
  const of = `of server ${JSON.stringify(server)}`;
  if (nameless > 0) notes.push(`${nameless} of the ${kind} ${of} left out: they have no usable "${key}".`);
  for (const own of [...duplicates].slice(0, 5)) {
    notes.push(`${JSON.stringify(own.slice(0, 80))} stands twice in the ${kind} ${of}; the first one counts.`);
  }
  if (items.length === MAX_ITEMS && seen.size + nameless + duplicates.size < listed.length) {
    notes.push(`The ${kind} ${of} are more than ${MAX_ITEMS}; the rest is left out.`);
  }
  const wraps = items.some(({ mended }) => mended?.wrapsOutput === true);
  return {
    items,
    notes,
    problems,
    source: listed.map(({ json }) => json),
    bytes: bytesOf(listed),
    wraps,
    isFromBefore,
  };
}

export function bytesOf(listed: readonly Listed[]): number {
  let bytes = 0;
  for (const { json } of listed) bytes += Buffer.byteLength(json);
  return bytes;
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

/** An entry as agents of either era are shown it; `legacy` is undefined where that is the same. */
export interface Rendered {
  readonly json: string;
  readonly legacy: string | undefined;
}

/** The member that says whose an entry is, in the entry or in its `_meta`. Only we can know that. */
const SERVER_KEY = "_mcp_server";
const META = "_meta";

/**
 * The entry with `name` as its name, and `description` in place of its own where one is given. Where it says whose it
 * is, it says `server`: a server cannot claim another's name.
 */
export function renderItem(
  item: Item,
  server: string,
  name: ExposedName,
  description: string | undefined,
  isKept = false,
): Rendered {
  const own = item.mended ?? { modern: item.json, legacy: item.json };
  const modern = isKept ? admittingReceipts(own.modern) : own.modern;
  const legacy = isKept ? admittingReceipts(own.legacy) : own.legacy;
  const render = (text: string) => renderText(item, text, server, name, description);
  const json = render(modern);
  return { json, legacy: legacy === modern ? undefined : render(legacy) };
}

/** The definition of a tool whose result may be a receipt. A tool without a schema of its output stays without. */
function admittingReceipts(json: string): string {
  const members = scanMembers(json, 0);
  const at = members.filter(({ key }) => key === "outputSchema");
  const last = at.at(-1);
  if (last === undefined) return json;
  const schema: unknown = JSON.parse(json.slice(last.start, last.end));
  const widened = isObject(schema) ? widenOutput(schema, RECEIPT_SCHEMA) : undefined;
  if (widened !== undefined) {
    // A member that stands twice is replaced twice: parsers differ in which one they take.
    return splice(
      json,
      at.map(({ start, end }) => ({ start, end, text: JSON.stringify(widened) })),
    );
  }
  // Without a schema every result is a good one; with the own, a receipt would be none.
  const kept = members.filter(({ key }) => key !== "outputSchema");
  return `{${kept.map(({ key, start, end }) => `${JSON.stringify(key)}:${json.slice(start, end)}`).join(",")}}`;
}

function claimsServer({ value }: Item): boolean {
  const meta = value[META];
  return Object.hasOwn(value, SERVER_KEY) || (isObject(meta) && Object.hasOwn(meta, SERVER_KEY));
}

function renderText(
  item: Item,
  text: string,
  server: string,
  name: ExposedName,
  description: string | undefined,
): string {
  const claims = claimsServer(item);
  if ((name as string) === item.own && description === undefined && !claims) return text;
  const members = scanMembers(text, 0);
  const edits: Edit[] = claims ? serverEdits(text, members, server) : [];
  let added = description === undefined || members.some((member) => member.key === "description");
  for (const { key, start, end } of members) {
    // A member that stands twice is replaced twice: parsers differ in which one they take.
    if (key === "name") {
      const named = JSON.stringify(name);
      edits.push({ start, end, text: added ? named : `${named},"description":${JSON.stringify(description)}` });
      added = true;
    } else if (key === "description" && description !== undefined) {
      edits.push({ start, end, text: JSON.stringify(description) });
    }
  }
  return splice(text, edits);
}

function serverEdits(text: string, members: readonly Member[], server: string): Edit[] {
  const inMeta = members.flatMap(({ key, start }) => (key === META ? scanMembers(text, start) : []));
  const said = [...members, ...inMeta].filter(({ key }) => key === SERVER_KEY);
  return said.map(({ start, end }) => ({ start, end, text: JSON.stringify(server) }));
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
