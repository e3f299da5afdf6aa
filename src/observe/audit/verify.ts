// Checks all files of an audit log, oldest first.

import { type ChainAnchor, ChainCheck, type ChainReport } from "./check.js";
import { auditFiles, linesOf } from "./files.js";

export async function verifyAudit(dir: string, anchors: readonly ChainAnchor[]): Promise<ChainReport> {
  const check = new ChainCheck(anchors);
  for (const { name, path } of await auditFiles(dir)) {
    let number = 0;
    for await (const line of linesOf(path)) check.line(line, name, ++number);
  }
  return check.end();
}
