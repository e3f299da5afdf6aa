// Measures several targets against each other: all are started, then each has its turn in every round. Owns the rounds and
// the figures of a row; what is compared with what is said by the workloads.

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cpuBetween, readCpu, readCpuAlone } from "./cpu.mjs";
import { forkNode } from "./processes.mjs";
import { median, ratios } from "./ratios.mjs";

const LOAD = fileURLToPath(new URL("./load.mjs", import.meta.url));
/** Garbage and timers of the call before should not fall into the next one's time. */
const SETTLE_MS = 20;
/** A round is cut into slices that take turns: a disturbance of a second then falls on all targets, not on one. */
const SLICES = 6;
/** One round of a peer that needs more than this says how slow it is; further ones would only make everybody else wait. */
const PEER_ROUND_MS = 30_000;

/** Everything that must be stopped when the bench is, by Ctrl-C too. */
const cleanups = new Set();
/** Those of them that remove a directory. */
const removals = new WeakSet();

export async function stopEverything() {
  const all = [...cleanups];
  cleanups.clear();
  await Promise.allSettled(all.filter((cleanup) => !removals.has(cleanup)).map((stop) => stop()));
  // Nobody writes into the directories any more.
  await Promise.allSettled(all.filter((cleanup) => removals.has(cleanup)).map((remove) => remove()));
}

/** Runs `work` with a function that registers what has to be stopped at its end. */
export async function stopping(work) {
  const mine = [];
  const own = (cleanup) => {
    mine.push(cleanup);
    cleanups.add(cleanup);
  };
  try {
    return await work(own);
  } finally {
    for (const cleanup of mine.reverse()) {
      if (!cleanups.delete(cleanup)) continue;
      await cleanup();
    }
  }
}

/** An empty directory, until the end of the work. */
export async function workDirectory(own) {
  const path = await mkdtemp(join(tmpdir(), "toolway-bench-"));
  const remove = () => rm(path, { recursive: true, force: true, maxRetries: 5 });
  removals.add(remove);
  own(remove);
  return path;
}

/**
 * One side of a contest: a target at work, and the calls that it gets.
 * @typedef {{
 *   target: import("./target.mjs").Target,
 *   running: import("./target.mjs").Running,
 *   setup: import("./target.mjs").Setup,
 *   inFlight: number,
 *   expected: object,
 *   names: string[],
 *   sessions?: number,
 *   workload: string,
 *   variant?: string,
 *   chargedAlone?: boolean, its own process is, without those that it started
 *   against: (other: Side) => boolean,
 * }} Side
 */

/** Starts a target in a directory of its own. A peer that does not start is left out, with a note. */
export async function startTarget(target, setup, own, context) {
  const workDir = await workDirectory(own);
  const full = { ...setup, workDir };
  try {
    const running = await target.start(full);
    own(() => running.stop());
    return { target, running, setup: full };
  } catch (error) {
    if (target.group !== "peer") throw error;
    context.skip(`${target.name} did not start: ${error.message}`);
    return undefined;
  }
}

/**
 * @param {Side[]} sides
 * @param {{ rounds: number, warm: number, rewarm: number, calls: number, maxMs: number }} plan
 * @returns {Promise<import("./target.mjs").Row[]>}
 */
export function contest(sides, plan, context) {
  return stopping(async (own) => {
    const load = await startLoad(own);
    const alive = new Map(sides.map((side, index) => [String(index), { side, results: [] }]));
    const guarded = async (key, work) => {
      const { target } = alive.get(key).side;
      try {
        return await work();
      } catch (error) {
        const message = `${target.name}: ${error.message}`;
        if (target.group !== "peer") throw new Error(message);
        context.skip(message);
        alive.delete(key);
        return undefined;
      }
    };
    for (const [key, { side }] of [...alive]) await guarded(key, () => load.ask("open", { job: jobOf(key, side) }));
    const slices = slicesOf(plan, Math.max(...sides.map(({ inFlight }) => inFlight)));
    for (let round = 0; round < plan.rounds; round++) {
      for (let slice = 0; slice < slices; slice++) {
        const taking = [...alive].filter(([, { isSlow }]) => !isSlow).map(([key]) => key);
        for (const key of rotated(taking, round * slices + slice)) {
          const { side, results } = alive.get(key);
          const warm = Math.max(round + slice === 0 ? plan.warm : plan.rewarm, side.inFlight);
          const calls = Math.max(Math.ceil(plan.calls / slices), side.inFlight);
          const turnPlan = { warm, calls, maxMs: plan.maxMs / slices };
          const began = performance.now();
          const result = await guarded(key, () => turn(load, key, side, turnPlan));
          if (result !== undefined) results.push({ ...result, round, tookMs: performance.now() - began });
        }
      }
      for (const entry of alive.values()) {
        const { side, results, isSlow } = entry;
        if (isSlow) continue;
        const tookMs = sum(results.filter((result) => result.round === round).map((result) => result.tookMs));
        if (side.target.group === "peer" && tookMs > PEER_ROUND_MS && round + 1 < plan.rounds) {
          entry.isSlow = true;
          context.note(
            `${labelOf(side)}: a round took ${Math.round(tookMs / 1000)} s, so it had ${round + 1}, not ${plan.rounds}.`,
          );
        }
        context.log(`  round ${round + 1}/${plan.rounds}  ${labelOf(side)}: ${cpuOf(results, round).toFixed(1)} µs`);
      }
    }
    return rowsOf([...alive.values()], context);
  });
}

/** A slice has as many calls as are in flight: where few are asked for, there are fewer slices, and not more calls. */
function slicesOf(plan, inFlight) {
  return Math.max(1, Math.min(SLICES, Math.floor(plan.calls / inFlight)));
}

/**
 * Each way has its turn in every slice of every round, which `turn` makes of its plan. Resolves with what they were, by the way, and
 * tells of each round when it is over.
 */
export async function inSlices(ways, { plan, inFlight, turn, tell }) {
  const results = new Map(ways.map((way) => [way, []]));
  const slices = slicesOf(plan, inFlight);
  for (let round = 0; round < plan.rounds; round++) {
    for (let slice = 0; slice < slices; slice++) {
      const warm = round + slice === 0 ? plan.warm : plan.rewarm;
      const turnPlan = { warm, calls: Math.ceil(plan.calls / slices), maxMs: plan.maxMs / slices };
      for (const way of rotated(ways, round * slices + slice)) {
        results.get(way).push({ ...(await turn(way, turnPlan)), round });
      }
    }
    for (const way of ways) {
      const own = results.get(way);
      tell(way, `round ${round + 1}/${plan.rounds}`, cpuOf(own, round).toFixed(1), own);
    }
  }
  return results;
}

/** What these loads are asked for by `ask`, begun by all of them together, and what it took of the CPU of `pids`. */
export async function charged(loads, ask, pids, read = readCpu) {
  const asked = loads.map((load) => [load.once("ready"), ask(load)]);
  await Promise.all(asked.map(([ready, done]) => Promise.race([ready, done])));
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  const before = pids.map((pid) => read(pid));
  for (const load of loads) load.send({ do: "go" });
  const made = await Promise.all(asked.map(([, done]) => done));
  const spent = pids.map((pid, at) => cpuBetween(before[at], read(pid)));
  return { made, cpuNs: sum(spent.map(({ ns }) => ns)), isCoarse: spent.some(({ isCoarse }) => isCoarse) };
}

/** CPU for one call in each of so many rounds. */
export function cpuRoundsOf(results, rounds) {
  return Array.from({ length: rounds }, (_, round) => cpuOf(results, round));
}

/** Each has another one before it from turn to turn, and nobody is always the first. */
function rotated(keys, turns) {
  const from = keys.length === 0 ? 0 : turns % keys.length;
  return [...keys.slice(from), ...keys.slice(0, from)];
}

/** CPU for one call of a round, all its slices together. */
function cpuOf(results, round) {
  const own = results.filter((result) => result.round === round);
  return sum(own.map(({ cpuNs }) => cpuNs)) / 1000 / sum(own.map(({ calls }) => calls));
}

function labelOf({ target, setup, inFlight, variant }) {
  const what = [setup.upstream, setup.answers, setup.era, `× ${inFlight}`];
  return `${target.name} (${[...what, ...(variant === undefined ? [] : [variant])].join(" ")})`;
}

function jobOf(key, { running, setup, inFlight, expected, names, sessions }) {
  return {
    key,
    url: running.url,
    headers: running.headers,
    era: setup.era,
    sessions: running.sessions && setup.era === "legacy" ? (sessions ?? 1) : 0,
    names,
    expected,
    inFlight,
  };
}

async function turn(load, key, { running, chargedAlone }, { warm, calls, maxMs }) {
  const pids = running.pid === undefined ? [] : [running.pid, ...(running.alsoCharged ?? [])];
  const ask = () => load.ask("round", { key, warm, calls, maxMs });
  const { made, ...cost } = await charged([load], ask, pids, chargedAlone ? readCpuAlone : readCpu);
  return { ...made[0], ...cost };
}

function rowsOf(entries, context) {
  const rows = entries.map(({ side, results }) => {
    const rounds = new Set(results.map(({ round }) => round)).size;
    const cpuRounds = cpuRoundsOf(results, rounds);
    if (results.some(({ isCoarse }) => isCoarse)) {
      context.note(`${labelOf(side)}: threads or processes ended while measured; its CPU time is in steps of 10 ms.`);
    }
    return {
      workload: side.workload,
      upstream: side.setup.upstream,
      answers: side.setup.answers,
      era: side.setup.era,
      inFlight: side.inFlight,
      ...(side.variant === undefined ? {} : { variant: side.variant }),
      target: side.target.name,
      group: side.target.group,
      ...figuresOf(cpuRounds, results),
    };
  });
  for (const [index, { side }] of entries.entries()) {
    const base = entries.findIndex((entry) => side.against(entry.side));
    if (base < 0 || rows[index].cpuUs === 0) continue;
    rows[index].against = rows[base].variant ?? rows[base].target;
    rows[index].ratios = ratios(rows[index].cpuRounds, rows[base].cpuRounds);
    rows[index].ratio = median(rows[index].ratios);
  }
  return rows;
}

/** The figures of a row, of all rounds of one side. */
export function figuresOf(cpuRounds, results) {
  return {
    cpuUs: median(cpuRounds),
    cpuRounds,
    callsPerSec: median(results.map(({ callsPerSec }) => callsPerSec)),
    p50Ms: median(results.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(results.map(({ p99Ms }) => p99Ms)),
    calls: sum(results.map(({ calls }) => calls)),
    verified: sum(results.map(({ verified }) => verified)),
  };
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

/** A load's process, and questions to it. */
export async function startLoad(own, file = LOAD) {
  const { child, exited, stop } = forkNode(file);
  own(stop);
  const waiting = new Map();
  const settle = (did, outcome, value) => {
    const one = waiting.get(did);
    waiting.delete(did);
    one?.[outcome](value);
  };
  child.on("message", ({ did, ...result }) => {
    if (did !== "fail") return settle(did, "resolve", result);
    for (const key of [...waiting.keys()]) settle(key, "reject", new Error(result.message));
  });
  void exited.then(() => {
    for (const key of [...waiting.keys()]) settle(key, "reject", new Error("The load ended."));
  });
  const once = (did) => {
    const promise = new Promise((resolve, reject) => waiting.set(did, { resolve, reject }));
    // Who waits for it hears of it; who no longer does must not end the process.
    promise.catch(() => {});
    return promise;
  };
  const ask = (what, more) => {
    const answer = once(what);
    child.send({ do: what, ...more });
    return answer;
  };
  return { pid: child.pid, ask, once, send: (message) => child.send(message) };
}
