// Where the lines that servers write to stderr are kept, and in which form. Both the writer and the reader go by it.

import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { decoded } from "../../runtime/words/percent.js";

/** The folder in the state directory. */
export const LOGS_FOLDER = "logs";

/** A few thousand lines, enough to see what came before a fault; small enough to be read at once. */
export const MAX_FILE_BYTES = 1024 * 1024;

/** The one that is written, and those before it. With the size it bounds what a server takes of the disk. */
export const FILES_OF_A_SERVER = 3;

const ENDING = ".log";
/** File systems take 255 bytes; there is an ending. */
const MAX_NAME_CHARACTERS = 200;
const KEPT_CHARACTERS = 180;
const HASH_CHARACTERS = 12;

/** The file that is written now; those before it have `.1` and `.2` behind, the oldest last. */
export function logPath(stateDir: string, server: string, age = 0): string {
  return join(stateDir, LOGS_FOLDER, `${fileNameOf(server)}${ENDING}${age === 0 ? "" : `.${age}`}`);
}

/** A name may hold anything but control characters: what a path would take for its own is encoded. */
function fileNameOf(server: string): string {
  const name = encodeURIComponent(server);
  if (name.length <= MAX_NAME_CHARACTERS) return name;
  const hash = createHash("sha256").update(server).digest("hex").slice(0, HASH_CHARACTERS);
  return `${name.slice(0, KEPT_CHARACTERS).replace(/%[^%]{0,1}$/, "")}~${hash}`;
}

/** The servers that have lines, by name; one with a very long name by that of its file. */
export function loggedServers(stateDir: string): string[] {
  let files: string[];
  try {
    files = readdirSync(join(stateDir, LOGS_FOLDER));
  } catch {
    return [];
  }
  return files
    .filter((file) => file.endsWith(ENDING))
    .map((file) => decoded(file.slice(0, -ENDING.length)))
    .sort();
}

/** One line of a server. */
export interface ServerLine {
  readonly server: string;
  /** ISO 8601, in UTC; empty where the file has none. */
  readonly time: string;
  readonly text: string;
}

const TIME = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) /;

export function writtenLine(atMs: number, text: string): string {
  return `${new Date(atMs).toISOString()} ${text}\n`;
}

export function readLine(server: string, line: string): ServerLine {
  const time = TIME.exec(line)?.[1];
  return time === undefined ? { server, time: "", text: line } : { server, time, text: line.slice(time.length + 1) };
}
