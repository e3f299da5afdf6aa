// How long a start takes: to the first connection that is accepted, and to the first right answer.

import { connect } from "node:net";
import { callOnce } from "../ask.mjs";
import { startTarget, stopping, workDirectory } from "../contest.mjs";
import { startLimit } from "../limits/index.mjs";
import { freePort } from "../processes.mjs";
import { median, ratios } from "../ratios.mjs";
import { startHttpServer } from "../servers/index.mjs";
import { isToolway, startProgram, toolName } from "../toolway.mjs";

/** Starts differ more than calls do. */
const STARTS = 11;
/** The grain of the figures. */
const POLL_MS = 1;
const START_MS = 60_000;
const SERVER = "tiny";

export const start = {
  name: "start",
  summary: "from the start of the process to listening, and to the first answered call",
  run: (context) => stopping((own) => starts(context, own)),
};

async function starts(context, own) {
  const count = context.rounds < 7 ? context.rounds : Math.max(STARTS, context.rounds);
  const servers = {};
  for (const era of ["legacy", "modern"]) {
    const server = await startHttpServer({ era, answers: "json" });
    own(server.stop);
    servers[era] = [server.entry(SERVER)];
  }
  const starters = context.targets.flatMap((target) => starterOf(target, servers, context));
  const found = new Map(starters.map(({ target }) => [target.name, { target, listening: [], calling: [] }]));
  for (let round = 0; round < count; round++) {
    const from = round % Math.max(1, starters.length);
    for (const { target, once } of [...starters.slice(from), ...starters.slice(0, from)]) {
      const times = await stopping((mine) => once(mine));
      if (times === undefined) continue;
      const { listening, calling } = found.get(target.name);
      if (times.listening !== undefined) listening.push(times.listening);
      if (times.calling !== undefined) calling.push(times.calling);
      const shown = [times.listening, times.calling].map((ms) => ms?.toFixed(0) ?? "–").join(" / ");
      context.log(`  start ${round + 1}/${count}  ${target.name}: ${shown} ms`);
    }
  }
  const all = [...found.values()];
  return {
    measures: [
      ...measuresOf("start", "listening", "bare", all),
      ...measuresOf("firstCall", "calling", "pass-through", all),
    ],
  };
}

function measuresOf(measure, key, against, all) {
  const base = all.find(({ target }) => target.name === against)?.[key] ?? [];
  return all
    .filter((one) => one[key].length > 0)
    .map(({ target, [key]: rounds }) => {
      const own = ratios(rounds, base);
      const compared = own.length === 0 ? {} : { against, ratio: median(own), ratios: own };
      return {
        measure,
        target: target.name,
        group: target.group,
        value: median(rounds),
        unit: "ms",
        rounds,
        ...compared,
      };
    });
}

/** How a target is started and timed; none for those that have nothing to start. */
function starterOf(target, servers, context) {
  const [modern] = servers.modern;
  if (target.name === "bare") return [{ target, once: (mine) => timed(mine, (port) => startLimit("bare", [], port)) }];
  if (target.name === "pass-through") {
    const launch = (port) => startLimit("pass-through", [modern.url], port);
    return [{ target, once: (mine) => timed(mine, launch, { headers: {}, name: "echo" }) }];
  }
  if (isToolway(target)) {
    const once = async (mine) => {
      const workDir = await workDirectory(mine);
      const call = { headers: {}, name: toolName(SERVER, "echo") };
      const launch = async (port) => {
        const { started, headers } = await startProgram({ servers: servers.modern, workDir, cli: target.cli }, port);
        call.headers = headers;
        return started;
      };
      return await timed(mine, launch, call);
    };
    return [{ target, once }];
  }
  return target.group === "peer" ? peerStarter(target, servers, context) : [];
}

/** A peer says itself when it is ready: its time to the first call is as exact as that. */
function peerStarter(target, servers, context) {
  const setups = ["modern", "legacy"].map((era) => ({
    upstream: "http",
    answers: "json",
    era,
    servers: servers[era],
    names: ["echo"],
  }));
  const setup = setups.find((one) => target.supports({ ...one, workDir: "" }));
  if (setup === undefined) return [];
  const once = async (mine) => {
    const begin = performance.now();
    const started = await startTarget(target, setup, mine, context);
    if (started === undefined) return undefined;
    const { url, headers, sessions, toolName: nameOf } = started.running;
    await callOnce({ url, headers, era: setup.era }, nameOf(SERVER, "echo"), sessions && setup.era === "legacy");
    return { calling: performance.now() - begin };
  };
  return [{ target, once }];
}

async function timed(mine, launch, call) {
  const port = await freePort();
  const begin = performance.now();
  const started = await launch(port);
  mine(started.stop);
  await accepted(port, begin, started);
  const listening = performance.now() - begin;
  if (call === undefined) return { listening };
  await firstAnswer({ url: `http://127.0.0.1:${port}/mcp`, headers: call.headers, era: "modern" }, call.name, begin);
  return { listening, calling: performance.now() - begin };
}

async function accepted(port, begin, { child, output }) {
  for (;;) {
    const isOpen = await new Promise((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(true);
      });
      socket.on("error", () => resolve(false));
    });
    if (isOpen) return;
    if (child.exitCode !== null) throw new Error(`It ended at its start: ${output()}`);
    if (performance.now() - begin > START_MS) throw new Error(`It does not listen: ${output()}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

async function firstAnswer(to, name, begin) {
  for (;;) {
    try {
      return await callOnce(to, name, false);
    } catch (error) {
      if (performance.now() - begin > START_MS) throw error;
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    }
  }
}
