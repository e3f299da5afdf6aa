// The config that a gateway goes by: tells the stages what it says, at the start and when it was read again, and knows
// what of the file is not in use: an entry that is wrong, a whole file that is, what waits for a restart.

import type { CatalogServer } from "../catalog/catalog.js";
import { type Config, inFileOrder, type ServerConfig, type WrongEntry } from "../config/config.js";
import { ownToolName } from "../contracts/names.js";
import type { GatewayStatus } from "../contracts/status.js";
import type { Log } from "../observe/log.js";
import { compileBudgets } from "../policy/budget.js";
import { compileMenus } from "../policy/menus.js";
import { systemClock } from "../runtime/clock.js";
import { logApplied, logRemarks, type ReloadReport, waitsForRestart } from "./applied.js";
import type { ConfigTexts } from "./diagnostics/config-shown.js";
import { policyOf, type Stages } from "./stages.js";
import type { GatewayState } from "./state/state.js";

interface ConfigParts {
  readonly config: Config;
  readonly stages: Stages;
  readonly state: Pick<GatewayState, "known" | "engine">;
  readonly log: Log;
  /** Reads the config again. Throws what is wrong with it. */
  readonly read: () => Config;
  readonly lastText?: (() => string | undefined) | undefined;
  readonly logsRemarks?: boolean | undefined;
  /** Tells what listens, if anything does. */
  readonly toEndpoint: (config: Config) => void;
}

export class ConfigInUse {
  readonly #parts: ConfigParts;
  readonly #stages: Stages;
  readonly #log: Log;
  #current: Config;
  #error: string | undefined;
  #errorAt: string | undefined;
  /** Of the file: as it is in use, and of an edit that could not be applied. */
  #text: string | undefined;
  #editText: string | undefined;
  #lastEdit: GatewayStatus["config"]["lastEdit"];
  /** Servers that go on by the entry that they had, and what is wrong with the new one. */
  #kept = NOTHING_KEPT;
  #areServersStarted = false;

  constructor(parts: ConfigParts) {
    this.#parts = parts;
    this.#stages = parts.stages;
    this.#log = parts.log;
    this.#current = parts.config;
  }

  get current(): Config {
    return this.#current;
  }

  /** Tells the stages what they go by at the start; they may ask for `current` meanwhile. */
  begin(): void {
    const { config, stages, state } = this.#parts;
    this.#text = this.#parts.lastText?.();
    this.#setCached();
    stages.catalog.setServers(menusOf(config));
    stages.pins.configure(config.servers, idleNames(config));
    for (const { name, isShown } of menusOf(config)) {
      if (!isShown) continue;
      stages.catalog.restore(name, state.known.get(name));
      this.#checkPins(name);
    }
    stages.patterns.tell(config);
    this.#setMenus();
    stages.outbox.apply(config);
    stages.pipeline.setBudgets(compileBudgets(config, undefined, state.engine?.budgets));
    stages.records.configure(config.log.calls);
    stages.marks?.publish(config);
  }

  status(): GatewayStatus["config"] {
    const { path, warnings } = this.#current;
    return {
      path,
      error: this.#error,
      errorAt: this.#errorAt,
      keptEntries: Object.fromEntries(this.#kept),
      warnings,
      unusedPatterns: this.#stages.patterns.now(this.#current),
      unusedSince: this.#stages.patterns.since(),
      waitsForRestart: waitsForRestart(this.#parts.config, this.#current),
      lastEdit: this.#lastEdit,
    };
  }

  texts(): ConfigTexts {
    const { path, warnings, misconfigured } = this.#current;
    const wrong = [...misconfigured.map(({ forOperator }) => forOperator), ...this.#kept.values()];
    const remarks = [...wrong, ...warnings];
    return { path, text: this.#text, editText: this.#editText, error: this.#error, remarks };
  }

  /** The server's entry in the file cannot be used, as it was last read. */
  isWrong(server: string): boolean {
    return this.#kept.has(server) || this.#current.misconfigured.some(({ name }) => name === server);
  }

  /** Why a server goes on by the entry that it had; empty where it does not. */
  keptText(server: string): string[] {
    const wrong = this.#kept.get(server);
    return wrong === undefined ? [] : [`its new entry is not used, the one before goes on: ${wrong}`];
  }

  /** Starts what the config names. Changes of it start and stop servers from now on. */
  startServers(): void {
    this.#areServersStarted = true;
    this.#stages.executors.apply(this.#current.executors);
    this.#stages.servers.apply(this.#current.servers, this.#current.misconfigured);
    if (this.#parts.logsRemarks !== false) logRemarks(this.#log, this.#current, this.#kept);
    this.#stages.outbox.start();
  }

  /** Reads the config again and takes it on. One that cannot be used changes nothing, and is thrown. */
  reload(): ReloadReport {
    let read: Config;
    try {
      read = this.#parts.read();
    } catch (error) {
      this.#error = (error as Error).message;
      this.#errorAt ??= new Date(systemClock.wall()).toISOString();
      this.#editText = this.#parts.lastText?.();
      this.#log.error(`the config was not applied, the one before goes on: ${this.#error}`);
      throw error;
    }
    const report = this.#apply(read);
    const text = this.#parts.lastText?.();
    const isOther = text !== this.#text || report.changes.length > 0;
    this.#text = text;
    this.#editText = undefined;
    if (isOther) {
      this.#lastEdit = { at: new Date(systemClock.wall()).toISOString(), changes: report.changes };
    }
    return report;
  }

  #apply(read: Config): ReloadReport {
    const { catalog, cache, pipeline, servers, executors, pins, patterns } = this.#stages;
    const before = this.#current;
    const { config, kept } = keepEntries(read, before);
    this.#kept = kept;
    this.#current = config;
    this.#error = undefined;
    this.#errorAt = undefined;
    const rules = ({ roles, unlistedRoles }: Config) => JSON.stringify([roles, unlistedRoles]);
    if (rules(before) !== rules(config)) pipeline.setPolicy(policyOf(config, this.#log));
    if (JSON.stringify(before.menus) !== JSON.stringify(config.menus)) this.#setMenus();
    pipeline.setBudgets(compileBudgets(config, pipeline.budgets, this.#parts.state.engine?.budgets));
    this.#stages.records.configure(config.log.calls);
    this.#setCached();
    this.#stages.held.setLimit(config.limits.heldBytes);
    this.#parts.toEndpoint(config);
    const lists = new Set([...catalog.setServers(menusOf(config)), ...catalog.setModes(config.names, config.menu)]);
    if (this.#areServersStarted) executors.apply(config.executors);
    const { added, changed, removed } = this.#areServersStarted
      ? servers.apply(config.servers, config.misconfigured)
      : { added: [], changed: [], removed: [] };
    this.#stages.credentials.keep(new Set([...servers.all].map(({ spec }) => spec.target)));
    for (const server of changed) cache.invalidate(server);
    for (const server of removed) {
      cache.removeServer(server);
      this.#stages.lists.forget(server);
    }
    for (const server of pins.configure(config.servers, idleNames(config))) this.#checkPins(server);
    for (const kind of lists) pipeline.sessions.listChanged(kind, [...servers.names, ...removed]);
    this.#stages.outbox.apply(config);
    this.#stages.marks?.publish(config);
    const report = logApplied(this.#log, { before, after: config, added, changed, removed });
    logRemarks(this.#log, config, kept, before);
    patterns.tell(config);
    return report;
  }

  #setMenus(): void {
    const { menus: rules } = this.#current;
    const menus = rules.length === 0 ? undefined : compileMenus(rules);
    for (const problem of menus?.problems ?? []) this.#log.warn(problem);
    this.#stages.pipeline.setMenus(menus);
  }

  /** Tells the cache its bounds, and which tools of which server it may answer. */
  #setCached(): void {
    const { cache } = this.#stages;
    cache.setLimits(this.#current.cache);
    for (const { name, tools } of this.#current.servers) {
      const cached = Object.keys(tools).filter((tool) => tools[tool]?.cache === true);
      cache.setServer(name, new Set(cached.map(ownToolName)));
    }
  }

  /** Checks the list that the catalog has, read or restored: all of it, also what the config hides. */
  #checkPins(server: string): void {
    const { catalog, pins, pipeline } = this.#stages;
    const tools = catalog.listedTools(server);
    if (tools !== undefined && pins.check(server, tools).differs) pipeline.pinsChanged(server);
  }
}

/** What agents are shown of each server. Of one whose entry is wrong it is what is known from before, if anything. */
function menusOf({ servers, misconfigured }: Config): (CatalogServer & { readonly isShown: boolean })[] {
  return inFileOrder(servers, misconfigured).map((one) =>
    "place" in one ? { name: one.name, ...one.menu, isShown: one.menu !== undefined } : { ...one, isShown: true },
  );
}

const NOTHING_KEPT: ReadonlyMap<string, string> = new Map();

interface KeptEntries {
  /** The config to use. `misconfigured` has those alone that had no entry to go on by. */
  readonly config: Config;
  /** Servers that go on by their entry before: name → what is wrong with the new one. */
  readonly kept: ReadonlyMap<string, string>;
}

/** A server whose new entry is wrong goes on by the entry that it had. */
export function keepEntries(read: Config, before: Config): KeptEntries {
  if (read.misconfigured.length === 0) return { config: read, kept: NOTHING_KEPT };
  const entries = new Map(before.servers.map((server) => [server.name, server]));
  const kept = new Map<string, string>();
  const servers: ServerConfig[] = [];
  const misconfigured: WrongEntry[] = [];
  for (const one of inFileOrder(read.servers, read.misconfigured)) {
    const entry = "place" in one ? entries.get(one.name) : one;
    if (entry !== undefined) servers.push(entry);
    if (!("place" in one)) continue;
    if (entry === undefined) misconfigured.push({ ...one, place: servers.length });
    else kept.set(one.name, one.forOperator);
  }
  return { config: { ...read, servers, misconfigured }, kept };
}

/** Servers that have an entry and do not run by it: it is wrong, or switches them off. */
function idleNames({ misconfigured, disabled }: Config): string[] {
  return [...misconfigured.map(({ name }) => name), ...disabled];
}
