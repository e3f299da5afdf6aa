// A row of a table for spreadsheets.

/** A sheet runs what begins like a formula: such a cell begins with an apostrophe, and is shown as it is. */
const FORMULA = /^[=+\-@\t\r]/;

export function csvRow(cells: readonly unknown[]): string {
  return cells.map(cell).join(",");
}

function cell(value: unknown): string {
  if (value === undefined || value === null) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  const safe = typeof value === "string" && FORMULA.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
