// The real clients, of the versions whose behaviour was measured: npm fetches them into its own cache; the repo does not
// depend on them.

import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { codexOfFullRuns } from "../codex/binary.js";
import { full } from "../faults/length.js";

const PACKAGES = {
  claude: "@anthropic-ai/claude-code@2.1.325",
  gemini: "@google/gemini-cli@0.61.0",
  opencode: "opencode-ai@1.18.33",
} as const;

export type ClientWord = keyof typeof PACKAGES | "codex";

/** A download of 200 MB over a slow line; from the cache it takes a second. */
export const FETCH_MS = 600_000;

/**
 * Where the client is; undefined where it is not tried. The full runs fail without it: what was not tried must not look
 * as if it had passed. A machine that cannot have them says so, by `npm run faults -- --without-clients`.
 */
export async function clientOfFullRuns(word: ClientWord): Promise<string | undefined> {
  if (!full || process.env["TOOLWAY_WITHOUT_CLIENTS"] === "1") return undefined;
  if (word === "codex") return (await codexOfFullRuns()).path;
  // The clients want newer Nodes than some of ours, and say so; each brings what it needs.
  const args = [
    "exec",
    "--yes",
    "--engine-strict=false",
    `--package=${PACKAGES[word]}`,
    "--call",
    `command -v ${word}`,
  ];
  try {
    const { stdout } = await promisify(execFile)("npm", args, { timeout: FETCH_MS });
    return stdout.trim();
  } catch (error) {
    const why = (error as Error).message.split("\n").find((line) => line.includes("npm error")) ?? String(error);
    throw new Error(`${PACKAGES[word]} could not be had: ${why}. To run without: npm run faults -- --without-clients`);
  }
}
