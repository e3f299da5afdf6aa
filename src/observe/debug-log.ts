// What the log tells at `debug` of agents that come and go, and of what servers say. Where nobody reads it, nothing is called for it.

import type { Caller } from "../contracts/caller.js";
import type { Log } from "./log.js";

/** Undefined where the log is not at `debug`. */
export function sessionLog(
  log: Log,
): ((what: "opened" | "resumed" | "closed", session: Caller, scope?: string) => void) | undefined {
  if (!isDebug(log)) return undefined;
  return (what, { principal, clientInfo, version }, scope) => {
    const { name } = clientInfo;
    log.debug(`session ${what}`, {
      principal: principal.id,
      role: principal.role,
      client: typeof name === "string" ? name : undefined,
      version,
      server: scope,
    });
  };
}

/** Undefined where the log is not at `debug`. */
export function connectionLog(
  log: Log,
): ((what: "opened" | "closed", peer: string | undefined, open: number) => void) | undefined {
  if (!isDebug(log)) return undefined;
  return (what, peer, open) => log.debug(`connection ${what}`, { peer, open });
}

/** A server's own words; each line is one of the log. Undefined where the log is not at `debug`. */
export function stderrLog(log: Log): ((server: string, lines: readonly string[]) => void) | undefined {
  if (!isDebug(log)) return undefined;
  return (server, lines) => {
    for (const line of lines) log.debug("server says", { server, line });
  };
}

function isDebug(log: Log): boolean {
  return log.lines?.isOn("debug") ?? false;
}
