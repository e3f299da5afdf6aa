// The merged list of many servers, against the same bytes from memory.

import { ask, openSession } from "../ask.mjs";
import { contest, startTarget, stopping } from "../contest.mjs";
import { Connection } from "../replies.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { toolway } from "../toolway.mjs";

const SERVERS = 20;
const TOOLS = 25;
const IN_FLIGHT = 8;
/**
 * The JIT of either side goes on compiling for some thousands of lists, and of the gateway it has several times the code of the
 * limit: with fewer to warm up, half of the rounds are of that. Small calls have 4,000.
 */
const WARM = 8000;
const PLAN = { calls: 1200, warm: WARM, rewarm: 40, maxMs: 2000 };

export const list = {
  name: "list",
  summary: `tools/list over ${SERVERS} servers of ${TOOLS} tools, ${IN_FLIGHT} in flight, both eras`,
  async run(context) {
    const rows = [];
    for (const era of ["legacy", "modern"]) rows.push(...(await lists(context, era)));
    return { rows };
  },
};

function lists(context, era) {
  return stopping(async (own) => {
    const server = await startHttpServer({ era, answers: "json", tools: TOOLS });
    own(server.stop);
    const servers = Array.from({ length: SERVERS }, (_, index) => server.entry(`server${index}`));
    const setup = { upstream: "http", answers: "json", era, servers, names: ["echo"] };
    const started = [];
    // First of all the gateway, chosen or not: the limit serves its list.
    const gateway = await startTarget(toolway, setup, own, context);
    const full = { ...setup, list: await listOf(gateway.running, era) };
    for (const target of context.targets) {
      if (target.name === toolway.name) started.push(gateway);
      else if (target.supports(full)) started.push(await startTarget(target, full, own, context));
    }
    const sides = started
      .filter((one) => one !== undefined)
      .map((one) => ({
        ...one,
        inFlight: IN_FLIGHT,
        workload: "list",
        expected: { kind: "list", tools: SERVERS * TOOLS },
        names: ["echo"],
        against: ({ target }) => target.name === "list",
      }));
    return await contest(sides, context.plan(PLAN), context);
  });
}

async function listOf({ url, headers }, era) {
  const to = { url, headers, era };
  if (era === "modern") return JSON.stringify(await ask(to, "tools/list", {}));
  const connection = await Connection.open(url);
  const session = await openSession(connection, to);
  connection.close();
  return JSON.stringify(await ask({ ...to, session }, "tools/list", {}));
}
