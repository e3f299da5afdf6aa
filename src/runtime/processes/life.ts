// Whether a process of which something was written down still lives: its id alone does not say so, since ids are given
// again, and mean nothing to who sees other processes than we do.

import { readFileSync, readlinkSync } from "node:fs";

interface Mark {
  readonly pid: number;
  /** When it began, in the kernel's own count; undefined where the system does not say. */
  readonly began?: string | undefined;
  /** Which processes it sees: two that see others know each other's ids for nothing. */
  readonly space?: string | undefined;
}

/** Of this process. */
export function ownMark(): Mark {
  return { pid: process.pid, began: beganAt("self"), space: ownSpace() };
}

/** True where it is certain; what cannot be known is not gone. */
export function isGone({ pid, began, space }: Mark): boolean {
  if (!Number.isSafeInteger(pid) || pid < 1 || space !== ownSpace()) return false;
  if (space !== undefined && began !== undefined) return beganAt(String(pid)) !== began;
  try {
    process.kill(pid, 0);
    return false;
  } catch (error) {
    // One of another user is there, and not ours to touch.
    return (error as NodeJS.ErrnoException).code === "ESRCH";
  }
}

/** Undefined where there is no such process, or one that has ended and that its parent has not looked after. */
function beganAt(pid: string): string | undefined {
  try {
    // The name of the program comes first, in brackets, with anything in it.
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return fields[0] === "Z" || fields[0] === "X" ? undefined : fields[19];
  } catch {
    return undefined;
  }
}

function ownSpace(): string | undefined {
  try {
    return readlinkSync("/proc/self/ns/pid");
  } catch {
    return undefined;
  }
}
