// What the operator can look at of a running gateway: its calls and its past. What answers is loaded when somebody asks.

import type { ControlRoutes } from "../../control/server.js";
import { systemClock } from "../../runtime/clock.js";
import type { Lookout } from "./lookout.js";

/** `GET /calls`, `GET /history` and `GET /history/tools`: contracts/control has their queries and answers. */
export function lookRoutes({ records, observer }: Lookout): ControlRoutes {
  return {
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
  };
}
