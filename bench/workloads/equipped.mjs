// What the parts cost that are off by default: the gateway with roles, budgets, a cached tool and telemetry, against the
// same gateway without them. Every call differs from the others, so that the cache looks, and finds nothing.

import { contest, stopping, workDirectory } from "../contest.mjs";
import { equipment, startCollector } from "../equipment.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { startProgram } from "../toolway.mjs";
import { PLAN, SERVER, sideOf } from "./small-call.mjs";

const PLAIN = "as it ships";
const EQUIPPED = "roles, budget, cache, telemetry";

export const equipped = {
  name: "equipped",
  summary: "a small call, HTTP to HTTP, with roles, budgets, the cache and telemetry, against none of them",
  run: (context) => (context.targets.some(({ group }) => group === "toolway") ? both(context) : { rows: [] }),
};

function both(context) {
  return stopping(async (own) => {
    const server = await startHttpServer({ era: "legacy", answers: "json" });
    own(server.stop);
    const collector = await startCollector();
    own(collector.stop);
    const side = (variant, entry, settings) => {
      const start = async (servers) => startProgram({ servers, settings, workDir: await workDirectory(own) }, 0);
      const servers = [{ ...server.entry(SERVER), ...entry }];
      return sideOf({ workload: "equipped", variant, base: PLAIN, servers, start }, own, context);
    };
    const sides = [await side(PLAIN, {}, {})];
    const { entry, settings } = equipment([SERVER], collector.url);
    sides.push(await side(EQUIPPED, entry, settings));
    const rows = await contest(sides, context.plan(PLAN), context);
    if (collector.requests() === 0)
      throw new Error("No span has come: the equipped gateway was measured without telemetry.");
    return { rows };
  });
}
