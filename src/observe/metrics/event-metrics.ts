// What is counted beside the records of calls: starts of servers, sessions that ended, tokens that were renewed, what was
// refused at the door and what agents did not have to notice. Whoever sees it happen tells it here.

import type { RefusalRule } from "../../protocol/errors.js";
import { UNKNOWN } from "../known-methods.js";
import { errorType } from "../outcome.js";
import { Counter, Histogram, SECONDS } from "./series.js";
import type { ServerLabels } from "./server-labels.js";

/** What an agent did not have to notice. */
export type Caught = "restart" | "token" | "queued" | "session" | "menu" | "pin";

/** `idle`: it was closed for want of calls, and is wanted again. */
export type StartReason = "first" | "restart" | "idle";

/** Those that the protocol has had; any other is one word. */
const VERSIONS: ReadonlySet<string> = new Set(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]);

/** So many open sessions are timed: more than an endpoint holds. */
const MAX_TIMED = 20_000;

/** Of a commit: from a fast disk to one that is stuck. */
const COMMIT_SECONDS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

export class EventMetrics {
  readonly caughtCount = new Counter("toolway_caught_total", "What agents did not have to notice.");
  readonly refusedCount = new Counter("toolway_refused_total", "Calls that were refused, by the kind of rule.");
  readonly starts = new Counter("toolway_server_starts_total", "Starts of servers and connections to them.");
  readonly refreshes = new Counter("toolway_credential_refreshes_total", "Tokens that were fetched for servers.");
  readonly outboxEnded = new Counter("toolway_outbox_ended_total", "Kept calls that have ended.");
  readonly agentSessions = new Histogram(
    "mcp_server_session_duration_seconds",
    "How long sessions of agents lasted.",
    SECONDS,
  );
  readonly serverSessions = new Histogram(
    "mcp_client_session_duration_seconds",
    "How long connections to servers lasted.",
    SECONDS,
  );
  readonly commits = new Histogram(
    "toolway_store_commit_seconds",
    "How long the store took to be on disk.",
    COMMIT_SECONDS,
  );
  /** How often servers were up again that had been up before, those that are gone from the config among them. */
  comeBacks = 0;
  readonly #servers: ServerLabels;
  /** Told of each start that took the place of a connection that was lost. */
  onRestart: ((server: string) => void) | undefined;
  /** Told of breakers that open and close. */
  onTurned: ((server: string, circuit: "open" | "closed") => void) | undefined;
  /** Told that a server answers calls again that found something wrong with it before. */
  onAnswers: ((server: string) => void) | undefined;
  /** Told of what agents did not have to notice. */
  onCaught: ((kind: Caught, count: number) => void) | undefined;
  /** When sessions of agents that are open were opened, by their keys. */
  readonly #opened = new Map<string, number>();

  constructor(servers: ServerLabels) {
    this.#servers = servers;
  }

  caught(kind: Caught, count = 1): void {
    this.caughtCount.add([["kind", kind]], count);
    this.onCaught?.(kind, count);
  }

  refused(rule: RefusalRule): void {
    this.refusedCount.add([["rule", rule]]);
  }

  started(server: string, reason: StartReason): void {
    if (reason === "restart") this.onRestart?.(server);
    this.starts.add([
      ["toolway_server", this.#servers.of(server)],
      ["reason", reason],
    ]);
  }

  cameBack(): void {
    this.comeBacks++;
  }

  turned(server: string, circuit: "open" | "closed"): void {
    this.onTurned?.(server, circuit);
  }

  answers(server: string): void {
    this.onAnswers?.(server);
  }

  /** `fault` is the code of what ended it; undefined where we closed it by our own will. */
  disconnected(server: string, ms: number, fault: string | undefined): void {
    this.serverSessions.observe(
      [
        ["toolway_server", this.#servers.of(server)],
        ["error_type", errorType(fault)],
      ],
      ms / 1_000,
    );
  }

  refreshed(server: string, isGood: boolean): void {
    this.refreshes.add([
      ["toolway_server", this.#servers.of(server)],
      ["result", isGood ? "ok" : "failed"],
    ]);
  }

  /** A write that was kept has ended; `wasQueued`: it had waited for its server. */
  outboxWriteEnded(server: string, outcome: string, wasQueued: boolean): void {
    this.outboxEnded.add([
      ["toolway_server", this.#servers.of(server)],
      ["outcome", outcome],
    ]);
    if (wasQueued && outcome === "done") this.caught("queued");
  }

  committed(ms: number): void {
    this.commits.observe([], ms / 1_000);
  }

  sessionOpened(key: string, nowMs: number, isRestored: boolean): void {
    if (isRestored) this.caught("session");
    if (this.#opened.size < MAX_TIMED) this.#opened.set(key, nowMs);
  }

  /** `fault` is the code of what ended it; undefined where nothing went wrong. */
  sessionClosed(key: string, version: string, nowMs: number, fault?: string): void {
    const openedMs = this.#opened.get(key);
    if (openedMs === undefined) return;
    this.#opened.delete(key);
    const label = VERSIONS.has(version) ? version : UNKNOWN;
    this.agentSessions.observe(
      [
        ["mcp_protocol_version", label],
        ["error_type", errorType(fault)],
      ],
      (nowMs - openedMs) / 1_000,
    );
  }

  get counters(): readonly Counter[] {
    return [this.caughtCount, this.refusedCount, this.starts, this.refreshes, this.outboxEnded];
  }

  get histograms(): readonly Histogram[] {
    return [this.agentSessions, this.serverSessions, this.commits];
  }
}
