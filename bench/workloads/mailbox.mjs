// Messages through a broker, alone and on an engine, against a bare WebSocket echo and a bare LMDB append. The CPU of the broker is charged, and
// that of each limit; whoever writes to them is not. Whole calls through a broker are in mailbox-call.mjs.

import { randomBytes } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { charged, cpuRoundsOf, figuresOf, inSlices, startLoad, stopping, workDirectory } from "../contest.mjs";
import { startEcho } from "../limits/index.mjs";
import { firstLine, startNode } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { natsVersion, startNats } from "../servers/nats.mjs";
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
  if (natsVersion() === undefined) context.skip("mailbox on an engine: there is no nats-server here");
  else ways.push(await onEngine(own));
  const plan = context.plan(PLAN);
  const tell = ({ kind, target }, round, cpu) => context.log(`  ${round}  ${target} (${kind} × ${WRITERS}): ${cpu} µs`);
  const results = await inSlices(ways, { plan, inFlight: WRITERS, turn, tell });
  return { rows: [...rowsOf(ways, results, plan.rounds), ...(await callRows(context, own, broker))] };
}

/** The whole way of a message at a broker that keeps it in a nats-server, whose own CPU is not charged. */
async function onEngine(own) {
  const folder = await workDirectory(own);
  const nats = await startNats(folder);
  own(nats.stop);
  const [key, config] = [join(folder, "engine.key"), join(folder, "engine.json")];
  writeFileSync(key, `twk_${randomBytes(32).toString("base64url")}`, { mode: 0o600 });
  const engine = { nats: [`nats://${nats.address}`], key: { file: key }, replicas: 1 };
  writeFileSync(config, JSON.stringify({ engine, mcpServers: {} }));
  const { url, pid } = await startBroker(own, ["--engine", config]);
  const variant = "delivered, handed out, acknowledged, on an engine";
  return {
    target: "toolway",
    group: "toolway",
    kind: "engine",
    job: "whole",
    variant,
    load: await loadOf(own, url),
    pid,
  };
}

async function startBroker(own, more = []) {
  if (!existsSync(CLI)) throw new Error("There is no built program: run `npm run build` first.");
  const state = join(await workDirectory(own), "state");
  const line = ["broker", "--listen", "127.0.0.1:0", "--no-auth", "--state", state, "--json", ...more];
  const started = startNode([CLI, ...line]);
  own(started.stop);
  const { broker } = await firstLine(started, "toolway broker");
  return { url: broker, pid: started.child.pid };
}

async function loadOf(own, url) {
  const load = await startLoad(own, LOAD);
  await load.ask("open", { url });
  return load;
}

async function turn({ load, pid, kind, job = kind, target }, plan) {
  try {
    const asked = { kind: job, body: BODY, inFlight: WRITERS };
    const { made, cpuNs } = await charged([load], () => load.ask("round", { job: asked, plan }), [pid]);
    return { ...made[0], cpuNs };
  } catch (error) {
    throw new Error(`${target}: ${error.message}`);
  }
}

function rowsOf(ways, results, rounds) {
  const of = (kind) => results.get(ways.find((way) => way.kind === kind));
  const append = cpuRoundsOf(of("append"), rounds);
  const appends = median(of("append").map(({ callsPerSec }) => callsPerSec));
  const both = cpuRoundsOf(of("echo"), rounds).map((us, round) => us + append[round]);
  return ways.map(({ target, group, kind, variant }) => {
    const cpuRounds = cpuRoundsOf(of(kind), rounds);
    const compared = ratios(cpuRounds, both);
    const figures = figuresOf(cpuRounds, of(kind));
    return {
      workload: "mailbox",
      upstream: "broker",
      inFlight: WRITERS,
      ...(variant === undefined ? {} : { variant }),
      target,
      group,
      ...figures,
      against: "ws-echo and lmdb-append",
      ratios: compared,
      ratio: median(compared),
      /** How many appends a second the bare store makes for each of these. */
      slower: appends / figures.callsPerSec,
    };
  });
}
