// Which gateways of this user run: a small file for each, in a folder of the state root. The files only say where to
// look. Whether a gateway lives is asked of its control socket, which the kernel refuses once its process is dead, so
// that a process id that was given to another program is never taken for a gateway.

import { createHash } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isGatewayThere } from "./client.js";

/** A gateway that runs, as `toolway ps` shows it. */
export interface RunningGateway {
  readonly pid: number;
  /** Undefined for what is built in. */
  readonly config: string | undefined;
  /** What is built in and is no demo. */
  readonly builtIn?: "broker" | "join" | undefined;
  readonly stateDir: string;
  /** Undefined for one that serves a client over stdio alone. */
  readonly endpoint: string | undefined;
  readonly startedAt: string;
}

const FOLDER = "running";
/** `<hash of the state directory>-<process id>.json`. */
const ENTRY = /^[0-9a-f]{16}-\d{1,10}\.json$/;
/** Two paths and a few words. */
const MAX_ENTRY_BYTES = 64 * 1024;
/** Nobody runs so many; what is above is left by killed ones, and goes with the next looks. */
const MAX_ENTRIES = 256;

/**
 * Puts a gateway that holds its state directory, and whose control socket is open, on the list. Returns what takes it
 * off again. Throws where the list cannot be written.
 */
export function registerGateway(root: string, gateway: RunningGateway): () => void {
  const folder = join(root, FOLDER);
  makeFolder(folder);
  const hash = createHash("sha256").update(gateway.stateDir).digest("hex").slice(0, 16);
  const name = `${hash}-${gateway.pid}.json`;
  const path = join(folder, name);
  // Renamed into its place, so that nobody reads half of it.
  const made = `${path}.new`;
  writeFileSync(made, `${JSON.stringify(gateway)}\n`, { mode: 0o600 });
  renameSync(made, path);
  // One gateway at a time has a state directory, and this one does: the others of that name are dead.
  const entries = entriesOf(folder);
  for (const other of entries) if (other !== name && other.startsWith(hash)) remove(join(folder, other));
  if (entries.length > MAX_ENTRIES) void listGateways(root);
  return () => remove(path);
}

/** The gateways that live, the oldest first. Those that died are taken off the list. */
export async function listGateways(root: string): Promise<RunningGateway[]> {
  const folder = join(root, FOLDER);
  const found = await Promise.all(
    entriesOf(folder)
      .slice(0, MAX_ENTRIES)
      .map(async (name) => {
        const path = join(folder, name);
        const gateway = readEntry(path);
        const life = gateway === undefined ? "dead" : await lifeOf(gateway.stateDir);
        if (life === "dead") remove(path);
        return life === "alive" ? gateway : undefined;
      }),
  );
  return found
    .filter((gateway) => gateway !== undefined)
    .sort((a, b) => a.startedAt.localeCompare(b.startedAt) || a.pid - b.pid);
}

/** Unknown where its socket may not be opened: then it is not ours to talk to, nor to take off the list. */
async function lifeOf(stateDir: string): Promise<"alive" | "dead" | "unknown"> {
  try {
    return (await isGatewayThere(stateDir)) ? "alive" : "dead";
  } catch {
    return "unknown";
  }
}

/** One level at a time: Node 20's recursive mkdir never returns where nothing can be made, such as in /proc. */
function makeFolder(dir: string): void {
  if (existsSync(dir)) return;
  makeFolder(dirname(dir));
  try {
    mkdirSync(dir, { mode: 0o700 });
  } catch (error) {
    // Another one that starts was faster.
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

function entriesOf(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => ENTRY.test(name));
  } catch {
    // No gateway ever ran.
    return [];
  }
}

/** Undefined where it is none of ours. */
function readEntry(path: string): RunningGateway | undefined {
  try {
    const stat = lstatSync(path);
    if (!stat.isFile() || stat.size > MAX_ENTRY_BYTES) return undefined;
    const { pid, config, builtIn, stateDir, endpoint, startedAt } = JSON.parse(readFileSync(path, "utf8"));
    if (!Number.isSafeInteger(pid) || typeof stateDir !== "string" || typeof startedAt !== "string") return undefined;
    const textOrNone = (value: unknown) => (typeof value === "string" ? value : undefined);
    const what = builtIn === "broker" || builtIn === "join" ? { builtIn } : {};
    return { pid, config: textOrNone(config), ...what, stateDir, endpoint: textOrNone(endpoint), startedAt };
  } catch {
    return undefined;
  }
}

function remove(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A file system that became read-only: the entry stays, and names a gateway that does not answer.
  }
}
