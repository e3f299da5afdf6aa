// Where the real Codex is: fetched by npm into its own cache, 170 MB the first time; the repo does not depend on it.

import { execFile } from "node:child_process";
import { readdirSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { full } from "../faults/length.js";

/** The version whose behaviour was measured and is kept to. */
export const CODEX_VERSION = "0.166.0";

/** A download over a slow line; from the cache it takes a second. */
const FETCH_MS = 600_000;

export type Codex = { readonly path: string } | { readonly path: undefined; readonly missing: string };

/**
 * Codex for the full runs, which fail without it: what was not tried must not look as if it had passed. A machine that
 * cannot have it says so, by `npm run faults -- --without-codex`.
 */
export async function codexOfFullRuns(): Promise<Codex> {
  if (!full) return { path: undefined, missing: "in the full runs only" };
  if (process.env["TOOLWAY_WITHOUT_CODEX"] === "1") return { path: undefined, missing: "left out by --without-codex" };
  const codex = await findCodex();
  if (codex.path === undefined)
    throw new Error(`${codex.missing}. To run without it: npm run faults -- --without-codex`);
  return codex;
}

let found: Promise<Codex> | undefined;

/** Looked for once a process. Never throws: a machine without the network still runs the other tests. */
export function findCodex(): Promise<Codex> {
  found ??= locate().catch((error: Error) => {
    const [why] = error.message.split("\n").filter((line) => !line.startsWith("npm warn"));
    return { path: undefined, missing: `Codex ${CODEX_VERSION} could not be had: ${why ?? "no reason given"}` };
  });
  return found;
}

/** The program itself, not the script that starts it: only that one can be killed for certain. */
async function locate(): Promise<Codex> {
  const args = ["exec", "--yes", `--package=@openai/codex@${CODEX_VERSION}`, "--call", "command -v codex"];
  const { stdout } = await promisify(execFile)("npm", args, { timeout: FETCH_MS });
  const script = realpathSync(stdout.trim());
  const platform = `@openai/codex-${process.platform}-${process.arch}/package.json`;
  const vendor = join(dirname(createRequire(script).resolve(platform)), "vendor");
  const [triple] = readdirSync(vendor);
  if (triple === undefined) throw new Error(`nothing for ${process.platform} ${process.arch}`);
  return { path: join(vendor, triple, "bin", process.platform === "win32" ? "codex.exe" : "codex") };
}
