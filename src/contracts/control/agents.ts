// What `GET /agents` answers: who is connected now, and what was refused since the gateway was started, by the kind of rule.

export interface AgentSeen {
  readonly principal: string;
  readonly role: string;
  /** As it calls itself; modern agents that share a token and a path have a line for each name. */
  readonly client: string | undefined;
  readonly era: "legacy" | "modern";
  readonly version: string;
  /** The server of `/mcp/<server>`, where it is connected to one alone. */
  readonly server: string | undefined;
  /** Of its principal under this name, of the calls that are kept; of a modern agent those that it made at this path. */
  readonly calls: number;
  readonly failed: number;
  readonly lastCallAt: string | undefined;
}

export interface AgentsAnswer {
  /** Those that called last come first. */
  readonly agents: readonly AgentSeen[];
  /** How many there are in all. */
  readonly total: number;
  readonly refused: Readonly<Record<string, number>>;
}
