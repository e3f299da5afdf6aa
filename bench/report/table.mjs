// The results as tables for a terminal, at most 120 columns wide. Pure.

import { byCase, figure, MEASURES, outcome, rateOf, sideOf, times, unitOf } from "./figures.mjs";

const NAME_COLUMNS = 40;
const GOAL_COLUMNS = 80;

/** @param {import("../target.mjs").Results} results @returns {string} */
export function printTable(results) {
  const parts = [
    ...[...byCase(results.rows)].map(([title, rows]) => caseTable(title, rows)),
    measureTable(results.measures ?? []),
    goalTable(results.goals ?? []),
    noteList(results.notes ?? []),
  ].filter((part) => part !== "");
  const { node = "?", cpus = "?", kernel = "?" } = results.machine ?? {};
  const machine = `node ${node}, ${cpus}, ${kernel}`;
  if (parts.length === 0) return `${machine}\n\nNothing was measured.\n`;
  return `${clip(machine, 120)}\n\n${parts.join("\n\n")}\n`;
}

function caseTable(title, rows) {
  const against = rows.find((row) => row.against !== undefined)?.against;
  const head = ["", `CPU µs/${unitOf(rows)}`, "ratio", rateOf(rows), "p50 ms", "p99 ms"];
  const lines = rows.map((row) => [
    sideOf(row),
    // `direct` has nobody between: nobody is charged.
    row.cpuUs === 0 ? "–" : figure(row.cpuUs),
    times(row.ratio),
    figure(row.callsPerSec),
    figure(row.p50Ms),
    figure(row.p99Ms),
  ]);
  const note = against === undefined ? "" : `   (ratio: CPU against ${against}, in the same rounds)`;
  return `${clip(title + note, 120)}\n${columns([head, ...lines], NAME_COLUMNS)}`;
}

function measureTable(measures) {
  if (measures.length === 0) return "";
  const lines = measures.map((one) => [
    `${MEASURES[one.measure] ?? one.measure}: ${one.target}`,
    figure(one.value),
    one.unit,
    times(one.ratio),
  ]);
  return `Start and memory\n${columns([["", "median", "", "ratio"], ...lines], NAME_COLUMNS + 10)}`;
}

function goalTable(goals) {
  if (goals.length === 0) return "";
  const lines = goals.map((goal) => [
    goal.goal,
    `≤ ${figure(goal.limit)} ${goal.unit ?? ""}`.trim(),
    goal.value === undefined ? "–" : `${figure(goal.value)} ${goal.unit ?? ""}`.trim(),
    outcome(goal),
  ]);
  return `Goals\n${columns([["", "goal", "measured", ""], ...lines], GOAL_COLUMNS)}`;
}

/** What was left out, and why; a peer's whole stderr is for the log. */
function noteList(notes) {
  return notes.length === 0 ? "" : `Notes\n${notes.map((note) => `  ${clip(note.split("\n")[0], 116)}`).join("\n")}`;
}

/** The first column to the left, the others to the right, each as wide as it has to be. */
function columns(lines, firstWidth) {
  const widths = lines[0].map((_, at) => Math.max(...lines.map((line) => [...line[at]].length)));
  widths[0] = Math.min(widths[0], firstWidth);
  return lines
    .map((line) =>
      line
        .map((cell, at) => (at === 0 ? clip(cell, widths[0]).padEnd(widths[0]) : cell.padStart(widths[at])))
        .join("  ")
        .replace(/^/, "  ")
        .trimEnd(),
    )
    .join("\n");
}

function clip(text, width) {
  return text.length <= width ? text : `${text.slice(0, width - 1)}…`;
}
