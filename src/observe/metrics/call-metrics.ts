// What is counted of every call, from its record: how long it took as the agent saw it, who asked, what the cache did.
// Labels are names that are known here, and never what an agent makes up: no principal, session, argument or address.

import { visible } from "../../runtime/visible.js";
import type { CallRecord } from "../call-record.js";
import type { CallSink } from "../call-recorder.js";
import { isFailure } from "../traces.js";
import { Counter, Histogram, type Labels, OTHER } from "./series.js";

/** Those of OpenTelemetry's convention for MCP, in seconds, with finer ones before them: a local call takes 1 ms. */
const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300];

/** So many tools of one server have a label of their own. */
const MAX_TOOLS = 200;
/** So many servers have samples of their own. */
export const MAX_SERVERS = 500;
/** Of a label's value. */
const MAX_CHARACTERS = 128;

/** What the convention knows; anything else is one word, as it asks for. */
const METHODS: ReadonlySet<string> = new Set([
  "completion/complete",
  "logging/setLevel",
  "prompts/get",
  "prompts/list",
  "resources/list",
  "resources/read",
  "resources/subscribe",
  "resources/templates/list",
  "resources/unsubscribe",
  "tasks/cancel",
  "tasks/get",
  "tasks/list",
  "tasks/result",
  "tasks/update",
  "tools/call",
  "tools/list",
]);
const UNKNOWN = "_OTHER";

/** What agents call themselves, and what they are called here. */
const CLIENTS: ReadonlyMap<string, string> = new Map([
  ["claude-code", "claude"],
  ["claude-ai", "claude-desktop"],
  ["codex-mcp-client", "codex"],
  ["gemini-cli-mcp-client", "gemini"],
  ["opencode", "opencode"],
]);

export interface KnownNames {
  isListed(server: string, tool: string): boolean;
  isRole(role: string): boolean;
  /** A name of a tool without what its server's entry keeps secret. */
  redacted(server: string, tool: string): string;
}

export class CallMetrics implements CallSink {
  readonly durations = new Histogram(
    "mcp_server_operation_duration_seconds",
    "How long requests took, as the agent saw it.",
    SECONDS,
  );
  readonly requests = new Counter("toolway_requests_total", "Requests of agents, by what they call themselves.");
  readonly cache = new Counter("toolway_cache_total", "Calls that the cache was asked about.");
  readonly bytes = new Counter("toolway_bytes_total", "Bytes of replies that were passed on whole.");
  readonly dropped = new Counter("toolway_dropped_total", "What was not kept, since it came too fast.");
  readonly #names: KnownNames;
  readonly #toolsOf = new Map<string, Map<string, string>>();

  constructor(names: KnownNames) {
    this.#names = names;
  }

  take(record: CallRecord): void {
    const { method, server, tool, outcome, ms, principal, clientInfo, cache, bytes } = record;
    const s = server === undefined ? undefined : this.#server(server);
    const labels: Labels = [
      ["toolway_server", s],
      ["mcp_method_name", METHODS.has(method) ? method : UNKNOWN],
      ["gen_ai_tool_name", server === undefined || tool === undefined ? undefined : this.#tool(server, tool)],
      ["error_type", isFailure(outcome) ? outcome.replaceAll("-", "_") : undefined],
    ];
    this.durations.observe(labels, ms / 1_000);
    const { name } = clientInfo;
    const client = (typeof name === "string" ? CLIENTS.get(name) : undefined) ?? "other";
    const role = this.#names.isRole(principal.role) ? label(principal.role) : UNKNOWN;
    this.requests.add([
      ["client", client],
      ["role", role],
    ]);
    if (cache === "hit" || cache === "miss" || cache === "coalesced") {
      this.cache.add([
        ["toolway_server", s],
        ["result", cache],
      ]);
    }
    if (bytes !== undefined) this.bytes.add([["direction", "to_agent"]], bytes);
  }

  batchEnded(dropped: number): void {
    if (dropped > 0) this.dropped.add([["what", "calls"]], dropped);
  }

  /** Names may be others now: a config was applied. */
  forgetNames(): void {
    this.#toolsOf.clear();
  }

  get folded(): number {
    return [this.durations, this.requests, this.cache].reduce((sum, { folded }) => sum + folded, 0);
  }

  #server(server: string): string {
    if (!this.#toolsOf.has(server)) {
      if (this.#toolsOf.size >= MAX_SERVERS) return OTHER;
      this.#toolsOf.set(server, new Map());
    }
    return label(server);
  }

  /** The name of a tool that its server lists, made once. */
  #tool(server: string, tool: string): string | undefined {
    const names = this.#toolsOf.get(server);
    if (names === undefined) return OTHER;
    const known = names.get(tool);
    if (known !== undefined) return known;
    if (!this.#names.isListed(server, tool)) return undefined;
    if (names.size >= MAX_TOOLS) return OTHER;
    const name = label(this.#names.redacted(server, tool));
    names.set(tool, name);
    return name;
  }
}

/** One line of visible characters, and not too many. */
export function label(text: string): string {
  const shown = visible(text);
  return shown.length > MAX_CHARACTERS ? `${shown.slice(0, MAX_CHARACTERS - 1)}…` : shown;
}
