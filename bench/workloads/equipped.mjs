// What the parts cost that are off by default: the gateway with roles, budgets, a cached tool and telemetry, against the
// same gateway without them. Every call differs from the others, so that the cache looks, and finds nothing.

import { createServer } from "node:http";
import { contest, stopping, workDirectory } from "../contest.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { startProgram } from "../toolway.mjs";
import { PLAN, SERVER, sideOf } from "./small-call.mjs";

const PLAIN = "as it ships";
const EQUIPPED = "roles, budget, cache, telemetry";
/** So many that none is refused. */
const BUDGET = { calls: 1_000_000_000, windowMs: 3_600_000 };

export const equipped = {
  name: "equipped",
  summary: "a small call, HTTP to HTTP, with roles, budgets, the cache and telemetry, against none of them",
  run: (context) => (context.targets.some(({ group }) => group === "toolway") ? both(context) : { rows: [] }),
};

function both(context) {
  return stopping(async (own) => {
    const server = await startHttpServer({ era: "legacy", answers: "json" });
    own(server.stop);
    const collector = await startCollector(own);
    const side = (variant, entry, settings) => {
      const start = async (servers) => startProgram({ servers, settings, workDir: await workDirectory(own) }, 0);
      const servers = [{ ...server.entry(SERVER), ...entry }];
      return sideOf({ workload: "equipped", variant, base: PLAIN, servers, start }, own, context);
    };
    const sides = [await side(PLAIN, {}, {})];
    const settings = {
      roles: { default: { allow: [SERVER], budget: BUDGET }, other: { deny: [`${SERVER}/big`] } },
      telemetry: { otlp: collector.url },
    };
    const entry = { budget: BUDGET, tools: { echo: { readOnly: true, cache: true } } };
    sides.push(await side(EQUIPPED, entry, settings));
    const rows = await contest(sides, context.plan(PLAN), context);
    if (collector.spans() === 0)
      throw new Error("No span has come: the equipped gateway was measured without telemetry.");
    return { rows };
  });
}

/** Takes traces and throws them away. */
async function startCollector(own) {
  let spans = 0;
  const collector = createServer((request, response) => {
    spans += 1;
    request.resume().on("end", () => response.end("{}"));
  });
  await new Promise((done) => collector.listen(0, "127.0.0.1", done));
  own(() => collector.closeAllConnections() ?? collector.close());
  return { url: `http://127.0.0.1:${collector.address().port}/v1/traces`, spans: () => spans };
}
