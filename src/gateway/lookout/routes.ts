// What the operator can look at of a running gateway: its calls. What answers is loaded when somebody asks.

import type { ControlRoutes } from "../../control/server.js";
import type { Lookout } from "./lookout.js";

/** `GET /calls`: contracts/control/calls.ts has its query and its answer. */
export function lookRoutes({ records, observer }: Lookout): ControlRoutes {
  return {
    "GET /calls": async ({ query }) => {
      const { callsAnswer } = await import("../../observe/calls/shown-calls.js");
      // Calls that have ended are shown, also those of the last moment.
      records.flush();
      return callsAnswer(query, records.kept, observer.underWay(), observer.nowMs);
    },
  };
}
