// What an edit of the config changes about the servers, so that only those are started anew.

import { isDeepStrictEqual } from "node:util";
import type { ServerConfig } from "./config.js";

export interface ServerDiff {
  readonly added: readonly ServerConfig[];
  /** As they were. */
  readonly removed: readonly ServerConfig[];
  /** As they are now. */
  readonly changed: readonly ServerConfig[];
  readonly same: readonly ServerConfig[];
}

/** By the resolved entry: a changed variable counts, a changed comment or the order does not. */
export function diffServers(before: readonly ServerConfig[], after: readonly ServerConfig[]): ServerDiff {
  const old = new Map(before.map((server) => [server.name, server]));
  const names = new Set(after.map((server) => server.name));
  const added: ServerConfig[] = [];
  const changed: ServerConfig[] = [];
  const same: ServerConfig[] = [];
  for (const server of after) {
    const was = old.get(server.name);
    if (was === undefined) added.push(server);
    else if (isDeepStrictEqual(was, server)) same.push(server);
    else changed.push(server);
  }
  return { added, removed: before.filter((server) => !names.has(server.name)), changed, same };
}
