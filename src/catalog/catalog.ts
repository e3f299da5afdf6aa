// The menu: what all servers offer, merged, under the names that agents see, and the way back from such a name to
// its server. No I/O and no clock; policy comes in as a View, lists come in from the pipeline.

import { type ExposedName, type OwnName, type OwnToolName, ownName, ownToolName } from "../contracts/names.js";
import { RECEIPT_TOOL } from "../contracts/outbox.js";
import type { MenuMode, NameMode, Override } from "../contracts/settings.js";
import type { Freshness, Listed, ListKind, ServerIntro } from "../contracts/upstream.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { type Era, Meta } from "../protocol/modern.js";
import type { BytesReply } from "../protocol/reply.js";
import { readGlob } from "../runtime/glob.js";
import { mergeCapabilities, mergeInstructions } from "./introduction.js";
import { type Item, type ItemList, itemNamed, ownTool, readItems } from "./items.js";
import { ListRoom } from "./list-room.js";
import {
  type Entry,
  isMadeFrom,
  isNamed,
  type Merged,
  mergeFreshness,
  mergeNamed,
  mergeUris,
  sameForAgents,
  sameTexts,
  visible,
} from "./merge.js";
import { assignPrefixes, type KeptNames, type Overrides } from "./names.js";
import { type CursorSeal, Pages } from "./pages.js";
import { RECEIPT_DEFINITION, RECEIPT_TEMPLATE, withReceipts } from "./receipt-menu.js";
import { Routes } from "./routes.js";
import { CALL_TOOL, FIND_TOOLS, type FoundTool, SEARCH_NAMES, searchMenu, ToolSearch } from "./search.js";
import { SEPARATOR } from "./short-names.js";
import {
  fromSnapshot,
  hides,
  type KeptTools,
  type KnownServer,
  LIST_KINDS,
  type NamedKind,
  toSnapshot,
} from "./snapshot.js";
import type { View } from "./view.js";

export interface CatalogOptions extends CursorSeal {
  readonly names: NameMode;
  readonly menu: MenuMode;
  readonly pageSize?: number;
  /** What we call ourselves in results that are ours. */
  readonly serverInfo?: JsonObject;
}

/** A server of the config. */
export interface CatalogServer {
  readonly name: string;
  readonly tools?: Readonly<Record<string, Override & { readonly readOnly?: boolean | undefined }>> | undefined;
  readonly prompts?: Readonly<Record<string, Override>> | undefined;
  /** Patterns of the tools that are shown, by their own names. Undefined where all are. */
  readonly only?: readonly string[] | undefined;
  /** The tools whose calls may be kept. Undefined where there are none. */
  readonly outbox?: KeptTools | undefined;
}

export type Resolved<Own extends OwnName> =
  | { readonly kind: "found"; readonly server: string; readonly own: Own }
  /** `server` is given where the name can only be one of a server whose list has not been read yet. */
  | { readonly kind: "unknown"; readonly server: string | undefined };

export type ResolvedTool =
  | Resolved<OwnToolName>
  /** It is one of the search menu's own two. */
  | { readonly kind: "menu"; readonly tool: "find_tools" | "call_tool" };

/** How many conflicts or notes are told: whoever has more than these has one cause for them. */
const MAX_TOLD = 200;

function bounded(texts: readonly string[]): string[] {
  if (texts.length <= MAX_TOLD) return [...texts];
  return [...texts.slice(0, MAX_TOLD), `… and ${texts.length - MAX_TOLD} more.`];
}

export class Catalog {
  readonly #pages: Pages;
  readonly #search = new ToolSearch();
  readonly #serverInfo: JsonObject;
  #names: NameMode;
  #menu: MenuMode;
  /** They are in the order of the config. */
  #servers = new Map<string, KnownServer>();
  #prefixes = new Map<string, string>();
  readonly #prefixHints = new Map<string, string>();
  readonly #kept: Record<NamedKind, KeptNames> = { tools: new Map(), prompts: new Map() };
  readonly #versions: Record<ListKind, number> = { tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 };
  /** Merged lists by scope: built when asked for, dropped when a list of that kind changes. */
  readonly #merged: Record<ListKind, Map<string | undefined, Merged>> = {
    tools: new Map(),
    prompts: new Map(),
    resources: new Map(),
    resourceTemplates: new Map(),
  };
  readonly #routes = new Map<string | undefined, Routes>();
  readonly #remarks: string[] = [];
  /** Whoever has read a list asks it before it comes here. */
  readonly room = new ListRoom();

  constructor(options: CatalogOptions) {
    this.#pages = new Pages(options, options.pageSize);
    this.#serverInfo = options.serverInfo ?? {};
    this.#names = options.names;
    this.#menu = options.menu;
  }

  // ── What comes in ────────────────────────────────────────────────────────────────────────────────────────────

  /**
   * The servers of the config, in its order; one that stays keeps what is known of it. Returns the lists that changed.
   */
  setServers(servers: readonly CatalogServer[]): ListKind[] {
    return this.#changes(() => {
      const before = this.#servers;
      this.#servers = new Map();
      for (const { name, tools = {}, prompts, only, outbox } of servers) {
        const known = before.get(name);
        this.#servers.set(name, {
          name,
          overrides: { tools: toOverrides(tools), prompts: toOverrides(prompts) },
          only: only?.map(readGlob),
          outbox,
          readOnly: new Set(
            Object.keys(tools)
              .filter((own) => tools[own]?.readOnly)
              .map(ownName),
          ),
          intro: known?.intro,
          lists: known?.lists ?? new Map<ListKind, ItemList>(),
          freshness: known?.freshness ?? new Map<ListKind, Freshness>(),
        });
      }
      for (const name of before.keys()) if (!this.#servers.has(name)) this.#forget(name);
      this.#assignPrefixes();
    });
  }

  /** Returns the lists that changed. */
  setModes(names: NameMode, menu: MenuMode): ListKind[] {
    if (names === this.#names && menu === this.#menu) return [];
    return this.#changes(() => {
      this.#names = names;
      this.#menu = menu;
    });
  }

  setIntro(server: string, intro: ServerIntro): void {
    const known = this.#servers.get(server);
    if (known !== undefined) known.intro = intro;
  }

  /** True where agents see a difference: another set, another definition. Order is none, of entries or of members. */
  setList(server: string, kind: ListKind, listed: readonly Listed[], freshness?: Freshness): boolean {
    const known = this.#servers.get(server);
    if (known === undefined) return false;
    const same = JSON.stringify(known.freshness.get(kind)) === JSON.stringify(freshness);
    if (freshness === undefined) known.freshness.delete(kind);
    else known.freshness.set(kind, freshness);
    if (!same) this.#pages.clear(kind);
    const before = known.lists.get(kind);
    // Most readings bring what is known: nothing of it is looked at again.
    if (before !== undefined && isMadeFrom(before, listed)) {
      if (before.isFromBefore) known.lists.set(kind, this.#remark({ ...before, isFromBefore: false }, undefined));
      return false;
    }
    const after = this.#remark(readItems(server, kind, listed), before?.isFromBefore === true ? undefined : before);
    this.#keep(known, kind, after);
    if (before !== undefined && sameTexts(before, after)) return false;
    this.#bump(kind);
    return !sameForAgents(known, kind, before, after);
  }

  #keep(known: KnownServer, kind: ListKind, list: ItemList): void {
    known.lists.set(kind, list);
    this.room.set(known.name, kind, list.bytes);
  }

  /** Keeps for the log what is said of a list for the first time. */
  #remark(list: ItemList, before: ItemList | undefined): ItemList {
    for (const one of [...list.problems, ...list.notes]) {
      if (before?.problems.includes(one) !== true && before?.notes.includes(one) !== true) this.#remarks.push(one);
    }
    return list;
  }

  /** What is wrong with the lists that came since this was last asked, each said once. */
  takeRemarks(): readonly string[] {
    return this.#remarks.length === 0 ? this.#remarks : this.#remarks.splice(0);
  }

  /** Forgets all that is known of a server that stays in the config, e.g. since its command has changed. */
  remove(server: string): ListKind[] {
    const known = this.#servers.get(server);
    if (known === undefined) return [];
    return this.#changes(() => {
      known.intro = undefined;
      known.lists.clear();
      known.freshness.clear();
      this.#forget(server);
    });
  }

  /** The policy has changed: pages built for views of the same key are no longer good. */
  clearPages(): void {
    for (const kind of LIST_KINDS) this.#pages.clear(kind);
  }

  // ── Lists ────────────────────────────────────────────────────────────────────────────────────────────────────

  /** Raised by every change of that list. */
  version(kind: ListKind): number {
    return this.#versions[kind];
  }

  /** The reply to a list request. Throws a Fault `invalid` for a cursor that is not of this list and view. */
  page(kind: ListKind, view: View, cursor?: string): BytesReply {
    return this.#pages.get(kind, view, cursor, () => {
      const { entries } = this.#mergedOf(kind, view.scope);
      const texts = this.#isSearch(kind, view.scope)
        ? searchMenu(entries, view)
        : entries
            .filter(({ server, item }) => view.allows(server, ownTool(kind, item)))
            .map(({ json, legacy }) => (view.era === "legacy" ? (legacy ?? json) : json));
      if (kind === "tools" && this.#showsReceipts(view)) texts.push(RECEIPT_DEFINITION);
      if (kind === "resourceTemplates" && this.#showsReceipts(view)) texts.push(RECEIPT_TEMPLATE);
      return { texts, members: view.era === "modern" ? this.#modernMembers(kind, view) : "" };
    });
  }

  /** Whether calls of some tool may be kept at this path: then the names of receipts are the gateway's own there. */
  hasOutbox(scope: string | undefined): boolean {
    if (scope !== undefined) return this.#servers.get(scope)?.outbox !== undefined;
    for (const { outbox } of this.#servers.values()) if (outbox !== undefined) return true;
    return false;
  }

  /** Who sees no tool whose calls may be kept has no receipts either. */
  #showsReceipts(view: View): boolean {
    if (!this.hasOutbox(view.scope)) return false;
    return this.#mergedOf("tools", view.scope).entries.some(({ server, item }) => {
      const own = ownToolName(item.own);
      return this.#servers.get(server)?.outbox?.has(own) === true && view.allows(server, own);
    });
  }

  #modernMembers(kind: ListKind, view: View): string {
    const { ttlMs, cacheScope } = mergeFreshness(this.#inScope(view.scope), kind, view.common);
    const meta = JSON.stringify({ [Meta.serverInfo]: this.#serverInfo });
    return `,"resultType":"complete","ttlMs":${ttlMs},"cacheScope":"${cacheScope}","_meta":${meta}`;
  }

  /** Every tool under its exposed name, whatever the menu shows and whoever looks. */
  tools(): readonly Entry[] {
    return this.#mergedOf("tools", undefined).entries;
  }

  /** A server's own names of its tools, hidden ones included; undefined where its list has never been read. */
  ownTools(server: string): OwnToolName[] | undefined {
    return this.listedTools(server)?.map(({ own }) => ownToolName(own));
  }

  /** The same as the server wrote them. */
  listedTools(server: string): readonly Item[] | undefined {
    return this.#servers.get(server)?.lists.get("tools")?.items;
  }

  /** Of these, those that the config does not hide. */
  shownTools(server: string): OwnToolName[] | undefined {
    const known = this.#servers.get(server);
    const list = known?.lists.get("tools");
    if (known === undefined || list === undefined) return undefined;
    return visible(known, "tools", list).map(({ own }) => ownToolName(own));
  }

  /** Whether it is one of these. Asked for with each call: a list of thousands is not walked for that. */
  showsTool(server: string, own: OwnToolName): boolean {
    const known = this.#servers.get(server);
    const items = known?.lists.get("tools")?.items;
    if (known === undefined || items === undefined) return false;
    return itemNamed(items, own) !== undefined && !hides(known, "tools", own);
  }

  /** Whether the view has a tool of the server. It ends at the first one. */
  showsAny(server: string, view: View): boolean {
    const known = this.#servers.get(server);
    if (known === undefined || (view.scope !== undefined && view.scope !== server)) return false;
    for (const { own } of known.lists.get("tools")?.items ?? []) {
      if (!hides(known, "tools", own) && view.allows(server, ownToolName(own))) return true;
    }
    return false;
  }

  /** What a view has of a list, whatever the menu's form: to tell two views apart. */
  entriesOf(kind: ListKind, view: View): Entry[] {
    const { entries } = this.#mergedOf(kind, view.scope);
    return entries.filter(({ server, item }) => view.allows(server, ownTool(kind, item)));
  }

  /** The schema of a tool's arguments; undefined where there is no such tool. */
  inputSchema(server: string, own: OwnToolName): unknown {
    const items = this.#servers.get(server)?.lists.get("tools")?.items;
    return items === undefined ? undefined : itemNamed(items, own)?.value["inputSchema"];
  }

  /** True where a legacy agent is told that the tool's structured output is `{"result": …}`. */
  wrapsOutput(server: string, own: OwnToolName): boolean {
    const list = this.#servers.get(server)?.lists.get("tools");
    return list?.wraps === true && itemNamed(list.items, own)?.mended?.wrapsOutput === true;
  }

  /** What the server says of a tool and tasks: "required", "optional" or "forbidden". */
  taskSupport(server: string, own: OwnToolName): unknown {
    const items = this.#servers.get(server)?.lists.get("tools")?.items;
    const execution = items === undefined ? undefined : itemNamed(items, own)?.value["execution"];
    return isObject(execution) ? execution["taskSupport"] : undefined;
  }

  // ── Search ───────────────────────────────────────────────────────────────────────────────────────────────────

  /** The tools of the view that fit best. */
  find(query: string, limit: number, view: View): Promise<FoundTool[]> {
    return this.#search.find(this.#mergedOf("tools", view.scope).entries, query, limit, view);
  }

  #isSearch(kind: ListKind, scope: string | undefined): boolean {
    return kind === "tools" && scope === undefined && this.#menu === "search";
  }

  // ── From names to servers ────────────────────────────────────────────────────────────────────────────────────

  resolveTool(exposed: ExposedName, scope: string | undefined): ResolvedTool {
    if (this.#isSearch("tools", scope)) {
      if (exposed === FIND_TOOLS) return { kind: "menu", tool: FIND_TOOLS };
      if (exposed === CALL_TOOL) return { kind: "menu", tool: CALL_TOOL };
    }
    return this.#resolve<OwnToolName>("tools", exposed, scope);
  }

  /** The own name of what is called so at `/mcp/<server>`, by the config alone: no list needs to be known. */
  ownTool(server: string, exposed: ExposedName): OwnToolName {
    for (const [own, { name }] of this.#servers.get(server)?.overrides.tools ?? []) {
      if (name === exposed) return ownToolName(own);
    }
    return ownToolName(exposed);
  }

  resolvePrompt(exposed: ExposedName, scope: string | undefined): Resolved<OwnName> {
    return this.#resolve("prompts", exposed, scope);
  }

  #resolve<Own extends OwnName>(kind: NamedKind, exposed: ExposedName, scope: string | undefined): Resolved<Own> {
    const owner = this.#mergedOf(kind, scope).owners.get(exposed);
    if (owner !== undefined) return { kind: "found", server: owner.server, own: owner.own as Own };
    return { kind: "unknown", server: this.#guess(kind, exposed, scope) };
  }

  /** The server whose list, once it is read, may have this name. */
  #guess(kind: NamedKind, exposed: ExposedName, scope: string | undefined): string | undefined {
    const unread = this.#inScope(scope).filter((known) => !known.lists.has(kind));
    if (scope !== undefined || this.#servers.size === 1) return unread[0]?.name;
    const renamed = unread.find((known) => isRenamedTo(known, kind, exposed));
    if (renamed !== undefined || this.#names === "plain") return renamed?.name;
    return unread.find(({ name }) => exposed.startsWith(`${this.#prefixes.get(name)}${SEPARATOR}`))?.name;
  }

  /** The servers that may have something of this name, for all that is known of names. */
  candidates(kind: NamedKind, exposed: ExposedName, scope: string | undefined): string[] {
    const servers = this.#inScope(scope);
    const fitting =
      scope !== undefined || this.#names === "plain" || this.#servers.size === 1
        ? servers
        : servers.filter((known) => this.#mayName(known, kind, exposed));
    return fitting.map(({ name }) => name);
  }

  /** Whether a tool of this name is the server's, if anybody's, by its prefix or by the config. */
  mayBeOf(server: string, exposed: ExposedName): boolean {
    const known = this.#servers.get(server);
    return known !== undefined && this.#names === "prefixed" && this.#mayName(known, "tools", exposed);
  }

  #mayName(known: KnownServer, kind: NamedKind, exposed: ExposedName): boolean {
    if (exposed.startsWith(`${this.#prefixes.get(known.name)}${SEPARATOR}`)) return true;
    return isRenamedTo(known, kind, exposed);
  }

  /** The server that a URI belongs to; the only one that has resources where no list tells. */
  resolveResource(uri: string, scope: string | undefined): string | undefined {
    return this.#routesOf(scope).ofUri(uri) ?? this.#onlyWithResources(scope);
  }

  /** For completion/complete: a template as listed, or a URI. */
  resolveTemplate(uriTemplate: string, scope: string | undefined): string | undefined {
    return this.#routesOf(scope).ofTemplate(uriTemplate) ?? this.resolveResource(uriTemplate, scope);
  }

  #onlyWithResources(scope: string | undefined): string | undefined {
    const servers = this.#inScope(scope);
    const having = servers.filter(({ intro }) => intro?.capabilities["resources"] !== undefined);
    // A server that has never been reached does not stand in the way of the only one that is known to have some.
    const candidates = having.length > 0 ? having : servers.filter(({ intro }) => intro === undefined);
    return candidates.length === 1 ? candidates[0]?.name : undefined;
  }

  // ── What agents and operators are told ───────────────────────────────────────────────────────────────────────

  /** `sees` leaves out servers of which the caller may know nothing. */
  capabilities(
    scope: string | undefined,
    sees: (server: string) => boolean = () => true,
    era: Era = "legacy",
  ): JsonObject {
    const servers = this.#inScope(scope).filter(({ name }) => sees(name));
    const own = mergeCapabilities(servers.map(({ intro }) => intro));
    const merged = servers.some(({ outbox }) => outbox !== undefined) ? withReceipts(own, era) : own;
    // Servers may be added while the agent is connected, and their tools come by list_changed.
    return scope === undefined ? { tools: { listChanged: true }, ...merged } : merged;
  }

  instructions(scope: string | undefined, sees: (server: string) => boolean = () => true): string | undefined {
    return mergeInstructions(
      this.#inScope(scope).filter(({ name }) => sees(name)),
      scope !== undefined,
    );
  }

  /** What the server said of itself, now or before. */
  introOf(server: string): ServerIntro | undefined {
    return this.#servers.get(server)?.intro;
  }

  /** What the server offers to agents: hidden ones are not counted. */
  counts(server: string): Record<ListKind, number> {
    const count = (kind: ListKind): number => {
      const known = this.#servers.get(server);
      return known === undefined ? 0 : visible(known, kind, known.lists.get(kind)).length;
    };
    return {
      tools: count("tools"),
      prompts: count("prompts"),
      resources: count("resources"),
      resourceTemplates: count("resourceTemplates"),
    };
  }

  /** Names and URIs that two servers claim, one line for each cause. */
  conflicts(): string[] {
    return bounded(LIST_KINDS.flatMap((kind) => this.#mergedOf(kind, undefined).conflicts));
  }

  /** Entries that are left out, and settings that fit nothing. */
  notes(): string[] {
    return bounded(LIST_KINDS.flatMap((kind) => this.#mergedOf(kind, undefined).notes));
  }

  /** What is wrong with definitions of the server, and was mended or left out. */
  problems(server: string): string[] {
    const lists = this.#servers.get(server)?.lists.values() ?? [];
    return [...lists].flatMap(({ problems }) => problems);
  }

  // ── On disk ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** What is known of a server, as a value for JSON; undefined where nothing is. */
  snapshot(server: string): JsonObject | undefined {
    const known = this.#servers.get(server);
    if (known === undefined || (known.intro === undefined && known.lists.size === 0)) return undefined;
    for (const kind of ["tools", "prompts"] as const) this.#mergedOf(kind, undefined);
    return toSnapshot(known, this.#prefixes.get(server), {
      tools: this.#kept.tools.get(server),
      prompts: this.#kept.prompts.get(server),
    });
  }

  /** Takes back a snapshot, before the server itself has spoken. False where there was nothing to take. */
  restore(server: string, snapshot: unknown): boolean {
    const known = this.#servers.get(server);
    const restored = fromSnapshot(server, snapshot);
    if (known === undefined || restored === undefined) return false;
    known.intro ??= restored.intro;
    if (restored.prefix !== undefined) this.#prefixHints.set(server, restored.prefix);
    for (const kind of ["tools", "prompts"] as const) {
      if (!this.#kept[kind].has(server)) {
        this.#kept[kind] = new Map([...this.#kept[kind], [server, restored.names[kind]]]);
      }
    }
    for (const [kind, list] of restored.lists) if (!known.lists.has(kind)) this.#keep(known, kind, list);
    this.#assignPrefixes();
    for (const kind of LIST_KINDS) this.#bump(kind);
    return true;
  }

  // ── Inside ───────────────────────────────────────────────────────────────────────────────────────────────────

  #inScope(scope: string | undefined): KnownServer[] {
    if (scope === undefined) return [...this.#servers.values()];
    const known = this.#servers.get(scope);
    return known === undefined ? [] : [known];
  }

  #mergedOf(kind: ListKind, scope: string | undefined): Merged {
    const cache = this.#merged[kind];
    let merged = cache.get(scope);
    if (merged === undefined) {
      merged = this.#merge(kind, scope);
      if (scope === undefined || this.#servers.has(scope)) cache.set(scope, merged);
    }
    return merged;
  }

  #merge(kind: ListKind, scope: string | undefined): Merged {
    const servers = this.#inScope(scope);
    if (!isNamed(kind)) return mergeUris(servers, kind);
    // One server alone has its own names.
    const ours = kind === "tools" && this.hasOutbox(scope) ? [RECEIPT_TOOL] : [];
    if (scope !== undefined) return mergeNamed(servers, kind, { mode: "plain", reserved: ours });
    const merged = mergeNamed(servers, kind, {
      mode: this.#names,
      reserved: this.#isSearch(kind, scope) ? [...SEARCH_NAMES, ...ours] : ours,
      prefixes: this.#prefixes,
      previous: this.#kept[kind],
    });
    if (this.#names === "prefixed") this.#kept[kind] = merged.assignment.kept;
    return merged;
  }

  #routesOf(scope: string | undefined): Routes {
    let routes = this.#routes.get(scope);
    if (routes === undefined) {
      const sources = this.#inScope(scope).map(({ name, lists }) => ({
        server: name,
        resources: lists.get("resources")?.items ?? [],
        templates: lists.get("resourceTemplates")?.items ?? [],
      }));
      routes = new Routes(sources);
      if (scope === undefined || this.#servers.has(scope)) this.#routes.set(scope, routes);
    }
    return routes;
  }

  #bump(kind: ListKind): void {
    this.#versions[kind]++;
    this.#merged[kind].clear();
    this.#pages.clear(kind);
    if (!isNamed(kind)) this.#routes.clear();
  }

  #assignPrefixes(): void {
    const before = new Map([...this.#prefixes, ...this.#prefixHints]);
    this.#prefixes = assignPrefixes([...this.#servers.keys()], before);
  }

  #forget(server: string): void {
    this.room.forget(server);
    this.#prefixHints.delete(server);
    for (const kind of ["tools", "prompts"] as const) {
      const kept = new Map(this.#kept[kind]);
      if (kept.delete(server)) this.#kept[kind] = kept;
    }
  }

  /** Which lists agents see changed by `act`, at `/mcp` or at any `/mcp/<server>`. */
  #changes(act: () => void): ListKind[] {
    const before = LIST_KINDS.map((kind) => this.#allTexts(kind));
    act();
    for (const kind of LIST_KINDS) this.#bump(kind);
    return LIST_KINDS.filter((kind, i) => {
      const after = this.#allTexts(kind);
      return after.length !== before[i]?.length || after.some((text, at) => text !== before[i]?.[at]);
    });
  }

  #allTexts(kind: ListKind): string[] {
    const texts: string[] = [];
    if (this.#isSearch(kind, undefined)) texts.push("search");
    for (const scope of [undefined, ...this.#servers.keys()]) {
      if (this.hasOutbox(scope)) texts.push("receipts");
      for (const { server, json } of this.#mergedOf(kind, scope).entries) texts.push(server, json);
    }
    return texts;
  }
}

/** Whether the config gives something that is shown this name. */
function isRenamedTo(known: KnownServer, kind: NamedKind, exposed: ExposedName): boolean {
  return [...known.overrides[kind]].some(([own, { name }]) => name === exposed && !hides(known, kind, own));
}

function toOverrides(byName: Readonly<Record<string, Override>> = {}): Overrides {
  return new Map(Object.entries(byName).map(([own, override]) => [ownName(own), override]));
}
