// The tools of a gateway as the program and the operator see them: all of them, whatever the menu shows, which are
// quarantined, and which rules of the config fit none.

import type { Catalog } from "../catalog/catalog.js";
import type { Config } from "../config/config.js";
import { exposedName, ownToolName } from "../contracts/names.js";
import { unusedPatterns } from "../policy/unused-patterns.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { isoTime, systemClock } from "../runtime/clock.js";
import { safeLine } from "./state/state.js";
import type { StoredPins } from "./state/stored-pins.js";

export interface ToolListing {
  readonly name: string;
  readonly server: string;
  readonly ownName: string;
  readonly description: string | undefined;
  readonly inputSchema: unknown;
  /** Absent where the server gives none. */
  readonly outputSchema?: unknown;
  /** What its server claims of it; absent where it claims nothing. */
  readonly annotations?: unknown;
  /** Why no agent may use it: its definition changed. Absent for a tool that may be used. */
  readonly quarantined?: string;
}

export function listTools(catalog: Catalog, pins: StoredPins): ToolListing[] {
  return catalog.tools().map(({ name, server, item, description }) => {
    const quarantined = pins.quarantine(server, ownToolName(item.own));
    return {
      name,
      server,
      ownName: item.own,
      description,
      inputSchema: item.value["inputSchema"],
      ...given(item.value, "outputSchema"),
      ...given(item.value, "annotations"),
      ...(quarantined === undefined ? {} : { quarantined }),
    };
  });
}

/**
 * The servers that may have a tool which is not listed: those whose prefix or name it begins with, else those whose tools
 * nobody knows yet.
 */
export function possibleOwners(catalog: Catalog, servers: readonly string[], typed: string): string[] {
  const named = servers.filter((name) => catalog.mayBeOf(name, exposedName(typed)) || typed.startsWith(`${name}/`));
  return named.length > 0 ? named : servers.filter((name) => catalog.ownTools(name) === undefined);
}

/** Why a tool that a server has is not listed, for the operator: the entry hides it. Undefined where none does. */
export function hiddenReason(catalog: Catalog, servers: Config["servers"], typed: string): string | undefined {
  for (const { name, tools } of servers) {
    const shown = new Set(catalog.shownTools(name));
    const own = catalog.ownTools(name)?.find((tool) => !shown.has(tool) && isMeant(catalog, name, tool, typed));
    if (own === undefined) continue;
    const why = tools[own]?.hide === true ? 'says "hide" of it' : 'has an "only" that does not name it';
    return `Server "${name}" has a tool "${own}", and its entry in the config ${why}: nobody can call it.`;
  }
  return undefined;
}

function isMeant(catalog: Catalog, server: string, own: string, typed: string): boolean {
  if (typed === own || typed === `${server}/${own}`) return true;
  return typed.endsWith(own) && catalog.mayBeOf(server, exposedName(typed));
}

/** Tools of a server that a person has to decide about. */
export interface Quarantined {
  readonly count: number;
  /** Since when the first of them is hidden; undefined where nobody knows. */
  readonly sinceMs: number | undefined;
}

/**
 * Of the tools of a server that its entry shows: also of those that another server's has the name of, since they are offered
 * where the server is alone. What was rejected is hidden, and asks no more.
 */
export function quarantinedOf(catalog: Catalog, pins: StoredPins, server: string): Quarantined {
  const asking = pins.asking(server).filter((tool) => catalog.showsTool(server, tool));
  const sinceMs = asking.flatMap((tool) => pins.changedMs(server, tool) ?? []);
  return { count: asking.length, sinceMs: sinceMs.length === 0 ? undefined : Math.min(...sinceMs) };
}

/** What an entry names tools by. */
export interface NamingEntry {
  readonly name: string;
  readonly tools: object;
  readonly only?: readonly string[] | undefined;
}

/** Lists come one by one at a start: patterns are looked at once for those of a moment. */
const LOOK_MS = 200;

/** What of roles, menus and entries fits no tool, for the status and, each once for as long as it is so, for the log. */
export class UnusedPatterns {
  readonly #catalog: Catalog;
  readonly #log: (text: string) => void;
  #found: { config?: Config; version: number; texts: readonly string[] } = { version: -1, texts: [] };
  /** When each of those that were found was found first. */
  #sinceMs: ReadonlyMap<string, number> = new Map();
  #told: readonly string[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(catalog: Catalog, log: (text: string) => void) {
    this.#catalog = catalog;
    this.#log = log;
  }

  /** `entries`: as they would be, where they are not those that are in use. */
  of(
    { roles, menus, servers }: Pick<Config, "roles" | "menus" | "servers">,
    entries: readonly NamingEntry[] = servers,
  ): readonly string[] {
    const known = entries.map(({ name, tools, only }) => {
      return { name, tools: this.#catalog.ownTools(name), settings: Object.keys(tools), only };
    });
    // They may name a tool that is nearly what was written.
    return unusedPatterns(roles, known, menus).map((text) => safeLine(servers, text));
  }

  /** Looked for once for each list of tools, since the status is asked often. */
  now(config: Config): readonly string[] {
    const version = this.#catalog.version("tools");
    if (this.#found.config !== config || this.#found.version !== version) {
      this.#found = { config, version, texts: this.of(config) };
      const wallMs = systemClock.wall();
      this.#sinceMs = new Map(this.#found.texts.map((text) => [text, this.#sinceMs.get(text) ?? wallMs]));
    }
    return this.#found.texts;
  }

  /** Of those that were found last. */
  since(): Record<string, string> {
    return Object.fromEntries([...this.#sinceMs].map(([text, ms]) => [text, isoTime(ms)]));
  }

  tell(config: Config): void {
    this.close();
    const unused = this.now(config);
    for (const text of unused) if (!this.#told.includes(text)) this.#log(text);
    this.#told = unused;
  }

  tellSoon(config: () => Config): void {
    this.#timer ??= setTimeout(() => this.tell(config()), LOOK_MS).unref();
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}

function given(
  value: JsonObject,
  key: "outputSchema" | "annotations",
): { outputSchema?: unknown; annotations?: unknown } {
  return value[key] === undefined ? {} : { [key]: value[key] };
}
