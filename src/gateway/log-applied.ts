// What the log says of a config that was taken on while the gateway runs, and what of it waits for the next start.

import type { Config } from "../config/config.js";
import type { Log } from "../observe/log.js";

/** What is bound when the endpoint opens. */
const NEEDS_RESTART: readonly { readonly key: string; read(config: Config): unknown }[] = [
  { key: "listen", read: ({ listen }) => listen },
  // Another certificate is taken on; whether there is one is not.
  { key: "tls", read: ({ tls }) => tls === undefined },
  { key: "state", read: ({ stateDir }) => stateDir },
  { key: "pageSize", read: ({ pageSize }) => pageSize },
  { key: "telemetry", read: ({ telemetry }) => telemetry },
];

export interface Applied {
  readonly before: Config;
  readonly after: Config;
  /** Names of servers. */
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly removed: readonly string[];
}

export function logApplied(log: Log, { before, after, added, changed, removed }: Applied): void {
  const parts = Object.entries({ added, changed, removed }).flatMap(([verb, names]) =>
    names.length === 0 ? [] : [`${verb} ${names.join(", ")}`],
  );
  log.info(`config applied: ${parts.join("; ") || "no server changed"}`);
  for (const warning of after.warnings) log.warn(warning);
  for (const { key, read } of NEEDS_RESTART) {
    if (JSON.stringify(read(before)) !== JSON.stringify(read(after))) {
      log.warn(`"${key}" in the config changed; it takes effect at the next start`);
    }
  }
}

/** Servers that are not started, or go on by an entry that is no longer in the file. */
export function logMisconfigured(log: Log, { misconfigured }: Config, kept: ReadonlyMap<string, string>): void {
  for (const { name, forOperator } of misconfigured) log.error(`server "${name}": misconfigured: ${forOperator}`);
  for (const [name, wrong] of kept) {
    log.error(`server "${name}": its new entry is not used, the one before goes on: ${wrong}`);
  }
}
