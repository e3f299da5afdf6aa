// The official suite: where npm put it, which scenarios a revision scores, running it, and reading what it wrote.

import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { start, tail } from "./processes.mjs";

/** Pinned: a result is only comparable with another of the same suite. It needs Node 22, the gateway does not. */
export const SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const SUITE_NODE = "node@24";
const SUITE_NODE_MAJOR = 22;

/** The suite's own limit for a scenario is 30 s; this one is for a suite that hangs as a whole. */
const SUITE_MS = 300_000;
/** So many runs at once, and of a run whose scenarios are processes of their own so many of these: all of them mostly wait. */
const AT_ONCE = 2;

/** Where npm put the suite, and the Node that runs it. */
export async function findSuite(verbose) {
  const probe = `
    const { delimiter, join } = require("node:path"), { existsSync, realpathSync } = require("node:fs");
    const bin = process.env.PATH.split(delimiter).map((dir) => join(dir, "conformance")).find(existsSync);
    console.log("SUITE " + JSON.stringify({ version: process.version, node: process.execPath, bin: realpathSync(bin) }));`;
  // npm itself runs on the Node of here, which the suite's packages would refuse; what runs them is SUITE_NODE.
  const packages = ["--engine-strict=false", `--package=${SUITE_NODE}`, `--package=${SUITE}`];
  const npm = start("npm", ["exec", "--yes", ...packages, "--", "node", "-e", probe], { log: "npm", verbose });
  await npm.exited;
  const line = /^SUITE (.*)$/m.exec(npm.text());
  if (line === null) throw new Error(`npm could not fetch ${SUITE}:\n${tail(npm.text())}`);
  const suite = JSON.parse(line[1]);
  if (Number(suite.version.slice(1).split(".")[0]) < SUITE_NODE_MAJOR) {
    throw new Error(`The suite needs Node ${SUITE_NODE_MAJOR}, npm gave it ${suite.version}`);
  }
  return suite;
}

const lists = new Map();

/** How many scenarios each revision has: a suite that lists fewer, or a list that is misread, would pass with less. */
const COUNTS = {
  "2025-11-25": { server: 30, client: 18 },
  "2026-07-28": { server: 37, client: 32, tasks: 10 },
};

/**
 * So many checks a run within one era makes at least, those of tasks apart, over every kind of server. A few more are made
 * only where calls are answered by event streams, which is as right as JSON: 84 and 164 of the fixtures themselves.
 */
const LEAST_CHECKS = { "2025-11-25": 80, "2026-07-28": 152 };

/** What is wrong with a run of all scenarios of a revision that checked next to nothing, however many of them passed. */
export function tooFewChecks(revision, scenarios) {
  const made = [...scenarios.values()].reduce((sum, { checks, failures }) => sum + checks + failures.length, 0);
  const least = LEAST_CHECKS[revision];
  return made < least ? `It made ${made} checks; ${least} are the least of ${revision}.` : undefined;
}

/** What a revision asks for, in the suite's order: the scored server and client scenarios, and the `tasks-*` ones. */
export async function scenariosOf(suite, revision) {
  if (!lists.has(revision)) {
    const list = start(suite.node, [suite.bin, "list", "--requirements", revision], { log: "list" });
    await list.exited;
    const text = list.text();
    const section = (title) => {
      const found = new RegExp(`${title} scenarios[^\\n]*\\n((?: {2}- [^\\n]+\\n)+)`).exec(text);
      if (found === null) throw new Error(`The suite has no requirements ${revision}:\n${tail(text)}`);
      return [...found[1].matchAll(/- (\S+)/g)].map((match) => match[1]);
    };
    lists.set(revision, {
      server: section("Server"),
      client: section("Client"),
      tasks: [...text.matchAll(/- (tasks-\S+)/g)].map((match) => match[1]),
    });
    for (const [leg, count] of Object.entries(COUNTS[revision])) {
      const found = lists.get(revision)[leg].length;
      if (found !== count) throw new Error(`${SUITE} lists ${found} ${leg} scenarios of ${revision}, not ${count}.`);
    }
  }
  return lists.get(revision);
}

/** Runs the server side against `url`: all scenarios of the revision, or those that are named. */
export async function runServerSide(suite, { url, revision, scenarios, dir, verbose }) {
  const base = [suite.bin, "server", "--url", url, "--output-dir", dir];
  if (scenarios === undefined) await invoke(suite, [...base, "--requirements", revision], verbose);
  else {
    await atOnce(scenarios, async (scenario) => {
      await invoke(suite, [...base, "--scenario", scenario, "--spec-version", revision, "--force"], verbose);
    });
  }
  return readResults(dir, /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/, false);
}

/** Runs the client side: each scenario starts `command` with the address of the suite's server. */
export async function runClientSide(suite, { command, revision, scenarios, dir, verbose }) {
  const exits = new Map();
  await atOnce(scenarios, async (scenario) => {
    const what = ["--scenario", scenario, "--spec-version", revision, "--force"];
    const handle = await invoke(
      suite,
      [suite.bin, "client", "--command", command, ...what, "--output-dir", dir],
      verbose,
    );
    exits.set(scenario, { code: await handle.exited, text: handle.text() });
  });
  const results = await readResults(dir, /^(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/, true);
  for (const [scenario, { code, text }] of exits) {
    const result = results.get(scenario);
    // The command's own failure counts too, although no check says so.
    if (result?.passed && code !== 0) {
      results.set(scenario, { ...result, passed: false, failures: [{ id: "exit code", error: tail(text, 12) }] });
    }
  }
  return results;
}

async function invoke(suite, args, verbose) {
  const handle = start(suite.node, args, { log: "suite", verbose });
  const timer = setTimeout(() => handle.child.kill("SIGKILL"), SUITE_MS);
  await handle.exited;
  clearTimeout(timer);
  return handle;
}

/** Does all of it, some at a time. Rejects with the first that fails; what is under way then goes on, and no more is begun. */
export async function atOnce(items, work) {
  const rest = [...items];
  const lane = async () => {
    try {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item);
    } finally {
      rest.length = 0;
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

async function readResults(dir, pattern, warningsFail) {
  const results = new Map();
  // A scenario's name may have a folder in it: `auth/metadata-default`.
  for (const entry of existsSync(dir) ? await readdir(dir, { recursive: true }) : []) {
    const name = pattern.exec(entry)?.[1];
    const file = join(dir, entry, "checks.json");
    if (name === undefined) continue;
    // A scenario that threw has a directory and no file: it counts as failed, as it does for the suite.
    const checks = existsSync(file) ? JSON.parse(await readFile(file, "utf8")) : [thrown(name)];
    results.set(name, judge(checks, warningsFail));
  }
  return results;
}

const thrown = (id) => ({ id, status: "FAILURE", errorMessage: "The scenario threw; --verbose shows why." });

/** The suite's own rule: a scenario fails when a check failed; a warning counts on the client side only. */
function judge(checks, warningsFail) {
  const those = (status) =>
    checks
      .filter((check) => check.status === status)
      .map(({ id, errorMessage, description }) => ({ id, error: errorMessage ?? description }));
  const failures = those("FAILURE");
  const warnings = those("WARNING");
  return {
    passed: failures.length === 0 && !(warningsFail && warnings.length > 0),
    checks: those("SUCCESS").length,
    failures,
    warnings,
  };
}
