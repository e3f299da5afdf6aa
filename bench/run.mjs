// `npm run bench`: reads the options, runs the workloads one after another, and hands the results to the report.
// What is measured is in workloads/, how in contest.mjs.

import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { cpus, release } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { majorOf } from "../scripts/node-versions.mjs";
import { stopEverything } from "./contest.mjs";
import { unsupported } from "./cpu.mjs";
import { goalsOf } from "./goals.mjs";
import { liar, limits } from "./limits/index.mjs";
import { help, readOptions } from "./options.mjs";
import { killAll } from "./processes.mjs";
import { checkAgainst, printTable, record, writeChart } from "./report/index.mjs";
import { before, toolway } from "./toolway.mjs";
import { workloads } from "./workloads/index.mjs";

const inBench = (path) => fileURLToPath(new URL(path, import.meta.url));
const OUT = inBench("./out");
/** A record for each major of Node: what a call costs differs between them. */
const RECORDED = inBench(`./recorded/node${majorOf()}.json`);

const log = (line) => void process.stderr.write(`${line}\n`);
const print = (text) => void process.stdout.write(text.endsWith("\n") ? text : `${text}\n`);

/** @returns {Promise<number>} the exit code */
async function main(argv) {
  const options = readOptions(argv);
  const own = [...limits, ...(process.env.TOOLWAY_BEFORE === undefined ? [] : [before]), toolway];
  if (options.help || options.list) {
    print(options.help ? help(workloads, own) : names(own));
    return 0;
  }
  const why = unsupported();
  if (why !== undefined) throw new Error(why);
  const chosen = chooseWorkloads(options.workloads);
  const targets = await chooseTargets(options, own);
  const notes = [];
  const context = contextOf(options, targets, notes);
  const rows = [];
  const measures = [];
  for (const workload of chosen) {
    log(`${workload.name}: ${workload.summary}`);
    const result = await workload.run(context);
    rows.push(...(result.rows ?? []));
    measures.push(...(result.measures ?? []));
  }
  const results = { machine: machine(), rows, measures, goals: goalsOf({ rows, measures }), notes };
  return await report(results, options);
}

function names(own) {
  const lines = workloads.map(({ name, summary }) => `${name.padEnd(16)}  ${summary}`);
  return [...lines, "", `targets: ${own.map(({ name }) => name).join(", ")}, and the peers`].join("\n");
}

function machine() {
  const [first] = cpus();
  return { node: process.version, cpus: `${cpus().length} × ${first?.model ?? "unknown"}`, kernel: release() };
}

function chooseWorkloads(wanted) {
  const unknown = wanted.find((prefix) => !workloads.some(({ name }) => name.startsWith(prefix)));
  if (unknown !== undefined) throw new Error(`There is no workload "${unknown}"; --list names them.`);
  return workloads.filter(({ name }) => wanted.length === 0 || wanted.some((prefix) => name.startsWith(prefix)));
}

async function chooseTargets({ targets: wanted, peers: withPeers }, own) {
  const known = wanted?.includes(liar.name) ? [...own, liar] : own;
  const needsPeers =
    withPeers && (wanted === undefined || wanted.some((name) => !known.some((one) => one.name === name)));
  const all = needsPeers ? [...known, ...(await (await import("./peers/index.mjs")).peers(log))] : known;
  const unknown = wanted?.find((name) => !all.some((one) => one.name === name));
  if (unknown !== undefined) throw new Error(`There is no target "${unknown}"; --list names them.`);
  return all.filter(({ name }) => wanted === undefined || wanted.includes(name));
}

function contextOf({ rounds, calls, share, quick }, targets, notes) {
  const note = (text) => {
    notes.push(text);
    log(`  note: ${text}`);
  };
  return {
    targets,
    rounds,
    quick,
    log,
    note,
    skip: (text) => note(`left out: ${text}`),
    /** A workload's plan as the options have it. */
    plan: (plan) => {
      if (calls === undefined) return { ...plan, rounds, calls: Math.ceil(plan.calls * share) };
      return { ...plan, rounds, calls, warm: Math.min(plan.warm, calls), rewarm: Math.min(plan.rewarm, calls) };
    },
  };
}

async function report(results, options) {
  const text = `${JSON.stringify(results, undefined, 2)}\n`;
  const out = options.out ?? OUT;
  for (const file of [join(out, "latest.json"), ...(options.json === undefined ? [] : [options.json])]) {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text);
  }
  print(printTable(results));
  await writeChart(results, join(out, "latest.svg"));
  if (options.record) await record(results, RECORDED);
  if (!options.check) return 0;
  if (!existsSync(RECORDED)) throw new Error(`Nothing is recorded for Node ${majorOf()} yet: run with --record first.`);
  const { worse, useless, text: said } = checkAgainst(results, JSON.parse(await readFile(RECORDED, "utf8")));
  print(said);
  return worse.length === 0 && useless.length === 0 ? 0 : 1;
}

let stopped = false;
for (const [signal, code] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
]) {
  process.on(signal, () => {
    // The second time, without waiting for anybody's end.
    if (stopped) process.exit(code);
    stopped = true;
    void stopEverything().then(() => process.exit(code));
  });
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!stopped) log(`bench: ${error.message}`);
  process.exitCode = 2;
} finally {
  await stopEverything();
  killAll();
}
