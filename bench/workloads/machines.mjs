// Several gateways on one nats-server: the same load at each of one, two and three of them, beside one with the local store; and a write
// that is kept, against the same call without and the same number of bare publishes. The CPU of all gateways is charged, what
// they do beside the calls too; that of the nats-server stands by itself.

import { randomBytes } from "node:crypto";
import { fileURLToPath } from "node:url";
import { callOnce } from "../ask.mjs";
import { charged, cpuRoundsOf, figuresOf, inSlices, startLoad, stopping, workDirectory } from "../contest.mjs";
import { firstLine } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { natsVersion, startNats } from "../servers/nats.mjs";
import { before as older, startProgram, toolName, toolway } from "../toolway.mjs";

const PUBLISHES = fileURLToPath(new URL("../limits/publishes.mjs", import.meta.url));
const SERVER = "tiny";
/** At each gateway: with fewer of them each call costs more, of one gateway as of three. */
const IN_FLIGHT = 24;
const PLAN = { calls: 6_000, warm: 2_000, rewarm: 96, maxMs: 6_000 };
const LOCAL = "local store";
const BARE = "bare publishes";
const KEPT = "kept, one gateway";
const ON_ENGINE = ["one gateway", "two gateways", "three gateways"];
/** What a gateway is seen to do for one write: written down with its call, and done. */
const OPERATIONS = 2;
/** A key is 32 bytes, as `toolway engine key` makes them. */
const KEY = `twk_${randomBytes(32).toString("base64url")}`;

export const machines = {
  name: "machines",
  summary:
    "the same calls at each of one, two and three gateways on one nats-server, beside the local store; and writes kept there",
  run: (context) => {
    if (!context.targets.some(({ group }) => group === "toolway")) return { rows: [] };
    if (natsVersion() === undefined) {
      context.skip("machines: there is no nats-server here; apt-get install nats-server");
      return { rows: [] };
    }
    return stopping((own) => measured(context, own));
  },
};

async function measured(context, own) {
  const server = await startHttpServer({ era: "legacy", answers: "json" });
  own(server.stop);
  const nats = await startNats(await workDirectory(own));
  own(nats.stop);
  context.log(`  nats-server ${natsVersion()}`);
  const entry = server.entry(SERVER);
  const kept = { ...entry, tools: { echo: { outbox: { lane: false } } } };
  const ways = [await gateways(LOCAL, 1, { entry }, own)];
  for (const [n, variant] of ON_ENGINE.entries()) {
    context.log(`  starting toolway: ${variant}`);
    ways.push(await gateways(variant, n + 1, { entry, nats, prefix: `plain${n}` }, own));
  }
  ways.push(await gateways(KEPT, 1, { entry: kept, nats, prefix: "kept" }, own));
  if (context.targets.includes(older)) {
    ways.push(await gateways(KEPT, 1, { entry: kept, nats, prefix: "before", of: older }, own));
  }
  const bare = await startLoad(own, PUBLISHES);
  await bare.ask("open", { address: nats.address, operations: OPERATIONS });
  ways.push({
    target: "publishes",
    group: "limit",
    variant: BARE,
    pids: [bare.pid],
    loads: [bare],
    round: (_, plan) => bare.ask("round", { job: { inFlight: IN_FLIGHT }, plan }),
  });
  const before = await nats.operations("kept");
  const plan = context.plan(PLAN);
  const tell = ({ variant }, round, cpu) => context.log(`  ${round}  ${variant}: ${cpu} µs`);
  const results = await inSlices(ways, { plan, inFlight: IN_FLIGHT, turn, tell });
  const made = results.get(ways.find(({ variant }) => variant === KEPT));
  const writes = made.reduce((total, { calls, warmed }) => total + calls + warmed, 0);
  const operations = ((await nats.operations("kept")) - before) / writes;
  context.note(`machines: ${operations.toFixed(2)} operations at the engine for each kept write`);
  return { rows: rowsOf(ways, results, plan.rounds, operations) };
}

/** So many gateways of one config, and a load for each. */
async function gateways(variant, count, { entry, nats, prefix, of = toolway }, own) {
  const engine = nats && { nats: [`nats://${nats.address}`], key: { env: "TOOLWAY_ENGINE_KEY" }, replicas: 1, prefix };
  const settings = engine === undefined ? {} : { engine };
  const [pids, loads] = [[], []];
  for (let n = 0; n < count; n++) {
    const env = { TOOLWAY_ENGINE_KEY: KEY };
    const setup = { servers: [entry], settings, workDir: await workDirectory(own), env, cli: of.cli };
    const { started, headers } = await startProgram(setup, 0);
    own(started.stop);
    const { endpoint: url } = await firstLine(started, "toolway");
    const name = toolName(SERVER, "echo");
    await callOnce({ url, headers, era: "legacy" }, name, true);
    const load = await startLoad(own);
    const job = { key: variant, url, headers, era: "legacy", sessions: 1, names: [name], inFlight: IN_FLIGHT };
    await load.ask("open", { job: { ...job, expected: { kind: "echo" } } });
    pids.push(started.child.pid);
    loads.push(load);
  }
  const round = (load, plan) => load.ask("round", { key: variant, ...plan });
  return { target: of.name, group: of.group, variant, pids, loads, round };
}

/** All loads of a way begin together, each with as many calls. */
async function turn({ loads, round, pids, variant }, slicePlan) {
  const plan = { ...slicePlan, warm: Math.max(slicePlan.warm, IN_FLIGHT) };
  try {
    const { made, cpuNs } = await charged(loads, (load) => round(load, plan), pids);
    const sum = (key) => made.reduce((total, one) => total + one[key], 0);
    const most = (key) => Math.max(...made.map((one) => one[key]));
    return {
      cpuNs,
      calls: sum("calls"),
      verified: sum("verified"),
      callsPerSec: sum("callsPerSec"),
      p50Ms: most("p50Ms"),
      p99Ms: most("p99Ms"),
      warmed: plan.warm * loads.length,
    };
  } catch (error) {
    throw new Error(`machines (${variant}): ${error.message}`);
  }
}

function rowsOf(ways, results, count, operations) {
  const roundsOf = (variant) => cpuRoundsOf(results.get(ways.find((one) => one.variant === variant)), count);
  /** What each is measured against, and its rounds: of a kept write, the call without and the bare publishes together. */
  const against = {
    [ON_ENGINE[0]]: [LOCAL, roundsOf(LOCAL)],
    [ON_ENGINE[1]]: [ON_ENGINE[0], roundsOf(ON_ENGINE[0])],
    [ON_ENGINE[2]]: [ON_ENGINE[0], roundsOf(ON_ENGINE[0])],
    [KEPT]: [
      `${ON_ENGINE[0]} and ${OPERATIONS} ${BARE}`,
      roundsOf(ON_ENGINE[0]).map((cpu, round) => cpu + roundsOf(BARE)[round]),
    ],
  };
  return ways.map((way) => {
    const own = results.get(way);
    const cpuRounds = cpuRoundsOf(own, count);
    const [name, base] = against[way.variant] ?? [way.variant, cpuRounds];
    const compared = ratios(cpuRounds, base);
    return {
      workload: "machines",
      upstream: "http",
      answers: "json",
      era: "legacy",
      inFlight: IN_FLIGHT,
      variant: way.variant,
      target: way.target,
      group: way.group,
      ...figuresOf(cpuRounds, own),
      against: name,
      ratios: compared,
      ratio: median(compared),
      ...(way.variant === KEPT ? { operations } : {}),
    };
  });
}
