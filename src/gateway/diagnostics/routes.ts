// What the operator can look at of a running gateway: its calls, its past and its audit log. What answers is loaded when somebody asks.

import type { AuditHeadAnswer } from "../../contracts/control/audit.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import { systemClock } from "../../runtime/clock.js";
import type { Diagnostics } from "./diagnostics.js";

/** `GET /calls`, `/agents`, `/flow`, `/servers/:server/events`, `/history`, `/history/tools`, `/audit`, `/audit/head` and `/audit/verify`: contracts/control has their queries and answers. */
export function diagnosticRoutes(diagnostics: Diagnostics): ControlRoutes {
  const { records, observer } = diagnostics;
  return {
    ...diagnostics.logLevels.routes,
    ...diagnostics.recordingControl.routes,
    "GET /calls": async ({ query }) => {
      const { callsAnswer } = await import("../../observe/calls/shown-calls.js");
      // Calls that have ended are shown, also those of the last moment.
      records.flush();
      return callsAnswer(query, records.kept, observer.underWay(), observer.nowMs);
    },
    "GET /flow": async () => {
      const { flowAnswer } = await import("../../observe/calls/shown-flow.js");
      records.flush();
      return flowAnswer(records.kept, systemClock.wall());
    },
    "GET /agents": async () => {
      const { agentsAnswer } = await import("../../observe/calls/shown-agents.js");
      records.flush();
      const refused = [...records.eventMetrics.refusedCount.values()].map(([labels, count]) => [
        labels[0]?.[1] ?? "",
        count,
      ]);
      return agentsAnswer(diagnostics.agents(), records.kept, Object.fromEntries(refused));
    },
    "GET /servers/:server/events": ({ params }) => diagnostics.events(params["server"] ?? ""),
    "GET /history": async ({ query }) => {
      const { caughtOf, historyAnswer } = await import("../../observe/calls/shown-history.js");
      records.flush();
      const nowMs = systemClock.wall();
      return { ...historyAnswer(query, records.history, nowMs), caught: caughtOf(diagnostics.caught, nowMs) };
    },
    "GET /history/tools": async ({ query }) => {
      const { toolsAnswer } = await import("../../observe/calls/shown-history.js");
      records.flush();
      return toolsAnswer(query, records.history, systemClock.wall());
    },
    "GET /audit": async ({ query }) => {
      const dir = demandAudit(diagnostics).path;
      const { auditAnswer } = await import("./audit-answers.js");
      await records.audit?.flush();
      return auditAnswer(dir, query);
    },
    "GET /audit/verify": async ({ signal }) => {
      demandAudit(diagnostics);
      records.flush();
      await records.audit?.flush();
      const { auditCheck } = await import("./audit-answers.js");
      return auditCheck(() => demandAudit(diagnostics), signal);
    },
    "GET /audit/head": async () => {
      demandAudit(diagnostics);
      records.flush();
      await records.audit?.flush();
      return demandAudit(diagnostics);
    },
  };
}

function demandAudit(diagnostics: Diagnostics): AuditHeadAnswer {
  const status = diagnostics.auditStatus();
  if (status !== undefined) return status;
  throw new ControlError(
    "denied",
    'This gateway keeps no audit log: its config has no "audit". Write "audit": {} into it, and start the gateway again.',
  );
}
