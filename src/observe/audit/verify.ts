// Checks all files of an audit log, oldest first: by slices, so that who checks in a gateway does not hold up its calls.

import { setImmediate as nextTurn } from "node:timers/promises";
import { type ChainAnchor, ChainCheck, type ChainReport } from "./check.js";
import { auditFiles, linesOf } from "./files.js";

/** So long it works before others have their turn. */
const SLICE_MS = 10;
/** The clock is looked at after so many lines, which take less than a millisecond. */
const LINES_A_LOOK = 64;

/** Rejects with the signal's reason where it fires. */
export async function verifyAudit(
  dir: string,
  anchors: readonly ChainAnchor[],
  signal?: AbortSignal,
): Promise<ChainReport> {
  const check = new ChainCheck(anchors);
  let sliceMs = performance.now();
  for (const { name, path } of await auditFiles(dir)) {
    let number = 0;
    for await (const line of linesOf(path)) {
      check.line(line, name, ++number);
      if (number % LINES_A_LOOK !== 0 || performance.now() - sliceMs < SLICE_MS) continue;
      await nextTurn();
      signal?.throwIfAborted();
      sliceMs = performance.now();
    }
  }
  return check.end();
}
