// What is counted of every call, from its record: how long it took as the agent saw it and as its server did, what of it
// was ours, who asked, what refused it. Labels are names that are known here, and never what an agent makes up: no
// principal, session, argument or address.

import { ErrorCode } from "../../protocol/jsonrpc.js";
import { type CallRecord, ownMs } from "../call-record.js";
import type { CallSink } from "../call-recorder.js";
import { KNOWN_METHODS, UNKNOWN } from "../known-methods.js";
import { errorType, isFailure } from "../outcome.js";
import type { EventMetrics } from "./event-metrics.js";
import { Counter, type Distribution, Histogram, type Labels, OTHER, SECONDS } from "./series.js";
import { label, type ServerLabels } from "./server-labels.js";

/** Our share of a call, in seconds. */
const OWN_SECONDS = [50e-6, 100e-6, 250e-6, 500e-6, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1];

/** So many tools of one server have a label of their own. */
const MAX_TOOLS = 200;

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

/** Where calls of one tool, or of one method, of a server are counted that succeed: they are most. */
interface Series {
  readonly asSeen: Distribution;
  /** Undefined where no call of it was sent. */
  readonly atServer: Distribution | undefined;
}

interface KnownServer {
  /** Labels of its tools, by the names that it gives them; at most MAX_TOOLS. */
  readonly tools: Map<string, string>;
  /** By tool, or by method where it is none: at most as many as there are labels. */
  readonly series: Map<string, Series>;
}

export class CallMetrics implements CallSink {
  readonly durations = new Histogram(
    "mcp_server_operation_duration_seconds",
    "How long requests took, as the agent saw it.",
    SECONDS,
  );
  readonly serverDurations = new Histogram(
    "mcp_client_operation_duration_seconds",
    "How long servers took, from the first byte out to the last byte in.",
    SECONDS,
  );
  readonly own = new Histogram("toolway_own_seconds", "What of the time of a call was ours.", OWN_SECONDS);
  readonly requests = new Counter("toolway_requests_total", "Requests of agents, by what they call themselves.");
  readonly cache = new Counter("toolway_cache_total", "Calls that the cache was asked about.");
  readonly bytes = new Counter("toolway_bytes_total", "Bytes of requests, and of replies that were passed on whole.");
  /** Calls that ended faster than they could be counted. */
  dropped = 0;
  readonly #names: KnownNames;
  readonly #servers: ServerLabels;
  readonly #eventMetrics: EventMetrics;
  /** Those that were called; ServerLabels bounds them. */
  readonly #known = new Map<string, KnownServer>();
  /** Where requests that no server was asked for are counted that succeed, by method: lists are most of them. */
  readonly #answered = new Map<string, Distribution>();
  /** By role, and by what the agent is called here. */
  readonly #requestsOf = new Map<string, Map<string, { count: number }>>();
  readonly #ours = this.own.own([]) as Distribution;
  readonly #toAgents: { count: number };
  readonly #fromAgents: { count: number };
  #foldedTools = 0;

  constructor(names: KnownNames, servers: ServerLabels, eventMetrics: EventMetrics) {
    this.#names = names;
    this.#servers = servers;
    this.#eventMetrics = eventMetrics;
    this.#toAgents = this.bytes.own([["direction", "to_agent"]]) as { count: number };
    this.#fromAgents = this.bytes.own([["direction", "from_agent"]]) as { count: number };
  }

  take(record: CallRecord): void {
    const { server, cache, bytes, mended, refusedBy, outcome } = record;
    this.#ours.add(ownMs(record) / 1_000);
    if (outcome !== "ok") this.#counted(record);
    else if (server === undefined) this.#answeredHere(record);
    else this.#succeeded(record, server);
    this.#requested(record);
    if (cache === "hit" || cache === "miss" || cache === "coalesced") {
      this.cache.add([
        ["toolway_server", server === undefined ? undefined : this.#servers.of(server)],
        ["result", cache],
      ]);
    }
    this.#fromAgents.count += record.bytesIn;
    if (bytes !== undefined) this.#toAgents.count += bytes;
    if (refusedBy !== undefined) this.#eventMetrics.refused(refusedBy);
    if (mended !== undefined && outcome === "ok") this.#eventMetrics.caught(mended);
  }

  get histograms(): readonly Histogram[] {
    return [this.durations, this.serverDurations, this.own];
  }

  batchEnded(dropped: number): void {
    this.dropped += dropped;
  }

  /** Names may be others now: a config was applied. */
  forgetNames(): void {
    this.#known.clear();
    this.#requestsOf.clear();
    this.#servers.forget();
  }

  /** Observations that found no room for labels of their own. */
  get folded(): number {
    const own = [this.durations, this.serverDurations, this.requests, this.cache];
    return own.reduce((sum, { folded }) => sum + folded, this.#foldedTools + this.#servers.folded);
  }

  #succeeded(record: CallRecord, server: string): void {
    const series = this.#known.get(server)?.series.get(record.tool ?? record.method) ?? this.#newSeries(record, server);
    const isSent = wasSent(record);
    if (series === undefined || (isSent && series.atServer === undefined)) {
      this.#counted(record);
      return;
    }
    series.asSeen.add(record.ms / 1_000);
    if (isSent) series.atServer?.add(record.serverMs / 1_000);
  }

  /** At most as many as there are methods of the convention; the others are counted together. */
  #answeredHere(record: CallRecord): void {
    const { method, ms, serverMs } = record;
    const known = serverMs > 0 ? undefined : this.#answered.get(method);
    if (known !== undefined) {
      known.add(ms / 1_000);
      return;
    }
    this.#counted(record);
    const own = KNOWN_METHODS.has(method) ? this.durations.own(this.#labels(record, undefined, undefined)) : undefined;
    if (own !== undefined) this.#answered.set(method, own);
  }

  #counted(record: CallRecord): void {
    const { server, tool, ms, serverMs } = record;
    const error = errorTypeOf(record);
    const name = server === undefined || tool === undefined ? undefined : this.#tool(server, tool);
    if (name === OTHER) this.#foldedTools++;
    this.durations.observe(this.#labels(record, name, error), ms / 1_000);
    if (wasSent(record)) this.serverDurations.observe(this.#serverLabels(record, error), serverMs / 1_000);
  }

  #labels({ server, method }: CallRecord, tool: string | undefined, error: string | undefined): Labels {
    return [
      ["toolway_server", server === undefined ? undefined : this.#servers.of(server)],
      ["mcp_method_name", KNOWN_METHODS.has(method) ? method : UNKNOWN],
      ["gen_ai_tool_name", tool],
      ["error_type", error],
    ];
  }

  #serverLabels({ server, method, transport }: CallRecord, error: string | undefined): Labels {
    return [
      ["toolway_server", server === undefined ? undefined : this.#servers.of(server)],
      ["mcp_method_name", KNOWN_METHODS.has(method) ? method : UNKNOWN],
      ["network_transport", transport],
      ["error_type", error],
    ];
  }

  /** Undefined where none is kept: it is no call of a tool that has a label, no method of the convention, or there is no room. */
  #newSeries(record: CallRecord, server: string): Series | undefined {
    const { tool, method } = record;
    if (tool === undefined ? !KNOWN_METHODS.has(method) : method !== "tools/call") return undefined;
    const name = tool === undefined ? undefined : this.#tool(server, tool);
    if ((tool !== undefined && name === undefined) || name === OTHER) return undefined;
    const known = this.#knownServer(server);
    const asSeen = known && this.durations.own(this.#labels(record, name, undefined));
    if (asSeen === undefined) return undefined;
    const atServer = wasSent(record) ? this.serverDurations.own(this.#serverLabels(record, undefined)) : undefined;
    const series = { asSeen, atServer };
    // One that begins with hits of the cache is made again when something is sent.
    if (atServer !== undefined) known?.series.set(tool ?? method, series);
    return series;
  }

  /** The name of a tool as a label; undefined where its server does not list it. */
  #tool(server: string, tool: string): string | undefined {
    const known = this.#knownServer(server);
    const found = known?.tools.get(tool);
    if (found !== undefined) return found;
    if (!this.#names.isListed(server, tool)) return undefined;
    if (known === undefined || known.tools.size >= MAX_TOOLS) return OTHER;
    const name = label(this.#names.redacted(server, tool));
    known.tools.set(tool, name);
    return name;
  }

  /** Undefined where the server has no label of its own. */
  #knownServer(server: string): KnownServer | undefined {
    let known = this.#known.get(server);
    if (known === undefined && this.#servers.has(server)) {
      known = { tools: new Map(), series: new Map() };
      this.#known.set(server, known);
    }
    return known;
  }

  /** The name of a tool as it may be shown, or the one of all for which there is no room; undefined where it is not listed. */
  toolLabel(server: string, tool: string): string | undefined {
    return this.#tool(server, tool);
  }

  /** The name of a tool as it may be shown: undefined where its server does not list it, or has too many. */
  toolName(server: string, tool: string): string | undefined {
    const name = this.#tool(server, tool);
    return name === OTHER ? undefined : name;
  }

  #requested({ principal: { role }, clientInfo: { name } }: CallRecord): void {
    const client = (typeof name === "string" ? CLIENTS.get(name) : undefined) ?? "other";
    let counts = this.#requestsOf.get(role);
    const known = counts?.get(client);
    if (known !== undefined) {
      known.count++;
      return;
    }
    const isRole = this.#names.isRole(role);
    const labels: Labels = [
      ["client", client],
      ["role", isRole ? label(role) : UNKNOWN],
    ];
    const count = isRole ? this.requests.own(labels) : undefined;
    if (count === undefined) {
      this.requests.add(labels);
      return;
    }
    count.count++;
    if (counts === undefined) {
      counts = new Map();
      this.#requestsOf.set(role, counts);
    }
    counts.set(client, count);
  }
}

/** A reply that another call got first was not this one's. */
function wasSent({ serverMs, cache }: CallRecord): boolean {
  return serverMs > 0 && cache !== "coalesced";
}

/** A session that is not known, an address that a person must open first, and the errors that the modern era added. */
const OF_MCP = [-32001, -32042, -32020, -32021, -32022];

/** Codes of the specifications. Servers make up others, without end. */
const CODES: ReadonlyMap<number, string> = new Map(
  [...Object.values(ErrorCode), ...OF_MCP].map((code) => [code, String(code)]),
);

/**
 * What `error_type` says of a failure: the JSON-RPC code of a server's error, `tool_error`, or the fault of ours. Undefined
 * where nothing failed.
 */
function errorTypeOf({ outcome, errorCode }: CallRecord): string | undefined {
  if (outcome === "ok") return undefined;
  if (outcome === "rpc-error") return CODES.get(errorCode) ?? UNKNOWN;
  return isFailure(outcome) ? errorType(outcome) : undefined;
}
