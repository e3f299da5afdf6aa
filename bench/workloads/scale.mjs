// Whether a call gets dearer with what is around it: the gateway alone, small calls, against its own smallest case.

import { contest, startTarget, stopping } from "../contest.mjs";
import { toolNames } from "../servers/answers.mjs";
import { startHttpServer } from "../servers/index.mjs";

const SERVERS = [1, 10, 100, 500];
const TOOLS = [10, 5000];
const SESSIONS = [1, 100, 5000];
const FEW_TOOLS = 10;
/** All servers are paths of these processes; one alone would be busier than the gateway. */
const PROCESSES = 2;
const IN_FLIGHT = 32;
/** Each server has to be called in each slice before it is measured: its connection may have been closed meanwhile. */
const PLAN = { calls: 3000, warm: 6000, rewarm: 1000, maxMs: 3000 };

export const scaleServers = {
  name: "scale-servers",
  summary: `the gateway with ${SERVERS.join(", ")} servers, calls spread over them`,
  run: (context) =>
    scale(
      context,
      "scale-servers",
      SERVERS.map((count) => ({ label: "servers", count, servers: count })),
    ),
};

export const scaleTools = {
  name: "scale-tools",
  summary: `the gateway with a server of ${TOOLS.join(" and ")} tools, calls spread over them`,
  run: (context) =>
    scale(
      context,
      "scale-tools",
      TOOLS.map((count) => ({ label: "tools", count, tools: count })),
    ),
};

export const scaleSessions = {
  name: "scale-sessions",
  summary: `the gateway with ${SESSIONS.join(", ")} sessions, calls spread over them`,
  run: (context) =>
    scale(
      context,
      "scale-sessions",
      SESSIONS.map((count) => ({ label: "sessions", count, sessions: count })),
    ),
};

/** A first look is at the smallest case and the next. */
const QUICK_VARIANTS = 2;

function scale(context, workload, all) {
  const variants = context.quick ? all.slice(0, QUICK_VARIANTS) : all;
  const gateways = context.targets.filter(({ group }) => group === "toolway");
  return stopping(async (own) => {
    const sides = [];
    for (const target of gateways) {
      for (const { label, count, servers = 1, tools = FEW_TOOLS, sessions = 1 } of variants) {
        context.log(`  starting ${target.name} with ${count} ${label}`);
        const entries = await entriesOf(own, servers, tools);
        const setup = { upstream: "http", answers: "json", era: "legacy", servers: entries, names: ["echo"] };
        const started = await startTarget(target, setup, own, context);
        const callable = toolNames(tools).filter((name) => name !== "big");
        sides.push({
          ...started,
          inFlight: IN_FLIGHT,
          workload,
          variant: variantOf(count, label),
          expected: { kind: "echo" },
          names:
            servers === 1
              ? callable.map((tool) => started.running.toolName("server0", tool))
              : entries.map(({ name }) => started.running.toolName(name, "echo")),
          sessions,
          against: (other) => other.variant === variantOf(variants[0].count, label),
        });
      }
    }
    return { rows: await contest(sides, context.plan(PLAN), context) };
  });
}

const variantOf = (count, label) => `${count} ${count === 1 ? label.slice(0, -1) : label}`;

async function entriesOf(own, count, tools) {
  const processes = await Promise.all(
    Array.from({ length: Math.min(count, PROCESSES) }, () =>
      startHttpServer({ era: "legacy", answers: "json", tools }),
    ),
  );
  for (const { stop } of processes) own(stop);
  return Array.from({ length: count }, (_, index) => processes[index % processes.length].entry(`server${index}`));
}
