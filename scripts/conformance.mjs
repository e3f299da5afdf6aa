// Runs the official conformance suite through the gateway and prints one table. It owns processes and the reading of
// results; what is run is the list RUNS, and what the suite calls is test/fixtures/servers/conformance.mjs.

import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

/** Pinned: a result is only comparable with another of the same suite. It needs Node 22, the gateway does not. */
const SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12";
const SUITE_NODE = "node@24";
const SUITE_NODE_MAJOR = 22;

/** Scenarios take 0.1 s each; a server that is never ready must not hold up the run. */
const READY_MS = 20_000;
/** The suite's own limit for a scenario is 30 s; this one is for a suite that hangs as a whole. */
const SUITE_MS = 300_000;
/** From SIGTERM to SIGKILL: a gateway without calls in flight stops in well under a second. */
const STOP_MS = 5_000;

const root = fileURLToPath(new URL("..", import.meta.url));
/** `TOOLWAY_CLI`: another build than the one in dist/. */
const gatewayCli = process.env.TOOLWAY_CLI ?? join(root, "dist/cli/main.js");
const fixture = (name) => join(root, "test/fixtures/servers", name);

/**
 * Each run is a column of the table. `server`: what stands behind the gateway, and how it is reached;
 * `through`: "gateway" or "direct" (the fixture itself, as reference; runs with --direct only).
 */
const RUNS = [
  {
    name: "http",
    title: "gateway over an HTTP server",
    requirements: "2025-11-25",
    through: "gateway",
    server: { kind: "http", file: fixture("conformance.mjs") },
  },
  {
    name: "stdio",
    title: "gateway over a stdio server",
    requirements: "2025-11-25",
    through: "gateway",
    server: { kind: "stdio", file: fixture("conformance.mjs") },
  },
  {
    name: "direct",
    title: "the fixture itself, without a gateway",
    requirements: "2025-11-25",
    through: "direct",
    server: { kind: "http", file: fixture("conformance.mjs") },
  },
];

const HELP = `Runs ${SUITE} through the gateway.

  npm run conformance                        all runs through the gateway
  npm run conformance -- --direct            the fixture itself, as reference
  npm run conformance -- --run stdio         one run: ${RUNS.map(({ name }) => name).join(", ")}
  npm run conformance -- --only tools-list   one scenario

  --json      print the results as JSON
  --verbose   print the suite's and the servers' own output
  --keep      keep the directory with configs, logs and the suite's checks.json files
  --help      this text

Exit code: 0 when every scored scenario passed, 1 when one failed, 2 when a run could not be made.
`;

const out = (line) => void process.stdout.write(`${line}\n`);
const note = (line) => void process.stderr.write(`${line}\n`);

/** Everything started here, so that it is stopped whatever happens. */
const running = new Set();

function start(command, args, { log, env = {}, verbose = false } = {}) {
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  const output = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8");
    stream.on("data", (chunk) => {
      output.push(chunk);
      if (verbose) process.stderr.write(chunk);
    });
  }
  child.stdin.on("error", () => {});
  const exited = new Promise((resolve) => {
    child.on("error", (error) => resolve(`${error.message}`));
    child.on("close", (code, signal) => resolve(signal ?? code));
  });
  const handle = { child, exited, name: log, text: () => output.join("") };
  running.add(handle);
  void exited.then(() => running.delete(handle));
  return handle;
}

async function stop(handle) {
  handle.child.stdin.end();
  handle.child.kill("SIGTERM");
  const timer = setTimeout(() => handle.child.kill("SIGKILL"), STOP_MS);
  await handle.exited;
  clearTimeout(timer);
}

async function freePort() {
  const probe = createServer();
  await new Promise((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

async function until(what, handle, attempt) {
  const deadline = Date.now() + READY_MS;
  let last = "no answer";
  let over;
  void handle.exited.then((code) => {
    over = code;
  });
  while (Date.now() < deadline) {
    if (over !== undefined) throw new Error(`${what} ended with ${over}\n${tail(handle.text())}`);
    try {
      const found = await attempt();
      if (found) return found;
    } catch (error) {
      last = error.message;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${what} is not ready after ${READY_MS} ms (${last})\n${tail(handle.text())}`);
}

function tail(text, lines = 30) {
  return text.trimEnd().split("\n").slice(-lines).join("\n");
}

/** Where npm put the suite, and the Node that runs it. */
async function findSuite(verbose) {
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

/** The scored server scenarios of a revision, in the suite's order. */
async function scoredScenarios(suite, revision) {
  const list = start(suite.node, [suite.bin, "list", "--requirements", revision], { log: "list" });
  await list.exited;
  const section = /Server scenarios[^\n]*\n((?: {2}- [^\n]+\n)+)/.exec(list.text());
  if (section === null) throw new Error(`The suite has no requirements ${revision}:\n${tail(list.text())}`);
  return [...section[1].matchAll(/- (\S+)/g)].map((match) => match[1]);
}

async function startFixture(server, verbose) {
  const handle = start(process.execPath, [server.file, "--http", "0", "--with-parent"], { log: "fixture", verbose });
  const url = await until("The fixture", handle, () => /^http:\S+/m.exec(handle.text())?.[0]);
  return { handle, url };
}

async function startGateway(entry, dir, verbose) {
  if (!existsSync(gatewayCli)) throw new Error("There is no dist/cli/main.js: run `npm run build` first.");
  const config = join(dir, "config.json");
  await writeFile(config, JSON.stringify({ mcpServers: { fixture: entry } }, null, 2));
  const port = await freePort();
  const args = ["serve", config, "--listen", `127.0.0.1:${port}`, "--state", join(dir, "state")];
  const handle = start(process.execPath, [gatewayCli, ...args, "--no-auth", "--names", "plain"], {
    log: "gateway",
    verbose,
  });
  await until("The gateway", handle, async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok);
  const url = `http://127.0.0.1:${port}/mcp`;
  // Ready means that the endpoint answers; the suite wants the fixture's tools to be there as well.
  await until("The gateway's menu", handle, async () => await hasTools(url));
  return { handle, url };
}

async function hasTools(url) {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const post = (body, more = {}) =>
    fetch(url, { method: "POST", headers: { ...headers, ...more }, body: JSON.stringify({ jsonrpc: "2.0", ...body }) });
  const clientInfo = { name: "conformance-script", version: "1.0.0" };
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo };
  const opened = await post({ id: 1, method: "initialize", params });
  const id = opened.headers.get("mcp-session-id");
  await opened.text();
  const session = { ...(id === null ? {} : { "mcp-session-id": id }), "mcp-protocol-version": "2025-11-25" };
  await (await post({ method: "notifications/initialized" }, session)).text();
  const listed = await (await post({ id: 2, method: "tools/list" }, session)).text();
  await fetch(url, { method: "DELETE", headers: session });
  return listed.includes("test_simple_text");
}

async function runSuite(suite, run, url, dir, { only, verbose }) {
  const what = only
    ? ["--scenario", only, "--spec-version", run.requirements, "--force"]
    : ["--requirements", run.requirements];
  const results = join(dir, "results");
  const args = [suite.bin, "server", "--url", url, ...what, "--output-dir", results];
  const handle = start(suite.node, args, { log: "suite", verbose });
  const timer = setTimeout(() => handle.child.kill("SIGKILL"), SUITE_MS);
  await handle.exited;
  clearTimeout(timer);
  const scenarios = new Map();
  for (const entry of existsSync(results) ? await readdir(results) : []) {
    const name = /^server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z$/.exec(entry)?.[1];
    const file = join(results, entry, "checks.json");
    if (name === undefined) continue;
    // A scenario that threw has a directory and no file: it counts as failed, as it does for the suite.
    const checks = existsSync(file) ? JSON.parse(await readFile(file, "utf8")) : [thrown(name)];
    scenarios.set(name, judge(checks));
  }
  if (scenarios.size === 0) throw new Error(`The suite ran no scenario:\n${tail(handle.text())}`);
  return scenarios;
}

const thrown = (id) => ({ id, status: "FAILURE", errorMessage: "The scenario threw; --verbose shows why." });

/** The suite's own rule: a scenario fails when a check failed; warnings and information do not count. */
function judge(checks) {
  const those = (status) => checks.filter((check) => check.status === status);
  return {
    passed: those("FAILURE").length === 0,
    checks: those("SUCCESS").length,
    failures: those("FAILURE").map(({ id, errorMessage }) => ({ id, error: errorMessage })),
    warnings: those("WARNING").map(({ id, errorMessage }) => ({ id, error: errorMessage })),
  };
}

async function makeRun(run, suite, options, dir) {
  const runDir = await mkdtemp(join(dir, `${run.name}-`));
  const parts = [];
  try {
    let entry = { command: process.execPath, args: [run.server.file, "--stdio"] };
    let url;
    if (run.server.kind === "http") {
      const { handle, url: fixtureUrl } = await startFixture(run.server, options.verbose);
      parts.unshift(handle);
      entry = { type: "http", url: fixtureUrl };
      url = fixtureUrl;
    }
    if (run.through === "gateway") {
      const gateway = await startGateway(entry, runDir, options.verbose);
      parts.unshift(gateway.handle);
      url = gateway.url;
    }
    const scored = await scoredScenarios(suite, run.requirements);
    const scenarios = await runSuite(suite, run, url, runDir, options);
    const logs = parts.map(({ name, text }) => ({ name, text: text() }));
    return { ...run, scored, scenarios, logs };
  } finally {
    for (const part of parts) await stop(part);
  }
}

/** What a run came to: scored scenarios only, as the suite scores them. One that did not run has failed. */
function score({ scored, scenarios }, only) {
  const wanted = only === undefined ? scored : [only];
  const failed = wanted.filter((name) => scenarios.get(name)?.passed !== true);
  return { total: wanted.length, passed: wanted.length - failed.length, failed };
}

function printTable(runs, only) {
  const names = [...new Set(runs.flatMap(({ scored, scenarios }) => [...(only ? [] : scored), ...scenarios.keys()]))];
  const width = Math.max(...names.map((name) => name.length), 8);
  const isScored = (name) => runs.some(({ scored }) => scored.includes(name));
  out("");
  out(`${"scenario".padEnd(width)}  ${runs.map(({ name }) => name.padEnd(8)).join("")}`);
  for (const name of [...names.filter(isScored), ...names.filter((name) => !isScored(name))]) {
    const cells = runs.map(({ scenarios }) => {
      const result = scenarios.get(name);
      const word = result === undefined ? "-" : result.passed ? "pass" : "FAIL";
      return `${word}${result?.warnings.length ? " (w)" : ""}`.padEnd(8);
    });
    out(`${name.padEnd(width)}  ${cells.join("")}${isScored(name) ? "" : "not scored"}`.trimEnd());
  }
  const totals = runs.map((run) => score(run, only)).map(({ passed, total }) => `${passed}/${total}`.padEnd(8));
  out(`${"scored scenarios passed".padEnd(width)}  ${totals.join("")}`);
}

function printFailures(runs) {
  for (const { name, scenarios, scored, logs } of runs) {
    for (const [scenario, { failures, warnings }] of scenarios) {
      for (const { id, error } of failures) out(`\n${name}: ${scenario} failed ${id}: ${error ?? "no message"}`);
      for (const { id, error } of warnings) out(`\n${name}: ${scenario} warns ${id}: ${error ?? "no message"}`);
    }
    const failed = scored.some((scenario) => scenarios.get(scenario)?.passed === false);
    for (const log of failed ? logs : [])
      if (log.text) note(`\n--- ${name}: end of the ${log.name}'s log\n${tail(log.text)}`);
  }
}

function printJson(runs, suite, only) {
  const report = {
    suite: SUITE,
    node: suite.version,
    runs: runs.map(({ name, title, requirements, scored, scenarios, ...run }) => ({
      name,
      title,
      requirements,
      ...score({ scored, scenarios, ...run }, only),
      scenarios: Object.fromEntries(
        [...scenarios].map(([scenario, result]) => [scenario, { scored: scored.includes(scenario), ...result }]),
      ),
    })),
  };
  out(JSON.stringify(report, null, 2));
}

async function main() {
  const { values } = parseArgs({
    options: {
      json: { type: "boolean", default: false },
      direct: { type: "boolean", default: false },
      verbose: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", default: false },
      only: { type: "string" },
      run: { type: "string", multiple: true },
    },
  });
  if (values.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const through = values.direct ? "direct" : "gateway";
  const chosen = RUNS.filter((run) => values.run?.includes(run.name) ?? run.through === through);
  if (chosen.length === 0)
    throw new Error(`No run of that name; there are ${RUNS.map(({ name }) => name).join(", ")}.`);

  const dir = await mkdtemp(join(tmpdir(), "toolway-conformance-"));
  try {
    note(`Fetching ${SUITE} …`);
    const suite = await findSuite(values.verbose);
    note(`The suite runs on Node ${suite.version}, the gateway and the fixture on ${process.version}.`);
    const done = [];
    for (const run of chosen) {
      note(`Running the requirements ${run.requirements}: ${run.title} …`);
      done.push(await makeRun(run, suite, values, dir));
    }
    if (values.json) printJson(done, suite, values.only);
    else {
      printTable(done, values.only);
      printFailures(done);
    }
    return done.every((run) => score(run, values.only).failed.length === 0) ? 0 : 1;
  } finally {
    await Promise.all([...running].map(stop));
    if (values.keep) note(`Kept ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    // What runs ends, so main() ends too, through its own clean-up. A second signal does not wait for that.
    for (const { child } of running) child.kill(interrupted ? "SIGKILL" : "SIGTERM");
    if (interrupted) process.exit(130);
    interrupted = true;
  });
}

try {
  process.exitCode = await main();
} catch (error) {
  note(interrupted ? "Interrupted." : error.message);
  process.exitCode = interrupted ? 130 : 2;
}
