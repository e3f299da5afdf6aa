// Gets the peers' packages at exact versions into a directory outside of the repository. Knows nothing of how they run.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { homedir, platform } from "node:os";
import { join } from "node:path";

const VERSIONS = { supergateway: "4.0.0", "mcp-proxy": "6.7.19", "mcp-hub": "4.2.1" };

/** Some 200 packages; a slow network must not hold the bench for ever. */
const INSTALL_MS = 600_000;

/** `TOOLWAY_BENCH_PEERS`, else a directory of these versions in the user's cache. */
export function peersDir(env = process.env) {
  if (env.TOOLWAY_BENCH_PEERS) return env.TOOLWAY_BENCH_PEERS;
  const cache = env.XDG_CACHE_HOME || join(homedir(), platform() === "darwin" ? "Library/Caches" : ".cache");
  const hash = createHash("sha256").update(JSON.stringify(VERSIONS)).digest("hex").slice(0, 12);
  return join(cache, "toolway-bench", `peers-${hash}`);
}

/**
 * Installs what is missing. Returns the file that each peer is started by; a peer that is not there is left out.
 * @param {(line: string) => void} log
 * @returns {Promise<Map<string, string>>}
 */
export async function install(log, dir = peersDir()) {
  const missing = Object.keys(VERSIONS).filter((name) => programOf(dir, name) === undefined);
  if (missing.length > 0) {
    log(`Installing ${missing.map((name) => `${name} ${VERSIONS[name]}`).join(", ")} into ${dir} …`);
    const problem = await npmInstall(dir);
    if (problem !== undefined) log(`npm install failed: ${problem}`);
  }
  const programs = new Map();
  for (const [name, version] of Object.entries(VERSIONS)) {
    const program = programOf(dir, name);
    if (program === undefined) log(`Without ${name} ${version}: it is not installed.`);
    else programs.set(name, program);
  }
  return programs;
}

/** The program of a package, if the package is there at the version that we measure. */
function programOf(dir, name) {
  const root = join(dir, "node_modules", name);
  if (!existsSync(join(root, "package.json"))) return undefined;
  const { version, bin } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  return version === VERSIONS[name] ? join(root, bin[name]) : undefined;
}

async function npmInstall(dir) {
  try {
    mkdirSync(dir, { recursive: true });
    // A package of its own: else npm takes the nearest one above for the root.
    const manifest = join(dir, "package.json");
    if (!existsSync(manifest)) writeFileSync(manifest, `${JSON.stringify({ private: true })}\n`);
  } catch (error) {
    return error.message;
  }
  // All of them each time: with --no-save, npm takes away what it was not named.
  const specs = Object.entries(VERSIONS).map(([name, version]) => `${name}@${version}`);
  // One of them wants a newer Node for a part that is not used here.
  const quiet = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--engine-strict=false"];
  const args = ["install", ...quiet, "--prefix", dir, ...specs];
  return await new Promise((resolve) => {
    const npm = spawn("npm", args, { cwd: dir, stdio: ["ignore", 2, 2], timeout: INSTALL_MS });
    npm.once("error", (error) => resolve(error.message));
    npm.once("exit", (code) => resolve(code === 0 ? undefined : `npm ended with ${code ?? "a signal"}.`));
  });
}
