// Who called which server in the last hour, from the calls that are kept: a look at some thousand records when somebody asks.

import type { FlowAnswer, FlowLine } from "../../contracts/control/flow.js";
import type { CallRecord } from "../call-record.js";
import { isFailure } from "../outcome.js";
import { MAX_NAME_CHARACTERS } from "../safe-names.js";
import type { KeptCalls } from "./kept-calls.js";

const WINDOW_MS = 3_600_000;
/** As many as a picture shows: the others are a number. */
export const MAX_FLOW_AGENTS = 8;
export const MAX_FLOW_SERVERS = 12;
/** Agents may call themselves anything: so many are told apart, the others are one. */
const MAX_COUNTED = 1_000;

interface Counted {
  readonly name: string;
  calls: number;
}

type Kept = Pick<KeptCalls, "first" | "last"> & {
  at(seq: number): Pick<CallRecord, "endedAt" | "principal" | "clientInfo" | "server" | "outcome">;
};

export function flowAnswer(kept: Kept, nowMs: number): FlowAnswer {
  const agents = new Map<string, Counted>();
  const servers = new Map<string, Counted>();
  const lines = new Map<string, { -readonly [K in keyof FlowLine]: FlowLine[K] } & { readonly key: string }>();
  let calls = 0;
  let sinceMs: number | undefined;
  for (let seq = kept.last; seq >= kept.first; seq--) {
    const { endedAt, principal, clientInfo, server, outcome } = kept.at(seq);
    if (endedAt < nowMs - WINDOW_MS) break;
    if (server === undefined) continue;
    calls++;
    sinceMs = endedAt;
    const client =
      typeof clientInfo["name"] === "string" ? clientInfo["name"].slice(0, MAX_NAME_CHARACTERS) : undefined;
    const agent = JSON.stringify([principal.id, client]);
    const key = `${agent} ${server}`;
    count(agents, agent);
    count(servers, server);
    let line = lines.get(key);
    if (line === undefined) {
      if (lines.size >= MAX_COUNTED) continue;
      line = { key: agent, agent: principal.id, client, server, calls: 0, errors: 0 };
      lines.set(key, line);
    }
    line.calls++;
    if (isFailure(outcome)) line.errors++;
  }
  const shownAgents = most(agents, MAX_FLOW_AGENTS);
  const shownServers = most(servers, MAX_FLOW_SERVERS);
  return {
    lines: [...lines.values()]
      .filter(({ key, server }) => shownAgents.has(key) && shownServers.has(server))
      .sort((a, b) => b.calls - a.calls)
      .map(({ key: _, ...line }) => line),
    moreAgents: agents.size - shownAgents.size,
    moreServers: servers.size - shownServers.size,
    calls,
    since: sinceMs === undefined ? undefined : new Date(sinceMs).toISOString(),
  };
}

function count(all: Map<string, Counted>, name: string): void {
  const known = all.get(name);
  if (known !== undefined) known.calls++;
  else if (all.size < MAX_COUNTED) all.set(name, { name, calls: 1 });
}

function most(all: ReadonlyMap<string, Counted>, limit: number): ReadonlySet<string> {
  const sorted = [...all.values()].sort((a, b) => b.calls - a.calls);
  return new Set(sorted.slice(0, limit).map(({ name }) => name));
}
