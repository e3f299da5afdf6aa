// One small call, HTTP to HTTP, through gateways that differ in their settings alone: what both `equipped` and `observe` measure.

import { callOnce } from "../ask.mjs";
import { firstLine } from "../processes.mjs";
import { toolName } from "../toolway.mjs";

export const SERVER = "tiny";
export const PLAN = { calls: 3000, warm: 4000, rewarm: 64, maxMs: 2000 };
const IN_FLIGHT = 32;

/** A gateway that was started, as a side of a contest against the side of the variant `base`. */
export async function sideOf({ workload, variant, base, servers, start }, own, context) {
  context.log(`  starting toolway: ${variant}`);
  const { started, headers } = await start(servers);
  own(started.stop);
  const { endpoint: url } = await firstLine(started, "toolway");
  await callOnce({ url, headers, era: "legacy" }, toolName(SERVER, "echo"), true);
  return {
    target: context.targets.find(({ group }) => group === "toolway"),
    running: { url, headers, pid: started.child.pid, toolName, sessions: true, stop: started.stop },
    setup: { upstream: "http", answers: "json", era: "legacy", servers, names: ["echo"] },
    inFlight: IN_FLIGHT,
    workload,
    variant,
    expected: { kind: "echo" },
    names: [toolName(SERVER, "echo")],
    against: (other) => other.variant === base,
  };
}
