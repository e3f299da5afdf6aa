// Results of 16 KiB, 128 KiB and 1 MiB: prose, JSON as text, and rows with ids, over HTTP and over stdio.

import { contest, startTarget, stopping } from "../contest.mjs";
import { startHttpServer, stdioEntry } from "../servers/index.mjs";
import { RESULT_TOOLS, titleOf } from "../servers/results.mjs";
import { LIMIT_OF } from "../target.mjs";

const SERVER = "tiny";
const ERA = "legacy";
const IN_FLIGHT = 8;
/**
 * By the end of a tool's name. The JIT compiles what has run some thousand times, so short results need as many calls
 * as small ones: with a few hundred, what is measured is the compiling.
 */
const PLANS = {
  _16: { calls: 2000, warm: 4000, rewarm: 32, maxMs: 2000 },
  _128: { calls: 1000, warm: 2000, rewarm: 16, maxMs: 2000 },
  _1024: { calls: 300, warm: 300, rewarm: 16, maxMs: 2000 },
};

export const resultsHttp = {
  name: "results-http",
  summary: "results of three kinds and three sizes, HTTP to HTTP, 8 in flight",
  run: (context) => results(context, "http"),
};

export const resultsStdio = {
  name: "results-stdio",
  summary: "results of three kinds and three sizes, HTTP to stdio, 8 in flight",
  run: (context) => results(context, "stdio"),
};

function results(context, upstream) {
  return stopping(async (own) => {
    const setup = { upstream, answers: "json", era: ERA, servers: [await server(own, upstream)], names: RESULT_TOOLS };
    const started = [];
    for (const target of context.targets.filter((one) => one.supports(setup))) {
      context.log(`  starting ${target.name} (${upstream})`);
      const one = await startTarget(target, setup, own, context);
      if (one !== undefined) started.push(one);
    }
    const rows = [];
    for (const tool of RESULT_TOOLS) {
      const sides = started.map((one) => ({
        ...one,
        inFlight: IN_FLIGHT,
        workload: titleOf(tool),
        expected: { kind: "result", tool },
        names: [one.running.toolName(SERVER, tool)],
        against: ({ target }) => target.name === LIMIT_OF[upstream],
      }));
      rows.push(...(await contest(sides, context.plan(planOf(tool)), context)));
    }
    return { rows };
  });
}

function planOf(tool) {
  return PLANS[tool.slice(tool.lastIndexOf("_"))];
}

async function server(own, upstream) {
  if (upstream === "stdio") return stdioEntry(SERVER, { era: ERA, results: true });
  const started = await startHttpServer({ era: ERA, answers: "json", results: true });
  own(started.stop);
  return started.entry(SERVER);
}
