// Messages through a broker, against a bare WebSocket echo and a bare LMDB append. The CPU of the broker is charged, and
// that of each limit; whoever writes to them is not. Whole calls through a broker are in mailbox-call.mjs.

import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cpuOf, rotated, SETTLE_MS, SLICES, startLoad, stopping, workDirectory } from "../contest.mjs";
import { cpuBetween, readCpu } from "../cpu.mjs";
import { startEcho } from "../limits/index.mjs";
import { firstLine, startNode } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { CLI } from "../toolway.mjs";
import { callRows } from "./mailbox-call.mjs";

const LOAD = fileURLToPath(new URL("../mailbox-load.mjs", import.meta.url));
const APPEND = fileURLToPath(new URL("../limits/append.mjs", import.meta.url));

const WRITERS = 32;
/** A small call with its arguments. */
const BODY = JSON.stringify({ op: "call", tool: "screen", arguments: { text: "x".repeat(300) } });
const PLAN = { calls: 6_000, warm: 1_000, rewarm: 64, maxMs: 6_000 };

export const mailbox = {
  name: "mailbox",
  summary:
    "messages through a broker: delivered, and handed out and acknowledged, against bare echo and append; and calls through one",
  run: (context) => stopping((own) => measure(context, own)),
};

async function measure(context, own) {
  const echo = await startEcho();
  own(echo.stop);
  const broker = await startBroker(own);
  const appending = await startLoad(own, APPEND);
  await appending.ask("open", { dir: join(await workDirectory(own), "append") });
  const ways = [
    { target: "ws-echo", group: "limit", kind: "echo", load: await loadOf(own, echo.url), pid: echo.pid },
    { target: "lmdb-append", group: "limit", kind: "append", load: appending, pid: appending.pid },
    { target: "toolway", group: "toolway", kind: "alone", variant: "delivered" },
    { target: "toolway", group: "toolway", kind: "whole", variant: "delivered, handed out, acknowledged" },
  ];
  const writing = await loadOf(own, broker.url);
  for (const way of ways.slice(2)) Object.assign(way, { load: writing, pid: broker.pid });
  const plan = context.plan(PLAN);
  const results = new Map(ways.map(({ kind }) => [kind, []]));
  for (let round = 0; round < plan.rounds; round++) {
    for (let slice = 0; slice < SLICES; slice++) {
      for (const way of rotated(ways, round * SLICES + slice)) {
        const warm = round + slice === 0 ? plan.warm : plan.rewarm;
        const turnPlan = { warm, calls: Math.ceil(plan.calls / SLICES), maxMs: plan.maxMs / SLICES };
        results.get(way.kind).push({ ...(await turn(way, turnPlan)), round });
      }
    }
    for (const { kind, target } of ways) {
      const cpu = cpuOf(results.get(kind), round).toFixed(1);
      context.log(`  round ${round + 1}/${plan.rounds}  ${target} (${kind} × ${WRITERS}): ${cpu} µs`);
    }
  }
  return { rows: [...rowsOf(ways, results, plan.rounds), ...(await callRows(context, own, broker))] };
}

async function startBroker(own) {
  if (!existsSync(CLI)) throw new Error("There is no built program: run `npm run build` first.");
  const state = join(await workDirectory(own), "state");
  const started = startNode([CLI, "broker", "--listen", "127.0.0.1:0", "--no-auth", "--state", state, "--json"]);
  own(started.stop);
  const { broker } = await firstLine(started, "toolway broker");
  return { url: broker, pid: started.child.pid };
}

async function loadOf(own, url) {
  const load = await startLoad(own, LOAD);
  await load.ask("open", { url });
  return load;
}

async function turn({ load, pid, kind, target }, plan) {
  try {
    const round = load.ask("round", { job: { kind, body: BODY, inFlight: WRITERS }, plan });
    await Promise.race([load.once("ready"), round]);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    const before = readCpu(pid);
    load.send({ do: "go" });
    const result = await round;
    return { ...result, cpuNs: cpuBetween(before, readCpu(pid)).ns };
  } catch (error) {
    throw new Error(`${target}: ${error.message}`);
  }
}

function rowsOf(ways, results, rounds) {
  const cpuRoundsOf = (kind) => Array.from({ length: rounds }, (_, round) => cpuOf(results.get(kind), round));
  const rateOf = (kind) => median(results.get(kind).map(({ callsPerSec }) => callsPerSec));
  const append = cpuRoundsOf("append");
  const both = cpuRoundsOf("echo").map((us, round) => us + append[round]);
  return ways.map(({ target, group, kind, variant }) => {
    const own = results.get(kind);
    const cpuRounds = cpuRoundsOf(kind);
    const compared = ratios(cpuRounds, both);
    const sum = (key) => own.reduce((total, one) => total + one[key], 0);
    return {
      workload: "mailbox",
      upstream: "broker",
      inFlight: WRITERS,
      ...(variant === undefined ? {} : { variant }),
      target,
      group,
      cpuUs: median(cpuRounds),
      cpuRounds,
      callsPerSec: rateOf(kind),
      p50Ms: median(own.map(({ p50Ms }) => p50Ms)),
      p99Ms: median(own.map(({ p99Ms }) => p99Ms)),
      calls: sum("calls"),
      verified: sum("verified"),
      against: "ws-echo and lmdb-append",
      ratios: compared,
      ratio: median(compared),
      /** How many appends a second the bare store makes for each of these. */
      slower: rateOf("append") / rateOf(kind),
    };
  });
}
