// Whether Toolway got dearer since the figures in the repository were recorded. It compares ratios to the bare limits,
// never times: those are the machine's.

import { median } from "../ratios.mjs";
import { caseOf, figure, MEASURES, percent, times } from "./figures.mjs";

/** Two runs of the same build on a quiet machine differ by some 5 %; less than this is no finding. */
const LEAST_TOLERANCE = 0.1;
/** A record so restless that it would allow more than this says nothing, and has to be made again. */
const MOST_TOLERANCE = 0.5;
/**
 * From the median distance of the rounds to their median to three standard errors of the difference of two such medians:
 * 1.4826 (to a standard deviation) × 1.2533 (of a median) × √2 (of two) × 3, over √rounds.
 */
const SPREAD_FACTOR = 1.4826 * 1.2533 * Math.SQRT2 * 3;

/**
 * @typedef {{ what: string, before: number, now: number, change: number, tolerance: number }} Change
 * @param {import("../target.mjs").Results} results
 * @param {import("../target.mjs").Results} recorded
 * @returns {{ worse: Change[], better: Change[], missing: string[], unrecorded: string[], useless: string[], text: string }}
 *   `useless`: what was measured now and cannot be true
 */
export function checkAgainst(results, recorded) {
  const before = compared(recorded);
  const now = compared(results);
  const changes = [];
  for (const [what, was] of before) {
    const is = now.get(what);
    if (is === undefined || !is.isFigure || !was.isFigure) continue;
    const change = is.value / was.value - 1;
    changes.push({
      what,
      before: was.value,
      now: is.value,
      change,
      tolerance: toleranceOf(was.rounds),
      show: was.show,
    });
  }
  const worse = changes.filter(({ change, tolerance }) => change > tolerance);
  const better = changes.filter(({ change, tolerance }) => change < -tolerance);
  const missing = [...before.keys()].filter((what) => now.get(what)?.isFigure !== true);
  const unrecorded = [...now.keys()].filter((what) => !before.has(what));
  const useless = [...now.entries()].filter(([, { isFigure }]) => !isFigure).map(([what]) => what);
  const text = textOf({ worse, better, missing, unrecorded, useless, compared: changes.length });
  return { worse, better, missing, unrecorded, useless, text };
}

/** What of the results is Toolway's and can be compared between machines. */
function compared({ rows = [], measures = [] }) {
  const found = new Map();
  const add = (what, value, rounds, show) => {
    // Nothing costs nothing: what is not above 0 was not measured, and must not look as if it were as good as before.
    const isFigure = Number.isFinite(value) && value > 0;
    found.set(what, { value, isFigure, rounds: rounds ?? [], show });
  };
  for (const row of rows.filter(({ group }) => group === "toolway")) {
    add(`${caseOf(row)}${row.variant === undefined ? "" : `, ${row.variant}`}`, row.ratio, row.ratios, times);
  }
  for (const one of measures.filter(({ group }) => group === "toolway")) {
    const what = MEASURES[one.measure] ?? one.measure;
    if (one.ratio !== undefined) add(what, one.ratio, one.ratios, times);
    // Memory is about the same everywhere; times are not.
    else if (one.unit !== "ms") add(what, one.value, one.rounds, (value) => `${figure(value)} ${one.unit}`);
  }
  return found;
}

/** How much worse is worse, from how much the recorded rounds differ among themselves. */
export function toleranceOf(rounds) {
  const values = rounds.filter((value) => Number.isFinite(value) && value > 0);
  if (values.length === 0) return LEAST_TOLERANCE;
  const middle = median(values);
  const distance = median(values.map((value) => Math.abs(value - middle))) / middle;
  return Math.min(MOST_TOLERANCE, Math.max(LEAST_TOLERANCE, (SPREAD_FACTOR * distance) / Math.sqrt(values.length)));
}

function textOf({ worse, better, missing, unrecorded, useless, compared }) {
  const line = ({ what, before, now, change, tolerance, show }) =>
    `  ${what}: ${show(before)} → ${show(now)}, ${percent(Math.abs(change))} ${change > 0 ? "worse" : "better"}` +
    ` (tolerance ${percent(tolerance)})`;
  const lines = [];
  if (worse.length > 0) lines.push("Worse than recorded:", ...worse.map(line));
  if (useless.length > 0) lines.push("No figure, 0 or less; measure again:", ...useless.map((what) => `  ${what}`));
  if (better.length > 0) lines.push("Better than recorded (record it, if it lasts):", ...better.map(line));
  if (missing.length > 0) lines.push("Recorded, but not measured now:", ...missing.map((what) => `  ${what}`));
  if (unrecorded.length > 0) lines.push("Measured, but not recorded:", ...unrecorded.map((what) => `  ${what}`));
  if (compared === 0) lines.push("Nothing could be compared with the record.");
  else if (worse.length === 0 && useless.length === 0) lines.push(`Nothing got worse: ${compared} ratios compared.`);
  return `${lines.join("\n")}\n`;
}
