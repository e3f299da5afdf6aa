// Tells sessions that what they see has become another without a server having changed: their principal's context has,
// or a server's last tool has come or gone and its prompts and resources with it.

import type { Catalog } from "../catalog/catalog.js";
import type { Entry } from "../catalog/merge.js";
import type { Caller } from "../contracts/caller.js";
import type { ListKind } from "../contracts/upstream.js";
import type { Access } from "./access.js";
import { type AgentNotifications, LIST_CHANGED } from "./agent-notifications.js";

/** Templates are told of with resources. */
const TOLD: readonly (readonly [told: ListKind, parts: readonly ListKind[]])[] = [
  ["tools", ["tools"]],
  ["prompts", ["prompts"]],
  ["resources", ["resources", "resourceTemplates"]],
];

interface MenuDeps {
  readonly sessions: AgentNotifications;
  readonly catalog: Catalog;
  readonly access: Access;
}

/**
 * Makes a change that concerns one principal. Those of its sessions whose lists are others then, and nobody else, are
 * told, each list once.
 */
export function withContextChange(
  { sessions, catalog, access }: MenuDeps,
  principal: string,
  change: () => void,
): void {
  const concerned = sessions.ofPrincipal(principal);
  const look = () =>
    concerned.map(({ session, scope }) => {
      const view = access.view(session, scope);
      return TOLD.map(([, parts]) => parts.flatMap((kind) => catalog.entriesOf(kind, view)));
    });
  const before = look();
  change();
  look().forEach((lists, at) => {
    const session = concerned[at]?.session;
    TOLD.forEach(([told], list) => {
      if (session !== undefined && !areSame(before[at]?.[list] ?? [], lists[list] ?? [])) tell(session, told);
    });
  });
}

/** Entries are made once for all views, in one order. */
function areSame(some: readonly Entry[], others: readonly Entry[]): boolean {
  return some.length === others.length && some.every((entry, at) => entry === others[at]);
}

/** Reads a list of tools in. Where a server comes into sight with it, or goes, its other lists have changed too. */
export function withToolsChange(sessions: AgentNotifications, server: string, change: () => boolean): boolean {
  const before = seers(sessions, server);
  const hasChanged = change();
  if (!hasChanged) return false;
  const after = seers(sessions, server);
  for (const [key, session] of new Map([...before, ...after])) {
    if (before.has(key) === after.has(key)) continue;
    tell(session, "prompts");
    tell(session, "resources");
  }
  return true;
}

function seers(sessions: AgentNotifications, server: string): Map<string, Caller> {
  const found = new Map<string, Caller>();
  sessions.each(server, (session) => found.set(session.sessionKey, session));
  return found;
}

/** One that cannot be told any more keeps nobody else from hearing. */
function tell(session: Caller, kind: ListKind): void {
  try {
    session.notify(LIST_CHANGED[kind]);
  } catch {
    // Its transport says why when it closes it.
  }
}
