// What a client is given for one run: arguments, variables and files, beside what the user has configured for it. The
// facts of each client are in a file of its own. Nothing here writes or starts anything.

import type { ClientId } from "../import/clients.js";

/** Where the agent finds its secret. Its name has TOKEN in it, so that clients that hide variables by name hide it. */
export const SECRET_VARIABLE = "TOOLWAY_SESSION_TOKEN";
export const URL_VARIABLE = "TOOLWAY_URL";
/** Where a command that is no client of ours finds its `mcpServers` file. */
export const FILE_VARIABLE = "TOOLWAY_MCP_CONFIG";

/** The name of the entry, and the one where the user has something else of that name. */
export const ENTRY_NAME = "toolway";
export const OTHER_NAME = "toolway_run";

export interface RunFacts {
  /** Where the agent comes in. */
  readonly url: string;
  /** A folder of the run's own, not made yet. */
  readonly folder: string;
  readonly home: string;
  readonly cwd: string;
  readonly platform: NodeJS.Platform;
  /** As the user has it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What the user gives the client. */
  readonly args: readonly string[];
  /** The client's own servers are hidden. */
  readonly only: boolean;
  /** The client does not ask before it calls a tool of ours. */
  readonly approve: boolean;
  /** Nobody is there to be asked: neither input nor output is a terminal. */
  readonly isPiped: boolean;
  /** The text of a file of the user's; undefined where there is none. */
  readonly read: (path: string) => string | undefined;
}

export interface RunFile {
  /** Below the run's folder. */
  readonly path: string;
  readonly text: string;
  /** Its text holds the secret in this place. */
  readonly secretAt?: string;
}

export interface AgentPlan {
  readonly args: readonly string[];
  /** Besides the secret's. */
  readonly env: Readonly<Record<string, string>>;
  readonly files: readonly RunFile[];
  /** A home of the run's own, whose other children are the user's. */
  readonly home?: { readonly from: string; readonly to: string; readonly entry: string } | undefined;
  /** What the user should know before the start. */
  readonly notes: readonly string[];
  /** Why the client cannot be given our entry, and what to do: it is then not started as if it had it. */
  readonly mistake?: { readonly message: string; readonly hint: string } | undefined;
}

/** A client that can be run, and how it is. */
export interface RunClient {
  readonly id: ClientId;
  /** As people know it. */
  readonly title: string;
  readonly program: string;
  /** How it is had. */
  readonly install: string;
  readonly plan: (facts: RunFacts) => AgentPlan;
}

/** `Bearer ${TOOLWAY_SESSION_TOKEN}`, which the client fills in itself. */
export const BEARER_REFERENCE = `Bearer \${${SECRET_VARIABLE}}`;

/** Said before a run in which nobody can be asked. */
export function willRefuse(title: string, why: string): string {
  return `${title} will refuse calls of Toolway's tools in this run: ${why}. With --approve it does not.`;
}
