// Lines of the audit log as a table for spreadsheets.

import { AUDIT_COLUMNS, type AuditLine } from "../../contracts/control/audit.js";
import { csvRow } from "../../runtime/words/csv.js";

/** The head of the table where there is no line. */
export function csvLine(line: AuditLine | undefined): string {
  return csvRow(AUDIT_COLUMNS.map((column) => (line === undefined ? column : line[column])));
}
