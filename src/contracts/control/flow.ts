// What `GET /flow` answers: who called which server in the last hour, of the calls that are kept.

export interface FlowLine {
  /** The principal. */
  readonly agent: string;
  /** As it calls itself. */
  readonly client: string | undefined;
  readonly server: string;
  readonly calls: number;
  readonly errors: number;
}

export interface FlowAnswer {
  /** Those with the most calls first. */
  readonly lines: readonly FlowLine[];
  /** Agents and servers beyond those that have lines. */
  readonly moreAgents: number;
  readonly moreServers: number;
  /** Of how many calls it is, and since when they are kept; undefined where there is none. */
  readonly calls: number;
  readonly since: string | undefined;
}
