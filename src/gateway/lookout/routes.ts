// What the operator can look at of a running gateway: its calls, its past and its audit log. What answers is loaded when somebody asks.

import type { AuditHeadAnswer } from "../../contracts/control/audit.js";
import { ControlError, type ControlRoutes } from "../../control/server.js";
import { systemClock } from "../../runtime/clock.js";
import type { Lookout } from "./lookout.js";

/** `GET /calls`, `GET /history`, `GET /history/tools`, `GET /audit` and `GET /audit/head`: contracts/control has their queries and answers. */
export function lookRoutes(lookout: Lookout): ControlRoutes {
  const { records, observer } = lookout;
  return {
    ...lookout.logLevels.routes,
    "GET /calls": async ({ query }) => {
      const { callsAnswer } = await import("../../observe/calls/shown-calls.js");
      // Calls that have ended are shown, also those of the last moment.
      records.flush();
      return callsAnswer(query, records.kept, observer.underWay(), observer.nowMs);
    },
    "GET /history": async ({ query }) => {
      const { historyAnswer } = await import("../../observe/calls/shown-history.js");
      records.flush();
      return historyAnswer(query, records.history, systemClock.wall());
    },
    "GET /history/tools": async ({ query }) => {
      const { toolsAnswer } = await import("../../observe/calls/shown-history.js");
      records.flush();
      return toolsAnswer(query, records.history);
    },
    "GET /audit": async ({ query }) => {
      const dir = demandAudit(lookout).path;
      const { auditAnswer } = await import("./audit-answer.js");
      await records.audit?.flush();
      return auditAnswer(dir, query);
    },
    "GET /audit/head": async () => {
      demandAudit(lookout);
      records.flush();
      await records.audit?.flush();
      return demandAudit(lookout);
    },
  };
}

function demandAudit(lookout: Lookout): AuditHeadAnswer {
  const status = lookout.auditStatus();
  if (status !== undefined) return status;
  throw new ControlError(
    "denied",
    'This gateway keeps no audit log: its config has no "audit". Write "audit": {} into it, and start the gateway again.',
  );
}
