// What is kept of a client that was set up: its token, which the helper and the shell read, and the files that its entry
// stands in. One file for each principal, in the state directory. Reads alone, so that a helper is quick.

import { join } from "node:path";
import { readTextFile } from "../../runtime/text-file.js";

export interface KeptToken {
  readonly token: string;
  /** Absolute paths of the configs that have the entry. */
  readonly files: readonly string[];
}

/** A token and some paths. */
const MAX_BYTES = 1024 * 1024;

/** Undefined where there is none, or none that can be read. */
export function readKept(stateDir: string, id: string): KeptToken | undefined {
  try {
    const { token, files } = JSON.parse(readTextFile(keptPath(stateDir, id), MAX_BYTES)) as Partial<KeptToken>;
    if (typeof token !== "string" || !Array.isArray(files)) return undefined;
    return { token, files: files.filter((file) => typeof file === "string") };
  } catch {
    return undefined;
  }
}

/** An id comes from a command line, and must not lead out of the folder. */
export function keptPath(stateDir: string, id: string): string {
  return join(stateDir, "setup", `${encodeURIComponent(id).replaceAll(".", "%2E")}.json`);
}
