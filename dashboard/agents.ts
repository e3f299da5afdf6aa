// Agents that are connected, those that are alike in one row: their calls are counted for all of them together.

import type { AgentSeen } from "../src/contracts/control/agents.js";

export interface AgentRow {
  readonly agent: AgentSeen;
  /** How many of them are connected. */
  readonly sessions: number;
}

/** In the order in which they came. */
export function agentRows(agents: readonly AgentSeen[]): AgentRow[] {
  const rows = new Map<string, AgentRow>();
  for (const agent of agents) {
    const { principal, role, client, era, version, server } = agent;
    const key = JSON.stringify([principal, role, client, era, version, server]);
    const known = rows.get(key);
    rows.set(key, { agent: known?.agent ?? agent, sessions: (known?.sessions ?? 0) + 1 });
  }
  return [...rows.values()];
}
