// The answers of `GET /audit` and `GET /audit/verify`: a search and a check of the audit log that run beside calls, and so
// have bounds.

import type { AuditAnswer, AuditCheckAnswer, AuditHeadAnswer } from "../../contracts/control/audit.js";
import { ControlError } from "../../control/server.js";
import { searchAudit } from "../../observe/audit/search.js";
import { verifyAudit } from "../../observe/audit/verify.js";
import { systemClock } from "../../runtime/clock.js";
import { queryNumber, queryText } from "../../runtime/words/query.js";

/** So many lines, or so long, at a time: who wants more asks for what is further back. */
const MAX_LINES = 200;
const MAX_MS = 2_000;

/** `query` as it stands in an address. */
export function auditAnswer(dir: string, query: URLSearchParams): Promise<AuditAnswer> {
  const text = (key: string) => queryText(query, key);
  const number = (key: string) => queryNumber(query, key);
  const [file, before] = [text("file"), number("before")];
  return searchAudit(dir, {
    sinceMs: number("sinceMs"),
    untilMs: number("untilMs"),
    server: text("server"),
    tool: text("tool"),
    principal: text("principal"),
    outcome: text("outcome"),
    operator: query.get("operator") === "true",
    from: file === undefined || before === undefined ? undefined : { file, before },
    maxLines: Math.min(number("limit") ?? MAX_LINES, MAX_LINES),
    maxMs: MAX_MS,
    nowMs: systemClock.now,
  });
}

/** One at a time: it reads every file. */
let isUnderWay = false;

/** Follows the whole chain. `head` is where the log is, and the last line that is written in this moment. */
export async function auditCheck(head: () => AuditHeadAnswer, signal: AbortSignal): Promise<AuditCheckAnswer> {
  if (isUnderWay)
    throw new ControlError("busy", "The audit log is being checked for somebody already: ask again later.");
  isUnderWay = true;
  try {
    const { lines, first, last, wrong, notes } = await verifyAudit(head().path, [], { signal, written: head });
    return { lines, first, last, wrong, notes };
  } finally {
    isUnderWay = false;
  }
}
