// Runs tests, or the bench, on other majors of Node than the one at hand: one after another, each to its end, then a
// line for each. What is run is what is built; it builds nothing itself.

import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { findNode, TESTED_MAJORS } from "./node-versions.mjs";

const HELP = `Runs the tests on other majors of Node, which npm fetches into its cache.

  npm run test:node                                    all tests on ${TESTED_MAJORS.join(", ")}
  npm run test:node -- --node 24 src/endpoint test/e2e these tests on Node 24
  npm run test:node -- --full                          with the full figures of test/faults: that is npm run faults
  npm run test:node -- --node 24 --bench small --check what follows --bench, measured on Node 24

  --node MAJORS   separated by commas; default ${TESTED_MAJORS.join(",")}
  --wire          what sockets, streams, processes and timers of another Node could change: src/endpoint, src/upstream,
                  src/sockets, src/runtime/processes and test/e2e without the unit tier, and without what test/tiers.ts
                  calls the same on any Node
  --full          the full form of fault and load runs
  --without-codex without the tests that need the real Codex, which npm fetches; else the full form fails where it
                  cannot be had
  --without-clients
                  without those that need the real Claude Code, Codex, Gemini CLI and opencode, likewise
  --without-browser
                  without those that need Chromium, likewise
  --bench         the bench in place of the tests; its own options follow
  --help          this text

Exit code: 0 when all passed on every major, 1 when something failed on one, 2 when a Node could not be had.
`;

/** What speaks HTTP, on either side, or over WebSockets; processes and their end; and whole gateways. */
const WIRE = ["src/endpoint", "src/upstream", "src/sockets", "src/runtime/processes", "test/e2e"];

const root = fileURLToPath(new URL("..", import.meta.url));

function readLine(argv) {
  const at = argv.indexOf("--bench");
  const { values, positionals } = parseArgs({
    args: at < 0 ? argv : argv.slice(0, at),
    allowPositionals: true,
    options: {
      node: { type: "string" },
      full: { type: "boolean" },
      wire: { type: "boolean" },
      "without-codex": { type: "boolean" },
      "without-clients": { type: "boolean" },
      "without-browser": { type: "boolean" },
      help: { type: "boolean" },
    },
  });
  const majors = values.node?.split(",").map(Number) ?? TESTED_MAJORS;
  const wrong = majors.find((major) => !Number.isInteger(major) || major < TESTED_MAJORS[0]);
  if (wrong !== undefined) throw new Error(`--node takes majors from ${TESTED_MAJORS[0]} on, such as 22,24.`);
  return { ...values, majors, files: positionals, bench: at < 0 ? undefined : argv.slice(at + 1) };
}

/** The script that is run, and its arguments. */
function commandOf({ files, bench, wire }) {
  if (bench !== undefined) return [join(root, "bench/run.mjs"), ...bench];
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  const tiers = wire ? [...WIRE, "--project", "integration", "--project", "system"] : [];
  return [vitest, "run", ...tiers, ...files];
}

function environmentOf(line) {
  return {
    ...(line.wire ? { TOOLWAY_TESTS: "wire" } : {}),
    ...(line.full ? { TOOLWAY_FULL: "1" } : {}),
    ...(line["without-codex"] ? { TOOLWAY_WITHOUT_CODEX: "1" } : {}),
    ...(line["without-clients"] ? { TOOLWAY_WITHOUT_CLIENTS: "1" } : {}),
    ...(line["without-browser"] ? { TOOLWAY_WITHOUT_BROWSER: "1" } : {}),
  };
}

let child;

function run(node, args, env) {
  return new Promise((resolve, reject) => {
    child = spawn(node.path, args, { cwd: root, stdio: "inherit", env: { ...node.env, ...env } });
    child.once("error", reject);
    child.once("exit", (code, signal) => resolve(signal ?? code));
  });
}

async function main(argv) {
  const line = readLine(argv);
  if (line.help) {
    process.stdout.write(HELP);
    return 0;
  }
  const outcomes = [];
  for (const major of line.majors) {
    const node = await findNode(major);
    process.stderr.write(`\nNode ${node.version}\n`);
    const started = Date.now();
    const code = await run(node, commandOf(line), environmentOf(line));
    outcomes.push({ version: node.version, code, minutes: (Date.now() - started) / 60_000 });
    if (typeof code === "string") break;
  }
  process.stdout.write("\n");
  for (const { version, code, minutes } of outcomes) {
    const how = code === 0 ? "passed" : `failed (${typeof code === "string" ? code : `exit code ${code}`})`;
    process.stdout.write(`Node ${version}: ${how}, ${minutes.toFixed(1)} minutes\n`);
  }
  return outcomes.every(({ code }) => code === 0) ? 0 : 1;
}

// The child is in our process group and hears of Ctrl-C itself; it is waited for.
process.on("SIGINT", () => {});
process.on("SIGTERM", () => child?.kill("SIGTERM"));

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`test-on-node: ${error.message}\n`);
  process.exitCode = 2;
}
