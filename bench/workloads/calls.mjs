// The workloads of calls to one server: small ones and large ones, over HTTP and over stdio, in both eras.

import { contest, startTarget, stopping } from "../contest.mjs";
import { startHttpServer, stdioEntry } from "../servers/index.mjs";
import { LIMIT_OF } from "../target.mjs";

const ERAS = ["legacy", "modern"];
const SERVER = "tiny";

/** The JIT compiles what has run some thousand times; a 1 MiB call is hundreds of small ones. */
const SMALL = { calls: 3000, warm: 4000, rewarm: 64, maxMs: 2000 };
const BIG = { calls: 200, warm: 100, rewarm: 16, maxMs: 2000 };

export const smallHttp = {
  name: "small-http",
  summary: "a small call, HTTP to HTTP, 1 and 32 in flight, JSON and SSE answers, both eras",
  run: (context) => eachEra((era) => calls(context, { tool: "echo", upstream: "http", era, inFlight: [1, 32] })),
};

export const smallStdio = {
  name: "small-stdio",
  summary: "a small call, HTTP to stdio, 1 and 32 in flight, both eras",
  run: (context) => eachEra((era) => calls(context, { tool: "echo", upstream: "stdio", era, inFlight: [1, 32] })),
};

export const bigHttp = {
  name: "big-http",
  summary: "a result of 1 MiB, HTTP to HTTP, 8 in flight",
  run: (context) => calls(context, { tool: "big", upstream: "http", era: "legacy", inFlight: [8] }),
};

export const bigStdio = {
  name: "big-stdio",
  summary: "a result of 1 MiB, HTTP to stdio, 8 in flight",
  run: (context) => calls(context, { tool: "big", upstream: "stdio", era: "legacy", inFlight: [8] }),
};

async function eachEra(run) {
  const rows = [];
  for (const era of ERAS) rows.push(...(await run(era)).rows);
  return { rows };
}

function calls(context, { tool, upstream, era, inFlight }) {
  const workload = tool === "big" ? "big" : "small";
  const plan = tool === "big" ? BIG : SMALL;
  const answers = upstream === "http" ? ["json", "sse"] : ["json"];
  return stopping(async (own) => {
    const started = [];
    for (const answer of answers) {
      const setup = {
        upstream,
        answers: answer,
        era,
        servers: [await server(own, upstream, era, answer)],
        names: [tool],
      };
      for (const target of context.targets.filter((one) => one.supports(setup))) {
        context.log(`  starting ${target.name} (${upstream} ${answer} ${era})`);
        const one = await startTarget(target, setup, own, context);
        if (one !== undefined) started.push(one);
      }
    }
    const sides = inFlight.flatMap((count) =>
      started.map((one) => ({
        ...one,
        inFlight: count,
        workload,
        expected: { kind: tool },
        names: [one.running.toolName(SERVER, tool)],
        against: ({ target, setup, inFlight: other }) =>
          target.name === LIMIT_OF[upstream] && other === count && setup.answers === one.setup.answers,
      })),
    );
    return { rows: await contest(sides, context.plan(plan), context) };
  });
}

async function server(own, upstream, era, answers) {
  if (upstream === "stdio") return stdioEntry(SERVER, { era });
  const started = await startHttpServer({ era, answers });
  own(started.stop);
  return started.entry(SERVER);
}
