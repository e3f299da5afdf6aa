// Searches an audit log, newest lines first. Its files are read in turns, so that who searches in a gateway does not hold up its calls.

import type { AuditAnswer, AuditCursor, AuditFilter, AuditLine } from "../../contracts/control/audit.js";
import { readLine } from "./chain.js";
import { auditFiles, linesBackwards } from "./files.js";

export interface AuditSearch extends AuditFilter {
  /** Where an earlier search stopped. */
  readonly from?: AuditCursor | undefined;
  /** Lines with this number and older ones are not wanted. */
  readonly afterSeq?: number | undefined;
  readonly maxLines: number;
  readonly maxMs: number;
  readonly nowMs: () => number;
}

export async function searchAudit(dir: string, search: AuditSearch): Promise<AuditAnswer> {
  const { from, maxLines, maxMs, afterSeq = 0, nowMs } = search;
  const begunMs = nowMs();
  const lines: AuditLine[] = [];
  const files = (await auditFiles(dir)).filter(({ name }) => from === undefined || name <= from.file).reverse();
  for (const { name, path } of files) {
    const before = from !== undefined && name === from.file ? from.before : undefined;
    for await (const { text, at } of linesBackwards(path, before)) {
      const line = readLine(text);
      if (line !== undefined && line.seq <= afterSeq) return { lines, next: undefined };
      if (line !== undefined && fitsAudit(line as unknown as AuditLine, search))
        lines.push(line as unknown as AuditLine);
      if (lines.length >= maxLines || nowMs() - begunMs >= maxMs) return { lines, next: { file: name, before: at } };
    }
  }
  return { lines, next: undefined };
}

/** Times are compared line by line: the clock may have been set back between two of them. */
export function fitsAudit(line: AuditLine, filter: AuditFilter): boolean {
  const { sinceMs, untilMs, operator, outcome } = filter;
  if (operator === true && line.kind !== "operator") return false;
  for (const key of ["server", "tool", "principal"] as const) {
    if (filter[key] !== undefined && line[key] !== filter[key] && targetOf(line)?.[key] !== filter[key]) return false;
  }
  if (outcome === "failed" ? !hasFailed(line) : outcome !== undefined && line["outcome"] !== outcome) return false;
  if (sinceMs === undefined && untilMs === undefined) return true;
  const atMs = Date.parse(line.time);
  return atMs >= (sinceMs ?? atMs) && atMs <= (untilMs ?? atMs);
}

function hasFailed({ outcome, kind }: AuditLine): boolean {
  return outcome === undefined ? kind === "refusal" : outcome !== "ok" && outcome !== "cancelled";
}

/** Of an operator's act. */
function targetOf({ target }: AuditLine): Readonly<Record<string, unknown>> | undefined {
  return typeof target === "object" && target !== null ? (target as Record<string, unknown>) : undefined;
}
