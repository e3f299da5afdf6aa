// The mark that every child carries in its environment, and the search for processes that carry it.
// A group can be left (setsid) and is not known yet during a spawn; an environment is inherited by all descendants.

import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** `<hash of the state directory>.<gateway instance>.<number of the child>`: each prefix names a larger family. */
export const MARKER_VARIABLE = "TOOLWAY_CHILD_OF";

/** 64 bits: two state directories of one user do not collide, and `ps e` stays readable. */
const STATE_HASH_CHARS = 16;

export function hashStateDir(stateDir: string): string {
  return createHash("sha256").update(stateDir).digest("hex").slice(0, STATE_HASH_CHARS);
}

/** Reads at a time: as many as libuv has threads, so that the search never fills their queue for others. */
const READS_AT_ONCE = 4;

/** A process may fork between our look and our kill, so we look again; each pass kills all that it sees. */
const KILL_PASSES = 50;
const KILL_PASS_GAP_MS = 20;

/** The pids of all processes of this user whose marker `wanted` accepts. Empty where there is no /proc. */
export async function findMarked(wanted: (marker: string) => boolean): Promise<number[]> {
  const pids = await processIds();
  const found: number[] = [];
  let next = 0;
  const reader = async (): Promise<void> => {
    for (let pid = pids[next++]; pid !== undefined; pid = pids[next++]) {
      const marker = markerIn(await contents(`/proc/${pid}/environ`));
      if (marker !== undefined && wanted(marker)) found.push(pid);
    }
  };
  await Promise.all(Array.from({ length: READS_AT_ONCE }, reader));
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
        // Gone meanwhile, or (set-uid) not ours to kill.
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
  const pids = await processIds();
  if (pids.length === 0) return true;
  for (const pid of pids) {
    // `pid (name) state ppid pgrp …`; the name may hold anything, parentheses too.
    const stat = (await contents(`/proc/${pid}/stat`))?.toString("latin1");
    const fields = stat?.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (fields?.[2] === String(pgid) && fields[0] !== "Z" && fields[0] !== "X") return true;
  }
  return false;
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

function markerIn(environ: Buffer | undefined): string | undefined {
  if (environ === undefined) return undefined;
  const needle = `${MARKER_VARIABLE}=`;
  for (let at = environ.indexOf(needle); at >= 0; at = environ.indexOf(needle, at + 1)) {
    if (at > 0 && environ[at - 1] !== 0) continue;
    const end = environ.indexOf(0, at);
    return environ.toString("latin1", at + needle.length, end < 0 ? environ.length : end);
  }
  return undefined;
}
