// Checks all files of an audit log, oldest first. They are read in turns, so that who checks in a gateway does not hold up its calls.

import type { ChainHead } from "./chain.js";
import { type ChainAnchor, ChainCheck, type ChainReport } from "./check.js";
import { type AuditFile, auditFiles, linesOf } from "./files.js";

/** An old file may be removed while it waits to be read: then all is looked at anew. Files are removed at most with each new one. */
const MAX_LOOKS = 5;

interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * The last line that is written, where a gateway writes the log meanwhile. What stands after it may be half of a line, or be
   * taken back where the disk is full: it is not looked at.
   */
  readonly written?: (() => ChainHead | Promise<ChainHead>) | undefined;
}

/** Rejects with the signal's reason where it fires. */
export async function verifyAudit(
  dir: string,
  anchors: readonly ChainAnchor[],
  options: VerifyOptions = {},
): Promise<ChainReport> {
  const { signal, written } = options;
  if (written === undefined) return checked(await auditFiles(dir), new ChainCheck(anchors), signal);
  for (let looks = 1; ; looks++) {
    const before = await auditFiles(dir);
    const { seq, hash } = await written();
    // A file that was begun or removed meanwhile is in one of the two lists.
    const files = joined(before, await auditFiles(dir));
    const check = new ChainCheck([{ seq, hash, from: "the gateway's store" }, ...anchors]);
    try {
      return await checked(files, check, signal, seq);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT" || looks === MAX_LOOKS) throw error;
    }
  }
}

async function checked(
  files: readonly AuditFile[],
  check: ChainCheck,
  signal: AbortSignal | undefined,
  lastSeq = Number.POSITIVE_INFINITY,
): Promise<ChainReport> {
  for (const { name, path } of files) {
    let number = 0;
    for await (const line of linesOf(path)) {
      signal?.throwIfAborted();
      if (check.lastSeq >= lastSeq) return check.end();
      check.line(line, name, ++number);
    }
  }
  return check.end();
}

function joined(some: readonly AuditFile[], others: readonly AuditFile[]): AuditFile[] {
  const all = new Map([...some, ...others].map((file) => [file.name, file]));
  return [...all.values()].sort((a, b) => a.firstSeq - b.firstSeq);
}
