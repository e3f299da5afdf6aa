// What a gateway keeps of its calls for whoever looks: the last of them, those under way, the past, and the audit log where
// there is one, in which the acts of operators stand, too.

import type { AuditHeadAnswer } from "../../contracts/control/audit.js";
import type { ServerEventsAnswer } from "../../contracts/control/server-events.js";
import type { GatewayStatus } from "../../contracts/status.js";
import type { ControlRequest, ControlRoutes } from "../../control/server.js";
import type { CaughtDay } from "../../observe/calls/caught-day.js";
import type { RedactFor } from "../../observe/calls/recording.js";
import type { ConnectedAgent } from "../../observe/calls/shown-agents.js";
import type { Log } from "../../observe/log.js";
import type { CallRecords } from "../../observe/metrics/call-records.js";
import type { CallObserver } from "../../observe/observed-call.js";
import type { ServerEvents } from "../../observe/server-events.js";
import { Fault } from "../../protocol/errors.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { systemClock } from "../../runtime/clock.js";
import type { Asks } from "../sharing/asks.js";
import { LogLevels } from "./log-level.js";
import { RecordingControl } from "./record.js";
import { SavedHistory } from "./saved-history.js";

export interface DiagnosticsParts {
  readonly records: CallRecords;
  readonly observer: CallObserver;
  /** Undefined where nothing outlives the process. */
  readonly stateDir: string | undefined;
  /** The folder of the audit log; undefined where there is none. */
  readonly auditDir: string | undefined;
  readonly log: Log;
  readonly caught: CaughtDay;
  readonly serverEvents: ServerEvents;
  /** Who is connected. */
  readonly agents: () => Iterable<ConnectedAgent>;
  readonly redactFor: RedactFor;
  readonly servers: () => readonly string[];
  /** A server's own names of its tools; undefined where nobody has read them. */
  readonly toolsOf: (server: string) => readonly string[] | undefined;
  /** Questions about shared tools that wait for a person; undefined where nothing is shared. */
  readonly asks: () => Asks | undefined;
  readonly endingTokens: () => GatewayStatus["endingTokens"];
}

export class Diagnostics {
  readonly records: CallRecords;
  readonly observer: CallObserver;
  readonly auditDir: string | undefined;
  readonly logLevels: LogLevels;
  readonly recordingControl: RecordingControl;
  readonly caught: CaughtDay;
  readonly #serverEvents: ServerEvents;
  readonly agents: DiagnosticsParts["agents"];
  readonly #redactFor: RedactFor;
  readonly asks: () => Asks | undefined;
  readonly #endingTokens: DiagnosticsParts["endingTokens"];
  readonly #saved: SavedHistory;

  constructor({
    records,
    observer,
    stateDir,
    auditDir,
    log,
    caught,
    serverEvents,
    agents,
    redactFor,
    servers,
    toolsOf,
    asks,
    endingTokens,
  }: DiagnosticsParts) {
    this.records = records;
    this.observer = observer;
    this.auditDir = auditDir;
    this.caught = caught;
    this.#serverEvents = serverEvents;
    this.agents = agents;
    this.#redactFor = redactFor;
    this.asks = asks;
    this.#endingTokens = endingTokens;
    this.#saved = new SavedHistory({
      history: records.history,
      caught,
      stateDir,
      clock: systemClock,
      warn: (text) => log.warn(text),
    });
    this.logLevels = new LogLevels(log, () => records.logChanged());
    this.recordingControl = new RecordingControl({ records, observer, redactFor, servers, toolsOf });
  }

  status(): Pick<GatewayStatus, "audit" | "recordings" | "asks" | "endingTokens"> {
    return {
      audit: this.auditStatus(),
      recordings: this.recordingControl.shown,
      asks: this.asks()?.shown ?? [],
      endingTokens: this.#endingTokens(),
    };
  }

  auditStatus(): AuditHeadAnswer | undefined {
    const { auditDir } = this;
    const { audit } = this.records;
    if (audit === undefined || auditDir === undefined) return undefined;
    const { head, counts, times, problem, isRefusing } = audit;
    return { path: auditDir, ...head, ...counts, ...times, problem, refusing: isRefusing };
  }

  /** What this gateway's log said of a server. Its lines are without secrets; those of the entry as it is now are looked for again. */
  events(server: string): ServerEventsAnswer {
    const redact = this.#redactFor(server);
    return this.#serverEvents.answer(server, (text) => redact?.(text, false) ?? text);
  }

  /** A token that is not known at the operator's door. */
  refusedToken(address: string, path: string, why: string): void {
    this.records.eventMetrics.refused("token");
    this.records.audit?.refusedToken(address, path, why);
  }

  /** The same routes, with a line of the audit log for each act. What only looks is none. */
  audited(routes: ControlRoutes, by: "socket" | "page"): ControlRoutes {
    const { audit } = this.records;
    if (audit === undefined) return routes;
    return Object.fromEntries(
      Object.entries(routes).map(([key, handler]) => {
        if (key.startsWith("GET ")) return [key, handler];
        const act = async (request: ControlRequest) => {
          const told = (outcome: string) => audit.operator(by, key, targetOf(request), outcome);
          try {
            const answer = await handler(request);
            told("ok");
            return answer;
          } catch (error) {
            const code = (error as { code?: unknown } | null)?.code;
            told(typeof code === "string" ? code : "internal");
            throw error;
          }
        };
        return [key, act];
      }),
    );
  }

  async close(): Promise<void> {
    this.logLevels.close();
    this.recordingControl.close();
    this.records.flush();
    await this.records.audit?.close();
    await this.#saved.close();
  }
}

/** Members of a body that name what is acted on. All others may hold what is nobody's business. */
const NAMING = [
  ...["server", "tool", "id", "mailbox", "principal", "role", "admin", "gateway"],
  ...["lane", "as", "hash", "from", "level", "view", "answer", "forMs"],
];

function targetOf({ params, body }: ControlRequest): Record<string, string> {
  const target: Record<string, string> = { ...params };
  if (!isObject(body)) return target;
  for (const key of NAMING) {
    const value = body[key];
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
      target[key] = String(value);
  }
  return target;
}

export function auditFull(problem: string | undefined): Fault {
  return new Fault("unavailable", "Nothing is called while the audit log of this gateway cannot be written.", {
    forOperator: `Nothing is called while the audit log cannot be written: ${problem ?? "unknown"}.`,
    remedy: "The operator has to make room for it; then call again.",
    outcome: "The call was not made.",
  });
}
