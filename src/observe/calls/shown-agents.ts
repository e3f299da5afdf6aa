// Who is connected now, with what the calls that are kept say of them. It is loaded when somebody asks.

import type { AgentSeen, AgentsAnswer } from "../../contracts/control/agents.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { CallRecord } from "../call-record.js";
import { isFailure } from "../outcome.js";
import { MAX_NAME_CHARACTERS } from "../safe-names.js";
import type { KeptCalls } from "./kept-calls.js";

/** More than a person reads; the others are a number. */
export const MAX_AGENTS_SHOWN = 200;

/** A session, or a presence of the modern era. */
export interface ConnectedAgent {
  readonly session: {
    readonly principal: { readonly id: string; readonly role: string };
    readonly clientInfo: JsonObject;
    readonly era: "legacy" | "modern";
    readonly version: string;
    /** A program's own. */
    readonly hearsNothing?: true;
  };
  readonly scope: string | undefined;
}

type Kept = Pick<KeptCalls, "first" | "last"> & {
  at(seq: number): Pick<CallRecord, "endedAt" | "principal" | "clientInfo" | "outcome">;
};

interface Called {
  calls: number;
  failed: number;
  lastMs: number;
  /** The name under which it was called last. */
  readonly client: string | undefined;
}

export function agentsAnswer(
  connected: Iterable<ConnectedAgent>,
  kept: Kept,
  refused: Readonly<Record<string, number>>,
): AgentsAnswer {
  const called = new Map<string, Called>();
  for (let seq = kept.last; seq >= kept.first; seq--) {
    const { endedAt, principal, clientInfo, outcome } = kept.at(seq);
    const client = nameIn(clientInfo);
    // A presence of the modern era has no name: each of its calls says it, and those of its principal count.
    for (const key of client === undefined ? [principal.id] : [keyOf(principal.id, client), principal.id]) {
      let one = called.get(key);
      if (one === undefined) {
        one = { calls: 0, failed: 0, lastMs: endedAt, client };
        called.set(key, one);
      }
      one.calls++;
      if (isFailure(outcome)) one.failed++;
    }
  }
  const agents: (AgentSeen & { readonly lastMs: number })[] = [];
  for (const { session, scope } of connected) {
    // What a program or the command line asks for is no agent's.
    if (session.hearsNothing === true) continue;
    const name = nameIn(session.clientInfo);
    const own = called.get(name === undefined ? session.principal.id : keyOf(session.principal.id, name));
    const { calls, failed, lastMs, client } = own ?? { calls: 0, failed: 0, lastMs: 0, client: undefined };
    agents.push({
      ...{ principal: session.principal.id, role: session.principal.role, client: name ?? client, era: session.era },
      ...{ version: session.version, server: scope, calls, failed, lastMs },
      lastCallAt: lastMs === 0 ? undefined : new Date(lastMs).toISOString(),
    });
  }
  agents.sort((a, b) => b.lastMs - a.lastMs || (a.principal < b.principal ? -1 : 1));
  return {
    agents: agents.slice(0, MAX_AGENTS_SHOWN).map(({ lastMs: _, ...agent }) => agent),
    total: agents.length,
    refused,
  };
}

function keyOf(principal: string, client: string): string {
  return JSON.stringify([principal, client]);
}

function nameIn({ name }: JsonObject): string | undefined {
  return typeof name === "string" ? name.slice(0, MAX_NAME_CHARACTERS) : undefined;
}
