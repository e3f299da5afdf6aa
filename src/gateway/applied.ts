// What a config that was taken on while the gateway runs has changed, in words, and what of it waits for the next
// start.

import type { Config, ServerConfig } from "../config/config.js";
import { factsFor, type Log } from "../observe/log.js";

/** What is bound when the endpoint opens, or made with the gateway. */
const NEEDS_RESTART: readonly { readonly key: string; read(config: Config): unknown }[] = [
  { key: "listen", read: ({ listen }) => listen },
  // Another certificate is taken on; whether there is one is not.
  { key: "tls", read: ({ tls }) => tls === undefined },
  { key: "state", read: ({ stateDir }) => stateDir },
  { key: "admin", read: ({ admin }) => admin },
  { key: "engine", read: ({ engine }) => engine },
  { key: "pageSize", read: ({ pageSize }) => pageSize },
  { key: "telemetry", read: ({ telemetry }) => telemetry },
  { key: "audit", read: ({ audit }) => audit },
];

/** What a reload changes at once; servers are told of by name. */
const TAKEN_ON: readonly (keyof Config)[] = [
  "roles",
  "unlistedRoles",
  "menus",
  "names",
  "menu",
  "executors",
  "mailboxes",
  "allowedHosts",
  "allowedOrigins",
  "tls",
  "sessions",
  "limits",
  "drainMs",
  "cache",
  "log",
  "share",
];

export interface Applied {
  readonly before: Config;
  readonly after: Config;
  /** Names of servers. */
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

/** What a person is told of a reload. */
export interface ReloadReport {
  /** What is another than before: `added wiki`, `roles`, `3 tools`. Empty where nothing is. */
  readonly changes: readonly string[];
}

/** Keys of the config that are other than at the start, and wait for the next one. */
export function waitsForRestart(started: Config, now: Config): string[] {
  return NEEDS_RESTART.filter(({ read }) => !same(read(started), read(now))).map(({ key }) => key);
}

export function changesOf({ before, after, added, changed, removed }: Applied): string[] {
  const servers = Object.entries({ added, changed, removed }).flatMap(([verb, names]) =>
    names.length === 0 ? [] : [`${verb} ${names.join(", ")}`],
  );
  const waiting = waitsForRestart(before, after);
  const keys = TAKEN_ON.filter((key) => !same(before[key], after[key]) && !waiting.includes(key));
  return [...servers, ...keys, ...ofServers(before, after)];
}

/** What an entry says of tools, prompts and calls is changed without a new start of its server. */
function ofServers(before: Config, after: Config): string[] {
  const old = new Map(before.servers.map((server) => [server.name, server]));
  const both = after.servers.flatMap((now) => {
    const was = old.get(now.name);
    return was === undefined ? [] : [{ was, now }];
  });
  const counted = (["tools", "prompts"] as const).flatMap((kind) => {
    const n = both.reduce((sum, { was, now }) => sum + differing(was[kind], now[kind]), 0);
    return n === 0 ? [] : [`${n} ${n === 1 ? kind.slice(0, -1) : kind}`];
  });
  const budgets = both.filter(({ was, now }) => !same(was.budget, now.budget)).map(({ now }) => now.name);
  const shown = both.filter(({ was, now }) => !same(was.only, now.only)).map(({ now }) => now.name);
  return [
    ...counted,
    ...(shown.length === 0 ? [] : [`what is shown of ${shown.join(", ")}`]),
    ...(budgets.length === 0 ? [] : [`budget of ${budgets.join(", ")}`]),
  ];
}

function differing(was: ServerConfig["prompts"], now: ServerConfig["prompts"]): number {
  const names = new Set([...Object.keys(was), ...Object.keys(now)]);
  return [...names].filter((name) => !same(was[name], now[name])).length;
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

export function logApplied(log: Log, applied: Applied): ReloadReport {
  const { before, after } = applied;
  const changes = changesOf(applied);
  log.info(`config applied: ${changes.join("; ") || "nothing changed"}`);
  for (const key of waitsForRestart(before, after)) {
    log.warn(`"${key}" in the config changed; it takes effect at the next start`);
  }
  return { changes };
}

/**
 * What the config has that is not as it was meant: servers that are not started, or go on by an entry that is no longer
 * in the file, and what it warns of. Said at the start and at each reload, and nowhere else; of the warnings a reload says
 * those that `before`, the config before it, did not have: the others stand in the log already. One that an edit moved
 * to another line has its new place, and is said again.
 */
export function logRemarks(
  log: Log,
  { misconfigured, warnings }: Config,
  kept: ReadonlyMap<string, string>,
  before?: Pick<Config, "warnings">,
): void {
  for (const { name, forOperator } of misconfigured) {
    const facts = factsFor(log, { server: name, state: "misconfigured" });
    log.error(`server "${name}": misconfigured: ${forOperator}`, facts);
  }
  for (const [name, wrong] of kept) {
    const text = `server "${name}": its new entry is not used, the one before goes on: ${wrong}`;
    log.error(text, factsFor(log, { server: name }));
  }
  const said = new Set(before?.warnings);
  for (const warning of warnings) if (!said.has(warning)) log.warn(warning);
}
