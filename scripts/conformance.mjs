// Runs the official conformance suite through the gateway and prints one table. It owns the course of a run; what is
// run is test/conformance/runs.mjs, and what the suite calls are test/fixtures/servers/{conformance,tasks}.mjs.

import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { signalAll, start, stop, stopAll, until } from "../test/conformance/processes.mjs";
import { isGood, printFailures, printJson, printTable } from "../test/conformance/report.mjs";
import { RUNS } from "../test/conformance/runs.mjs";
import {
  atOnce,
  findSuite,
  runClientSide,
  runServerSide,
  SUITE,
  scenariosOf,
  tooFewChecks,
} from "../test/conformance/suite.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
/** `TOOLWAY_CLI`: another build than the one in dist/. */
const gatewayCli = process.env.TOOLWAY_CLI ?? join(root, "dist/cli/main.js");

const HELP = `Runs ${SUITE} through the gateway.

  npm run conformance                        all runs through the gateway
  npm run conformance -- --direct            the fixtures themselves, as reference
  npm run conformance -- --run stdio         the runs whose names have that in them: ${RUNS.map(({ name }) => name).join(", ")}
  npm run conformance -- --only tools-list   one scenario

  --json      print the results as JSON
  --verbose   print the suite's and the servers' own output
  --keep      keep the directory with configs, logs and the suite's checks.json files
  --help      this text

Exit code: 0 when every scored scenario passed or is a limit that test/conformance/baseline.json names, 1 when one
failed or the baseline is stale, 2 when a run could not be made.
`;

const note = (line) => void process.stderr.write(`${line}\n`);

async function startFixture({ file, era }, verbose) {
  const args = [join(root, "test/fixtures/servers", file), "--http", "0", "--with-parent", "--era", era];
  const handle = start(process.execPath, args, { log: "fixture", verbose });
  const url = await until("The fixture", handle, () => /^http:\S+/m.exec(handle.text())?.[0]);
  return { handle, url };
}

async function startGateway(entry, dir, verbose) {
  if (!existsSync(gatewayCli)) throw new Error("There is no dist/cli/main.js: run `npm run build` first.");
  const config = join(dir, "config.json");
  await writeFile(config, JSON.stringify({ mcpServers: { fixture: entry } }, null, 2));
  const args = ["serve", config, "--listen", "127.0.0.1:0", "--json", "--state", join(dir, "state")];
  const handle = start(process.execPath, [gatewayCli, ...args, "--no-auth", "--names", "plain"], {
    log: "gateway",
    verbose,
  });
  const url = await until("The gateway", handle, () => /"endpoint":"([^"]+)"/.exec(handle.text())?.[1]);
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
  return listed.includes('"inputSchema"');
}

async function makeRun(run, suite, options, dir) {
  const runDir = await mkdtemp(join(dir, `${run.name}-`));
  const revision = run.requirements;
  const all = await scenariosOf(suite, revision);
  const common = { revision, dir: join(runDir, "results"), verbose: options.verbose };
  const only = options.only === undefined ? undefined : [options.only];
  if (run.leg === "client") {
    const client = join(root, "test/conformance/client.mjs");
    // The suite's servers may offer both eras; what is judged is how the one of the requirements is spoken.
    const era = revision === "2026-07-28" ? "modern" : "legacy";
    const command = `${process.execPath} ${client} --agent ${run.agent} --era ${era}`;
    // A login is between gateway and server: whichever agent waits for it, the suite sees the same.
    const scored = run.agent === era ? all.client : all.client.filter((name) => !name.startsWith("auth/"));
    const scenarios = await runClientSide(suite, { ...common, command, scenarios: only ?? scored });
    return { ...run, scored, scenarios, logs: [] };
  }
  const parts = [];
  try {
    const url = await startServers(run, runDir, parts, options.verbose);
    const isTasks = run.leg === "tasks";
    const scenarios = await runServerSide(suite, {
      ...common,
      url,
      scenarios: only ?? (isTasks ? all.tasks : undefined),
    });
    // Without the extension these say nothing; the runs of their own do. The reference shows all that the suite ran.
    if (!isTasks && run.through === "gateway") for (const name of all.tasks) scenarios.delete(name);
    if (scenarios.size === 0) throw new Error("The suite ran no scenario; --verbose shows why.");
    // Across the eras, what the protocol cannot carry is not checked further.
    const isWhole = only === undefined && !isTasks && run.baseline === undefined;
    const tooFew = isWhole ? tooFewChecks(revision, scenarios) : undefined;
    if (tooFew !== undefined) throw new Error(`${run.name}: ${tooFew}`);
    const logs = parts.map(({ name, text }) => ({ name, text: text() }));
    return { ...run, scored: isTasks ? [] : all.server, scenarios, logs };
  } finally {
    for (const part of parts) await stop(part);
  }
}

/** What the suite is to talk to; what was started for it goes into `parts`, the gateway first. */
async function startServers({ server, through }, dir, parts, verbose) {
  const file = join(root, "test/fixtures/servers", server.file);
  let entry = { command: process.execPath, args: [file, "--stdio", "--era", server.era] };
  let url;
  if (server.kind === "http") {
    const fixture = await startFixture(server, verbose);
    parts.unshift(fixture.handle);
    url = fixture.url;
    entry = { type: "http", url };
  }
  if (through === "direct") return url;
  const gateway = await startGateway(entry, dir, verbose);
  parts.unshift(gateway.handle);
  return gateway.url;
}

function chosenRuns({ run: names, direct, only }, scenarios) {
  const through = direct ? "direct" : "gateway";
  const named = RUNS.filter(({ name, through: way }) => names?.some((part) => name.includes(part)) ?? way === through);
  if (named.length === 0) throw new Error(`No run of that name; there are ${RUNS.map(({ name }) => name).join(", ")}.`);
  if (only === undefined) return named;
  // One scenario belongs to one side of the suite, and mostly to one revision.
  return named.filter(({ leg, requirements }) => scenarios.get(requirements)[leg].includes(only));
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
  const dir = await mkdtemp(join(tmpdir(), "toolway-conformance-"));
  try {
    note(`Fetching ${SUITE} …`);
    const suite = await findSuite(values.verbose);
    note(`The suite runs on Node ${suite.version}, the gateway and the fixtures on ${process.version}.`);
    const scenarios = new Map();
    for (const { requirements } of RUNS) scenarios.set(requirements, await scenariosOf(suite, requirements));
    const chosen = chosenRuns(values, scenarios);
    if (chosen.length === 0) throw new Error(`None of these runs has the scenario ${values.only}.`);
    const done = [];
    // A run mostly waits for one scenario after the other; each has servers and a gateway of its own.
    await atOnce([...chosen.entries()], async ([at, run]) => {
      note(`Running ${run.name}: the requirements ${run.requirements}, ${run.title} …`);
      const from = Date.now();
      done[at] = await makeRun(run, suite, values, dir);
      note(`  ${run.name}: ${((Date.now() - from) / 1000).toFixed(1)} s`);
    });
    if (values.json) printJson(done, suite, values.only);
    else {
      printTable(done, values.only);
      printFailures(done, values.only);
    }
    return done.every((run) => isGood(run, run.leg === "tasks" ? undefined : values.only)) ? 0 : 1;
  } finally {
    await stopAll();
    if (values.keep) note(`Kept ${dir}`);
    else await rm(dir, { recursive: true, force: true });
  }
}

let interrupted = false;
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    // What runs ends, so main() ends too, through its own clean-up. A second signal does not wait for that.
    signalAll(interrupted ? "SIGKILL" : "SIGTERM");
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
