// HTTP through an executor, against the same through a bare WebSocket tunnel and against no detour at all. The CPU of
// both ends is charged: whoever asks, and whoever asks for him.

import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { charged, cpuRoundsOf, figuresOf, inSlices, startLoad, stopping } from "../contest.mjs";
import { startTunnel } from "../limits/index.mjs";
import { firstLine, startNode } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { startBodies } from "../servers/index.mjs";
import { CLI } from "../toolway.mjs";

const LOAD = fileURLToPath(new URL("../body-load.mjs", import.meta.url));
const MIB = 1024 * 1024;
const BASE = "tunnel";

/** Long enough that the head and the first window count for little. */
const BODY_BYTES = 8 * MIB;

/** In `calls`: MiB of bodies, or requests. `share`: how many of them one request is. */
const CASES = [
  {
    workload: "executor, bodies of 8 MiB in pieces of 64 KiB",
    job: { kind: "body", bodyBytes: BODY_BYTES, inFlight: 4 },
    unit: "MiB",
    plan: { calls: 768, warm: 384, rewarm: 32, maxMs: 6000 },
  },
  {
    workload: "executor, small requests",
    job: { kind: "small", inFlight: 1 },
    plan: { calls: 3000, warm: 4000, rewarm: 64, maxMs: 3000 },
  },
  {
    workload: "executor, small requests",
    job: { kind: "small", inFlight: 32 },
    plan: { calls: 6000, warm: 6000, rewarm: 64, maxMs: 3000 },
  },
];

/** The ways, each with what it starts at the far end. */
const WAYS = [
  { target: "direct", group: "limit", far: async () => undefined },
  { target: BASE, group: "limit", far: startTunnel },
  { target: "toolway", group: "toolway", far: startExecutor },
];

export const executor = {
  name: "executor",
  summary: "HTTP through an executor, against a bare WebSocket tunnel and a direct request: bodies and small requests",
  run: (context) => stopping((own) => measure(context, own)),
};

async function startExecutor(origin) {
  if (!existsSync(CLI)) throw new Error("There is no built program: run `npm run build` first.");
  const token = `bench-${randomBytes(24).toString("hex")}`;
  const args = [CLI, "executor", "--listen", "ws://127.0.0.1:0", "--allow", `127.0.0.1:${origin.port}`, "--json"];
  const started = startNode(args, { env: { TOOLWAY_TOKEN: token } });
  const { url } = await firstLine(started, "toolway executor");
  const library = pathToFileURL(join(dirname(CLI), "../index.js")).href;
  return { url, token, library, pid: started.child.pid, stop: started.stop };
}

async function measure(context, own) {
  const chosen = WAYS.filter(({ target }) => context.targets.some(({ name }) => name === target));
  const origin = await startBodies();
  own(origin.stop);
  const ways = [];
  for (const { far: startFar, ...way } of chosen) {
    context.log(`  starting ${way.target}`);
    const far = await startFar(origin);
    if (far !== undefined) own(far.stop);
    const load = await startLoad(own, LOAD);
    const { url, token, library } = far ?? {};
    await load.ask("open", { way: way.target, origin: origin.url, url, token, library });
    ways.push({ ...way, load, pids: far === undefined ? [load.pid] : [load.pid, far.pid] });
  }
  const rows = [];
  for (const one of CASES) rows.push(...(await contestOf(one, ways, context)));
  return { rows };
}

async function contestOf(one, ways, context) {
  const plan = context.plan(one.plan);
  const { kind, inFlight } = one.job;
  const turn = (way, slicePlan) => turnOf(way, inRequests(one.job, slicePlan));
  const tell = ({ target }, round, cpu) =>
    context.log(`  ${round}  ${target} (${kind} × ${inFlight}): ${cpu} µs a ${one.unit ?? "request"}`);
  const results = await inSlices(ways, { plan, inFlight, turn, tell });
  return rowsOf(one, ways, results, plan.rounds, context);
}

/** What a slice has to do, in requests. */
function inRequests(job, { warm, calls, maxMs }) {
  const share = job.kind === "body" ? Math.min(job.bodyBytes, calls * MIB) / MIB : 1;
  const requests = (units) => Math.ceil(units / share);
  return {
    job: job.kind === "body" ? { ...job, bodyBytes: share * MIB } : job,
    plan: { warm: requests(warm), calls: requests(calls), maxMs },
  };
}

async function turnOf({ load, pids, target }, { job, plan }) {
  try {
    const { made, ...cost } = await charged([load], () => load.ask("round", { job, plan }), pids);
    return { ...made[0], ...cost };
  } catch (error) {
    throw new Error(`${target}: ${error.message}`);
  }
}

function rowsOf({ workload, job, unit }, ways, results, rounds, context) {
  const base = results.get(ways.find(({ target }) => target === BASE));
  return ways.map((way) => {
    const { target, group } = way;
    const own = results.get(way);
    const cpuRounds = cpuRoundsOf(own, rounds);
    if (own.some(({ isCoarse }) => isCoarse)) context.note(`${target}: its CPU time is in steps of 10 ms.`);
    const compared = base === undefined ? undefined : ratios(cpuRounds, cpuRoundsOf(base, rounds));
    return {
      workload,
      upstream: "executor",
      inFlight: job.inFlight,
      ...(unit === undefined ? {} : { unit }),
      target,
      group,
      ...figuresOf(cpuRounds, own),
      ...(compared === undefined ? {} : { against: BASE, ratios: compared, ratio: median(compared) }),
    };
  });
}
