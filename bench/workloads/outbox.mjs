// Writes that survive: a small call of a tool with an outbox, against a bare loop that makes the same two commits around the same
// call, and against the same call without. A call of another tool, in a gateway whose config names one for the outbox, is to
// cost nothing more. The CPU of the gateway is charged, or that of the loop; whoever calls and whoever answers is not.

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { callOnce } from "../ask.mjs";
import { charged, cpuRoundsOf, figuresOf, inSlices, startLoad, stopping, workDirectory } from "../contest.mjs";
import { firstLine } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { before, startProgram, toolName, toolway } from "../toolway.mjs";

const COMMITS = fileURLToPath(new URL("../limits/commits.mjs", import.meta.url));
const SERVER = "tiny";
const WRITERS = 16;
const PLAIN = "without outbox";
const BESIDE = "a tool without outbox, beside one that has it";
const KEPT = "kept";
/** Each is a lane of its own, so that they go out side by side. */
const OUTBOX = { outbox: { lane: false } };
const PLAN = { calls: 6_000, warm: 2_000, rewarm: 64, maxMs: 6_000 };

export const outbox = {
  name: "outbox",
  summary: "a small write that survives, against a bare loop with the same two commits, and against the call without",
  run: (context) => (context.targets.some(({ group }) => group === "toolway") ? measured(context) : { rows: [] }),
};

function measured(context) {
  return stopping(async (own) => {
    const server = await startHttpServer({ era: "legacy", answers: "json" });
    own(server.stop);
    const loop = await startLoad(own, COMMITS);
    await loop.ask("open", { dir: join(await workDirectory(own), "commits"), url: server.entry(SERVER).url });
    const load = await startLoad(own);
    const ways = [
      { target: "commits", group: "limit", variant: "alone", ask: asksLoop(loop, "alone"), pid: loop.pid },
      { target: "commits", group: "limit", variant: "around the call", ask: asksLoop(loop, "call"), pid: loop.pid },
    ];
    for (const [variant, tools] of [
      [PLAIN, {}],
      [BESIDE, { big: OUTBOX }],
      [KEPT, { echo: OUTBOX }],
    ]) {
      context.log(`  starting toolway: ${variant}`);
      ways.push(await gatewayWay(variant, { ...server.entry(SERVER), tools }, load, own));
    }
    if (context.targets.includes(before)) {
      const kept = { ...server.entry(SERVER), tools: { echo: OUTBOX } };
      ways.push(await gatewayWay(KEPT, kept, load, own, before));
    }
    const plan = context.plan(PLAN);
    const tell = ({ target, variant }, round, cpu, own) =>
      context.log(`  ${round}  ${target} (${variant}): ${cpu} µs, ${Math.round(rateOf(own))} a second`);
    const results = await inSlices(ways, { plan, inFlight: WRITERS, turn, tell });
    return { rows: rowsOf(ways, results, plan.rounds) };
  });
}

const asksLoop = (load, kind) => ({
  load,
  round: (plan) => load.ask("round", { job: { kind, inFlight: WRITERS }, plan }),
});

async function gatewayWay(variant, entry, load, own, { name: target, group, cli } = toolway) {
  const { started, headers } = await startProgram({ servers: [entry], workDir: await workDirectory(own), cli }, 0);
  own(started.stop);
  const { endpoint: url } = await firstLine(started, "toolway");
  const name = toolName(SERVER, "echo");
  await callOnce({ url, headers, era: "legacy" }, name, true);
  const key = `${target} ${variant}`;
  const job = { key, url, headers, era: "legacy", sessions: 1, names: [name], inFlight: WRITERS };
  await load.ask("open", { job: { ...job, expected: { kind: "echo" } } });
  const ask = { load, round: (plan) => load.ask("round", { key, ...plan }) };
  return { target, group, variant, ask, pid: started.child.pid };
}

async function turn({ ask: { load, round }, pid, target, variant }, plan) {
  try {
    const ask = () => round({ ...plan, warm: Math.max(plan.warm, WRITERS) });
    const { made, cpuNs } = await charged([load], ask, [pid]);
    return { ...made[0], cpuNs };
  } catch (error) {
    throw new Error(`${target} (${variant}): ${error.message}`);
  }
}

const rateOf = (results) => median(results.map(({ callsPerSec }) => callsPerSec));

function rowsOf(ways, results, count) {
  const [, around] = ways;
  const plain = ways.find(({ variant }) => variant === PLAIN);
  return ways.map((way) => {
    const own = results.get(way);
    const cpuRounds = cpuRoundsOf(own, count);
    const compared = ratios(cpuRounds, cpuRoundsOf(results.get(plain), count));
    return {
      workload: "outbox",
      upstream: "http",
      answers: "json",
      era: "legacy",
      inFlight: WRITERS,
      variant: way.variant,
      target: way.target,
      group: way.group,
      ...figuresOf(cpuRounds, own),
      against: PLAIN,
      ratios: compared,
      ratio: median(compared),
      /** How many writes a second the bare loop makes for each of these. */
      slower: rateOf(results.get(around)) / rateOf(own),
    };
  });
}
