// The answer of `GET /audit`: the query as it stands in an address, and a search within bounds, since it runs beside calls.

import type { AuditAnswer } from "../../contracts/control/audit.js";
import { searchAudit } from "../../observe/audit/search.js";
import { systemClock } from "../../runtime/clock.js";

/** So many lines, or so long, at a time: who wants more asks for what is further back. */
const MAX_LINES = 200;
const MAX_MS = 2_000;

export function auditAnswer(dir: string, query: URLSearchParams): Promise<AuditAnswer> {
  const text = (key: string) => query.get(key) ?? undefined;
  const number = (key: string) => {
    const value = query.has(key) ? Number(query.get(key)) : Number.NaN;
    return Number.isFinite(value) && value >= 0 ? value : undefined;
  };
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
