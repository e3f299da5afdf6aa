// Lines of the audit log as a table for spreadsheets.

import type { AuditLine } from "../../contracts/control/audit.js";

const COLUMNS = [
  "seq",
  "time",
  "kind",
  "principal",
  "role",
  "client",
  "method",
  "server",
  "tool",
  "outcome",
  "rule",
  "ms",
  "bytesIn",
  "bytes",
  "by",
  "act",
  "target",
  "address",
  "path",
  "why",
  "trace",
  "arguments",
  "receipt",
] as const;

/** The head of the table where there is no line. */
export function csvLine(line: AuditLine | undefined): string {
  return COLUMNS.map((column) => cell(line === undefined ? column : line[column])).join(",");
}

/** A sheet runs what begins like a formula: such a cell begins with an apostrophe, and is shown as it is. */
const FORMULA = /^[=+\-@\t\r]/;

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
