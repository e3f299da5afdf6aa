// What seeing costs: metrics, records and the past, and an audit log beside them, against the same gateway with a recorder
// that hands its records to nobody.

import { contest, stopping, workDirectory } from "../contest.mjs";
import { startSeen } from "../seen-gateway.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { PLAN, SERVER, sideOf } from "./small-call.mjs";

const EMPTY = "an empty recorder";
const VARIANTS = [
  { variant: EMPTY, isEmpty: true },
  { variant: "metrics, records, history" },
  { variant: "with audit", settings: { audit: {} } },
  { variant: "with audit, hmac", settings: { audit: { arguments: "hmac" } } },
];

export const observe = {
  name: "observe",
  summary:
    "a small call, HTTP to HTTP, with metrics, records and history, and with an audit log, against an empty recorder",
  run: (context) => (context.targets.some(({ group }) => group === "toolway") ? all(context) : { rows: [] }),
};

function all(context) {
  return stopping(async (own) => {
    const server = await startHttpServer({ era: "legacy", answers: "json" });
    own(server.stop);
    const sides = [];
    for (const { variant, isEmpty = false, settings = {} } of VARIANTS) {
      const start = async (servers) => startSeen({ servers, settings, isEmpty, workDir: await workDirectory(own) });
      const servers = [server.entry(SERVER)];
      sides.push(await sideOf({ workload: "observe", variant, base: EMPTY, servers, start }, own, context));
    }
    return { rows: await contest(sides, context.plan(PLAN), context) };
  });
}
