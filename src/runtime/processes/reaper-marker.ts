// The mark that every child carries in its environment, and the search for processes that carry it.
// A group can be left (setsid) and is not known yet during a spawn; an environment is inherited by all descendants.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs";
import { sleep } from "../wait.js";

/** `<hash of the state directory>.<gateway instance>.<number of the child>`: each prefix names a larger family. */
export const MARKER_VARIABLE = "TOOLWAY_CHILD_OF";

/** 64 bits: two state directories of one user do not collide, and `ps e` stays readable. */
const STATE_HASH_CHARS = 16;

export function hashStateDir(stateDir: string): string {
  return createHash("sha256").update(stateDir).digest("hex").slice(0, STATE_HASH_CHARS);
}

/**
 * So many files are read at a time: as many as libuv has threads, so that the search never fills their queue for
 * others.
 */
const READS_AT_ONCE = 4;

/** A process may fork between our look and our kill, so we look again; each pass kills all that it sees. */
const KILL_PASSES = 50;
const KILL_PASS_GAP_MS = 20;

/** The pids of all processes of this user whose marker `wanted` accepts. Empty where there is no /proc. */
export async function findMarked(wanted: (marker: string) => boolean): Promise<number[]> {
  const found: number[] = [];
  await readAll(await processIds(), "environ", (environ, pid) => {
    const marker = markerIn(environ);
    if (marker !== undefined && wanted(marker)) found.push(pid);
  });
  return found;
}

/**
 * Kills what carries an accepted marker until nothing does, or the passes are used up (a process that sits in the
 * kernel cannot be killed). Returns how many were killed. The number of a process that we just saw with our marker
 * is signalled within a millisecond or so; the kernel hands numbers out in a circle, so it is not another's by then.
 */
export async function killMarked(wanted: (marker: string) => boolean): Promise<number> {
  const killed = new Set<number>();
  for (let pass = 0; pass < KILL_PASSES; pass++) {
    const found = await findMarked(wanted);
    if (found.length === 0) break;
    for (const pid of found) {
      try {
        process.kill(pid, "SIGKILL");
        killed.add(pid);
      } catch {
        // It is gone meanwhile, or (set-uid) not ours to kill.
      }
    }
    await sleep(KILL_PASS_GAP_MS);
  }
  return killed.size;
}

/** True if a process of the group `pgid` does more than wait for its parent to notice its end. */
export async function groupIsAlive(pgid: number): Promise<boolean> {
  try {
    process.kill(-pgid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
  // Zombies answer signals too, and stay for ever where process 1 does not collect them (many containers).
  const live = await nextLook();
  return live === undefined || live.has(pgid);
}

let look: Promise<unknown> = Promise.resolve();
let lookAhead: Promise<ReadonlySet<number> | undefined> | undefined;

/**
 * One look at a time, for all who asked before it began. If each group that ends had its own, a few dozen that end
 * together would fill libuv's queue with reads for a minute, and all that is left of them would live so long.
 */
function nextLook(): Promise<ReadonlySet<number> | undefined> {
  lookAhead ??= look.then(() => {
    lookAhead = undefined;
    const groups = liveGroups();
    look = groups;
    return groups;
  });
  return lookAhead;
}

/** The groups that have a member which is not a zombie. Undefined where there is no /proc. */
async function liveGroups(): Promise<ReadonlySet<number> | undefined> {
  const pids = await processIds();
  if (pids.length === 0) return undefined;
  const groups = new Set<number>();
  await readAll(pids, "stat", (bytes) => {
    // `pid (name) state ppid pgrp …`; the name may hold anything, parentheses too.
    const stat = bytes.toString("latin1");
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state !== "Z" && state !== "X") groups.add(Number(group));
  });
  return groups;
}

/** A file of each process in turn, without those that are gone or another user's. */
async function readAll(
  pids: readonly number[],
  file: "environ" | "stat",
  seen: (bytes: Buffer, pid: number) => void,
): Promise<void> {
  let next = 0;
  const reader = async (): Promise<void> => {
    for (let pid = pids[next++]; pid !== undefined; pid = pids[next++]) {
      const bytes = await contents(`/proc/${pid}/${file}`);
      if (bytes !== undefined) seen(bytes, pid);
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
}

function processIds(): Promise<number[]> {
  return new Promise((resolve) => {
    readdir("/proc", (error, names) => {
      if (error !== null) return resolve([]);
      resolve(names.map(Number).filter((pid) => Number.isInteger(pid) && pid !== process.pid));
    });
  });
}

/** Undefined for a process that is gone or another user's. */
function contents(path: string): Promise<Buffer | undefined> {
  return new Promise((resolve) => {
    readFile(path, (error, bytes) => resolve(error === null ? bytes : undefined));
  });
}

function markerIn(environ: Buffer): string | undefined {
  const needle = `${MARKER_VARIABLE}=`;
  for (let at = environ.indexOf(needle); at >= 0; at = environ.indexOf(needle, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString("latin1", at + needle.length, end < 0 ? environ.length : end);
  }
  return undefined;
}
