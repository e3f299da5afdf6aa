// Who is connected now, with what the calls that are kept say of them. It is loaded when somebody asks.

import type { AgentsAnswer } from "../../contracts/control/agents.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { CallRecord } from "../call-record.js";
import { isFailure } from "../outcome.js";
import { MAX_NAME_CHARACTERS } from "../safe-names.js";
import type { KeptCalls } from "./kept-calls.js";

/** More than a person reads; the others are a number. */
export const MAX_AGENTS_SHOWN = 200;
/** An agent may call itself something else with each call: so many of those who share a token are told apart, the others are one. */
const MAX_NAMES_OF_ONE = 8;

/** A session, or a presence of the modern era. */
export interface ConnectedAgent {
  readonly session: {
    readonly principal: { readonly id: string; readonly role: string };
    readonly clientInfo: JsonObject;
    readonly era: "legacy" | "modern";
    readonly version: string;
    readonly sessionKey: string;
    /** A program's own. */
    readonly hearsNothing?: true;
  };
  readonly scope: string | undefined;
}

type Kept = Pick<KeptCalls, "first" | "last"> & {
  at(seq: number): Pick<CallRecord, "endedAt" | "principal" | "clientInfo" | "sessionKey" | "outcome">;
};

interface Called {
  calls: number;
  failed: number;
  lastMs: number;
}

export function agentsAnswer(
  connected: Iterable<ConnectedAgent>,
  kept: Kept,
  refused: Readonly<Record<string, number>>,
): AgentsAnswer {
  // What a program or the command line asks for is no agent's.
  const all = [...connected].filter(({ session }) => session.hearsNothing !== true);
  const called = new Map<string, Called>();
  /** What stands for all modern agents of a token has no name: each of its calls says one. By session, then by that. */
  const unnamed = new Map<string, Map<string | undefined, Called>>();
  for (const { session } of all)
    if (nameIn(session.clientInfo) === undefined) unnamed.set(session.sessionKey, new Map());
  for (let seq = kept.last; seq >= kept.first; seq--) {
    const { endedAt, principal, clientInfo, sessionKey, outcome } = kept.at(seq);
    const client = nameIn(clientInfo);
    if (client !== undefined) count(called, keyOf(principal.id, client), endedAt, outcome);
    const names = unnamed.get(sessionKey);
    if (names === undefined) continue;
    count(
      names,
      client === undefined || names.has(client) || names.size < MAX_NAMES_OF_ONE ? client : undefined,
      endedAt,
      outcome,
    );
  }
  const agents = all.flatMap(({ session, scope }) => {
    const { principal, era, version, sessionKey } = session;
    const name = nameIn(session.clientInfo);
    const own: readonly (readonly [string | undefined, Called])[] =
      name === undefined
        ? [...(unnamed.get(sessionKey) ?? [])]
        : [[name, called.get(keyOf(principal.id, name)) ?? NO_CALLS]];
    return (own.length === 0 ? [[undefined, NO_CALLS] as const] : own).map(([client, { calls, failed, lastMs }]) => ({
      ...{ principal: principal.id, role: principal.role, client, era, version, server: scope, calls, failed, lastMs },
      lastCallAt: lastMs === 0 ? undefined : new Date(lastMs).toISOString(),
    }));
  });
  agents.sort((a, b) => b.lastMs - a.lastMs || (a.principal < b.principal ? -1 : 1));
  return {
    agents: agents.slice(0, MAX_AGENTS_SHOWN).map(({ lastMs: _, ...agent }) => agent),
    total: agents.length,
    refused,
  };
}

const NO_CALLS: Called = { calls: 0, failed: 0, lastMs: 0 };

/** The newest are counted first. */
function count<K>(all: Map<K, Called>, key: K, endedAt: number, outcome: CallRecord["outcome"]): void {
  let one = all.get(key);
  if (one === undefined) {
    one = { calls: 0, failed: 0, lastMs: endedAt };
    all.set(key, one);
  }
  one.calls++;
  if (isFailure(outcome)) one.failed++;
}

function keyOf(principal: string, client: string): string {
  return JSON.stringify([principal, client]);
}

function nameIn({ name }: JsonObject): string | undefined {
  return typeof name === "string" ? name.slice(0, MAX_NAME_CHARACTERS) : undefined;
}
