// What the log tells at `debug` of agents that come and go, and of what servers say. Where nobody reads it, nothing is called for it.

import type { Caller } from "../contracts/caller.js";
import type { Log } from "./log.js";

/** Undefined where the log is another program's. */
export function sessionLog(
  log: Log,
): ((what: "opened" | "resumed" | "closed", session: Caller, scope?: string) => void) | undefined {
  if (log.lines === undefined) return undefined;
  return (what, { principal, clientInfo, version }, scope) => {
    if (!isDebug(log)) return;
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

/** Undefined where the log is another program's. */
export function connectionLog(
  log: Log,
): ((what: "opened" | "closed", peer: string | undefined, open: number) => void) | undefined {
  if (log.lines === undefined) return undefined;
  return (what, peer, open) => {
    if (isDebug(log)) log.debug(`connection ${what}`, { peer, open });
  };
}

/** A server's own words; each line is one of the log. Undefined where the log is another program's. */
export function stderrLog(log: Log): ((server: string, lines: readonly string[]) => void) | undefined {
  if (log.lines === undefined) return undefined;
  return (server, lines) => {
    if (!isDebug(log)) return;
    for (const line of lines) log.debug("server says", { server, line });
  };
}

/** Asked each time: the level may be another than at the start. */
function isDebug(log: Log): boolean {
  return log.lines?.isOn("debug") ?? false;
}
