// The majors of Node that Toolway is tested on, and where they come from: npm's package `node`, in npm's own cache, so
// that nothing is installed on the machine. The major that runs this is used as it is.

import { execFile } from "node:child_process";
import { delimiter, dirname } from "node:path";
import { promisify } from "node:util";

/** The oldest that is supported, and those that people have. */
export const TESTED_MAJORS = [20, 22, 24, 26];

/** A download over a slow line; from the cache it takes a second. */
const FETCH_MS = 600_000;

export function majorOf(version = process.version) {
  return Number(/^v?(\d+)\./.exec(version)?.[1]);
}

/**
 * The Node of a major: its program, and the environment in which scripts and their children find it first.
 * @param {number} major
 * @returns {Promise<{ version: string, path: string, env: NodeJS.ProcessEnv }>}
 */
export async function findNode(major) {
  if (major === majorOf()) return { version: process.version, path: process.execPath, env: process.env };
  // npm itself runs on the Node of here; what is asked for is only where the other one lies.
  const args = ["exec", "--yes", "--engine-strict=false", `--package=node@${major}`, "--"];
  const script = 'process.stdout.write(JSON.stringify(["NODE", process.version, process.execPath]))';
  const { stdout } = await promisify(execFile)("npm", [...args, "node", "-e", script], { timeout: FETCH_MS });
  const [, version, path] = JSON.parse(/\["NODE".*\]/.exec(stdout)?.[0] ?? "[]");
  if (majorOf(version) !== major) throw new Error(`npm gave ${version ?? "nothing"} for node@${major}.`);
  return { version, path, env: { ...process.env, PATH: `${dirname(path)}${delimiter}${process.env.PATH}` } };
}
