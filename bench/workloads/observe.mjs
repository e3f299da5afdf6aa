// What seeing costs: metrics, records and the past, and an audit log beside them, against the same gateway with a recorder
// that hands its records to nobody.

import { callOnce } from "../ask.mjs";
import { contest, stopping, workDirectory } from "../contest.mjs";
import { firstLine } from "../processes.mjs";
import { startSeen } from "../seen-gateway.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { toolName } from "../toolway.mjs";

const SERVER = "tiny";
const EMPTY = "an empty recorder";
const VARIANTS = [
  { variant: EMPTY, isEmpty: true },
  { variant: "metrics, records, history" },
  { variant: "with audit", settings: { audit: {} } },
  { variant: "with audit, hmac", settings: { audit: { arguments: "hmac" } } },
];
const IN_FLIGHT = 32;
const PLAN = { calls: 3000, warm: 4000, rewarm: 64, maxMs: 2000 };

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
    for (const one of VARIANTS) sides.push(await sideOf(one, server, own, context));
    return { rows: await contest(sides, context.plan(PLAN), context) };
  });
}

async function sideOf({ variant, isEmpty = false, settings = {} }, server, own, context) {
  context.log(`  starting toolway: ${variant}`);
  const servers = [server.entry(SERVER)];
  const { started, headers } = await startSeen({ servers, settings, isEmpty, workDir: await workDirectory(own) });
  own(started.stop);
  const { endpoint: url } = await firstLine(started, "toolway");
  await callOnce({ url, headers, era: "legacy" }, toolName(SERVER, "echo"), true);
  return {
    target: context.targets.find(({ group }) => group === "toolway"),
    running: { url, headers, pid: started.child.pid, toolName, sessions: true, stop: started.stop },
    setup: { upstream: "http", answers: "json", era: "legacy", servers, names: ["echo"] },
    inFlight: IN_FLIGHT,
    workload: "observe",
    variant,
    expected: { kind: "echo" },
    names: [toolName(SERVER, "echo")],
    against: (other) => other.variant === EMPTY,
  };
}
