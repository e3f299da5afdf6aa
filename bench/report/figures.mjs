// How figures and cases are written down, everywhere the same. Pure.

const NONE = "–";

/** Three digits that count; a figure that is none is a dash. */
export function figure(value) {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  return value.toFixed(size >= 10 ? 1 : 2);
}

export function times(ratio) {
  return Number.isFinite(ratio) ? `${ratio.toFixed(ratio >= 10 ? 1 : 2)}×` : NONE;
}

export function percent(share) {
  return Number.isFinite(share) ? `${Math.round(100 * share)} %` : NONE;
}

/** What a row is of, without its target: rows of one case stand in one table. */
export function caseOf({ workload, upstream, answers, era, inFlight }) {
  if (upstream === "executor" || upstream === "broker") return `${workload}, ${inFlight} in flight`;
  const answered = upstream === "http" ? `, ${answers === "sse" ? "SSE" : "JSON"} answers` : "";
  return `${workload}: HTTP→${upstream === "http" ? "HTTP" : upstream}, ${inFlight} in flight${answered}, ${era}`;
}

/** Which of the rows of its case a row is. */
export function sideOf({ target, variant }) {
  return variant === undefined ? target : `${target}, ${variant}`;
}

/** What the CPU of a row's case is counted for: a call, or a MiB of a body. */
export function unitOf(rows) {
  return rows[0]?.unit ?? "call";
}

/** How many of them in a second. */
export function rateOf(rows) {
  return rows[0]?.unit === undefined ? "calls/s" : `${rows[0].unit}/s`;
}

/** The rows by case, in the order in which the cases came. @returns {Map<string, any[]>} */
export function byCase(rows = []) {
  const cases = new Map();
  for (const row of rows) {
    const key = caseOf(row);
    cases.set(key, [...(cases.get(key) ?? []), row]);
  }
  return cases;
}

export const MEASURES = {
  start: "start to listening",
  firstCall: "start to the first call",
  rssIdle: "RSS, idle",
  rssPerSession: "RSS for each open session",
  rssPerStream: "RSS for each session with an open stream",
  rssPerListen: "RSS for each modern subscription",
};

/** The words of a goal's outcome. */
export function outcome({ met }) {
  if (met === undefined) return "not measured";
  return met ? "met" : "missed";
}
