// The merged list of one kind over some servers: which entries, under which names, in which order, with which text, and for
// how long and for whom it is good. Order: that of the config, then the server's own. Policy and pages come later (catalog.ts).

import { exposedName, ownToolName } from "../contracts/names.js";
import type { Freshness, Listed, ListKind } from "../contracts/upstream.js";
import { refusedKey } from "../protocol/definitions/key-argument.js";
import { isObject } from "../protocol/jsonrpc.js";
import { Conflicts } from "./conflicts.js";
import { type Item, type ItemList, type Rendered, renderItem, sameDefinition } from "./items.js";
import { type Assignment, assignNames, type NamingOptions, type Owner } from "./names.js";
import { hides, type KeptTerms, type KnownServer, type NamedKind, settingsOf } from "./snapshot.js";

/** One entry as agents see it. */
export interface Entry extends Rendered {
  readonly server: string;
  readonly item: Item;
  /** The exposed name; for resources and templates the URI, which nobody changes. */
  readonly name: string;
  readonly description: string | undefined;
}

export interface Merged {
  readonly entries: readonly Entry[];
  /** By exposed name; those of resources and templates by URI. */
  readonly owners: ReadonlyMap<string, Owner>;
  /** What two servers claim, or what the config names and cannot be named so. */
  readonly conflicts: readonly string[];
  /** Entries that are left out, and settings that fit nothing. */
  readonly notes: readonly string[];
  readonly assignment: Assignment | undefined;
}

export function isNamed(kind: ListKind): kind is NamedKind {
  return kind === "tools" || kind === "prompts";
}

/** Tools and prompts: under the names that names.ts gives. */
export function mergeNamed(
  servers: readonly KnownServer[],
  kind: NamedKind,
  options: Omit<NamingOptions, "noun">,
): Merged & { readonly assignment: Assignment } {
  const sources = servers.map((known) => ({
    server: known.name,
    own: known.lists.get(kind)?.items.map(({ own }) => own) ?? [],
    ...settingsOf(known, kind),
  }));
  const noun = kind === "tools" ? "tool" : "prompt";
  const assignment = assignNames(sources, { ...options, noun });
  const entries: Entry[] = [];
  const notes: string[] = [];
  for (const known of servers) {
    const overrides = known.overrides[kind];
    const list = known.lists.get(kind);
    if (list === undefined) continue;
    notes.push(...list.notes);
    // Which settings fit no tool is told with the patterns of roles that fit none.
    const unused = new Set(kind === "prompts" ? overrides.keys() : []);
    for (const item of list.items) {
      unused.delete(item.own);
      if (kind === "tools") notes.push(...keptNotes(known, item, list));
      const name = assignment.exposed.get(known.name)?.get(item.own);
      if (name === undefined) continue;
      const override = overrides.get(item.own)?.description;
      const own = item.value["description"];
      entries.push({
        server: known.name,
        item,
        name,
        description: override ?? (typeof own === "string" ? own : undefined),
        ...renderItem(item, known.name, name, override, isKept(known, kind, item)),
      });
    }
    for (const own of unused) {
      notes.push(`The config has settings for prompt "${own}" of server "${known.name}", which has none of that name.`);
    }
  }
  return { entries, owners: assignment.owners, conflicts: assignment.conflicts, notes, assignment };
}

function isKept({ outbox }: KnownServer, kind: NamedKind, { own }: Item): boolean {
  return kind === "tools" && outbox?.has(ownToolName(own)) === true;
}

/** What the server's own list says against the outbox of a tool. */
function keptNotes(known: KnownServer, item: Item, list: ItemList): string[] {
  const terms = known.outbox?.get?.(ownToolName(item.own));
  if (terms === undefined) return [];
  return [keyNote(known, item, terms), confirmNote(known, item, list, terms)].filter((note) => note !== undefined);
}

/** What is wrong with the place of a key, where the tool's own schema does not take it there. */
function keyNote({ name }: KnownServer, { own, value }: Item, { key }: KeptTerms): string | undefined {
  return key?.in === "argument" ? refusedKey(name, own, value["inputSchema"], key.path) : undefined;
}

/**
 * What is asked again and again by itself must be there, and change nothing. Who names it in the config says that it only reads: that is
 * asked about where the server says otherwise.
 */
function confirmNote(
  { name, readOnly }: KnownServer,
  { own }: Item,
  { items }: ItemList,
  { confirm }: KeptTerms,
): string | undefined {
  if (confirm === undefined) return undefined;
  const asked = items.find((one) => one.own === confirm.tool);
  const what = `Tool "${own}" of server "${name}" has "confirm" in its "outbox", by the tool "${confirm.tool}"`;
  if (asked === undefined) {
    return `${what}, which the server does not have: what may have happened stays unknown. Name one that it has.`;
  }
  const annotations = asked.value["annotations"];
  const saysOtherwise = isObject(annotations) && annotations["readOnlyHint"] === false;
  if (!saysOtherwise || readOnly.has(asked.own)) return undefined;
  return `${what}, of which the server says that it does not only read. Where it does, say so in the config: "readOnly": true.`;
}

/** Resources and templates: URIs stay as they are; one that two servers claim belongs to the first. */
export function mergeUris(servers: readonly KnownServer[], kind: "resources" | "resourceTemplates"): Merged {
  const entries: Entry[] = [];
  const owners = new Map<string, Owner>();
  const conflicts = new Conflicts();
  const notes: string[] = [];
  const noun = kind === "resources" ? "Resource" : "Resource template";
  for (const known of servers) {
    const list = known.lists.get(kind);
    if (list === undefined) continue;
    notes.push(...list.notes);
    for (const item of list.items) {
      const owner = owners.get(item.own);
      if (owner === undefined) {
        owners.set(item.own, { server: known.name, own: item.own });
        const description = item.value["description"];
        entries.push({
          server: known.name,
          item,
          name: item.own,
          description: typeof description === "string" ? description : undefined,
          ...renderItem(item, known.name, exposedName(item.own), undefined),
        });
      } else {
        const name = JSON.stringify(item.own.slice(0, 200));
        const both = `servers "${owner.server}" and "${known.name}"`;
        conflicts.claim({
          cause: JSON.stringify([owner.server, known.name]),
          name,
          alone: `${noun} ${name} is claimed by ${both}: it goes to the first in the config, "${owner.server}".`,
          together: (names, n) =>
            `${n} ${noun.toLowerCase()}s are claimed by ${both}: they go to the first in the config, ` +
            `"${owner.server}": ${names}.`,
        });
      }
    }
  }
  return { entries, owners, conflicts: conflicts.texts, notes, assignment: undefined };
}

/** True where the list was made from these very texts. */
export function isMadeFrom({ source }: ItemList, listed: readonly Listed[]): boolean {
  return source.length === listed.length && listed.every(({ json }, i) => json === source[i]);
}

/** True for the same list, byte for byte. */
export function sameTexts(a: ItemList, b: ItemList): boolean {
  const equal = a.items.length === b.items.length && a.items.every((item, i) => item.json === b.items[i]?.json);
  return equal && a.notes.join() === b.notes.join();
}

/** The entries that are not hidden. */
export function visible(known: KnownServer, kind: ListKind, list: ItemList | undefined): ItemList["items"] {
  const items = list?.items ?? [];
  return isNamed(kind) ? items.filter(({ own }) => !hides(known, kind, own)) : items;
}

/**
 * True for the same set and definitions, as far as agents see them. Their order means nothing, and some servers give another
 * at each reading: each agent would read its list again, and its model the whole prompt, for nothing.
 */
export function sameForAgents(
  known: KnownServer,
  kind: ListKind,
  before: ItemList | undefined,
  after: ItemList,
): boolean {
  const a = visible(known, kind, before);
  const b = visible(known, kind, after);
  const others = new Map(b.map((item) => [item.own, item]));
  return (
    a.length === b.length &&
    a.every((item) => {
      const other = others.get(item.own);
      const described = isNamed(kind) && known.overrides[kind].get(item.own)?.description !== undefined;
      return other !== undefined && sameDefinition(item, other, described ? "description" : undefined);
    })
  );
}

/** A legacy server does not say, and may change its mind without telling: to be asked for again each time. */
const LEGACY: Freshness = { ttlMs: 0, cacheScope: "private" };

/**
 * The shortest time and the most private scope of the list's parts. `common`: everybody sees the same list; where roles differ, no
 * cache may serve one's to another.
 */
export function mergeFreshness(servers: readonly KnownServer[], kind: ListKind, common: boolean): Freshness {
  let ttlMs = Number.POSITIVE_INFINITY;
  let cacheScope: Freshness["cacheScope"] = common ? "public" : "private";
  for (const { lists, freshness } of servers) {
    // A list that has not been read yet may come at any moment.
    const known = lists.has(kind) ? (freshness.get(kind) ?? LEGACY) : LEGACY;
    // Nothing of this server is in the list, and nothing will be without notice.
    if (lists.get(kind)?.items.length === 0 && !freshness.has(kind)) continue;
    ttlMs = Math.min(ttlMs, known.ttlMs);
    if (known.cacheScope === "private") cacheScope = "private";
  }
  return { ttlMs: Number.isFinite(ttlMs) ? ttlMs : 0, cacheScope };
}
