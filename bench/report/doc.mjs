// The figures of docs/performance.md: what stands between its two marks is written by the bench. Pure.

import { majorOf } from "../../scripts/node-versions.mjs";
import { byCase, figure, MEASURES, outcome, rateOf, sideOf, times, unitOf } from "./figures.mjs";

/** The Node whose figures the page shows whole; of any other it shows the goals. */
export const PAGE_MAJOR = 20;

/** @param {string} text @param {import("../target.mjs").Results} results @returns {string} */
export function fillDoc(text, results) {
  const major = majorOf(results.machine?.node);
  const name = major === PAGE_MAJOR ? "bench" : `bench-node${major}`;
  const [first, last] = [`<!-- ${name}:begin -->`, `<!-- ${name}:end -->`];
  const begin = text.indexOf(first);
  const end = text.indexOf(last);
  if (begin < 0 || end < begin) throw new Error(`The page has no ${first} … ${last} to fill.`);
  const filling = major === PAGE_MAJOR ? figures(results) : figures({ machine: results.machine, goals: results.goals });
  return `${text.slice(0, begin + first.length)}\n${filling}\n${text.slice(end)}`;
}

function figures({ machine = {}, rows = [], measures = [], goals = [] }) {
  const parts = [
    `Measured with node ${machine.node ?? "?"} on ${machine.cpus ?? "?"}, ${machine.kernel ?? "?"}.`,
    goals.length > 0 && goalTable(goals),
    ...[...byCase(rows)].map(([title, ofCase]) => `### ${capital(title)}\n\n${caseTable(ofCase)}`),
    measures.length > 0 && `### Start and memory\n\n${measureTable(measures)}`,
  ];
  return `${parts.filter(Boolean).join("\n\n")}\n`;
}

function goalTable(goals) {
  return markdown(
    ["goal", "at most", "measured", ""],
    goals.map((goal) => [
      goal.goal,
      `${figure(goal.limit)} ${goal.unit ?? ""}`.trim(),
      goal.value === undefined ? "–" : `${figure(goal.value)} ${goal.unit ?? ""}`.trim(),
      outcome(goal),
    ]),
  );
}

function caseTable(rows) {
  const against = rows.find((row) => row.against !== undefined)?.against;
  return markdown(
    ["", `CPU µs a ${unitOf(rows)}`, against === undefined ? "×" : `× ${against}`, rateOf(rows), "p50 ms", "p99 ms"],
    rows.map((row) => [
      row.group === "toolway" ? `**${sideOf(row)}**` : sideOf(row),
      row.cpuUs === 0 ? "–" : figure(row.cpuUs),
      times(row.ratio),
      figure(row.callsPerSec),
      figure(row.p50Ms),
      figure(row.p99Ms),
    ]),
  );
}

function measureTable(measures) {
  return markdown(
    ["", "target", "median", "ratio"],
    measures.map((one) => [
      MEASURES[one.measure] ?? one.measure,
      one.target,
      `${figure(one.value)} ${one.unit}`,
      times(one.ratio),
    ]),
  );
}

function markdown(head, lines) {
  const rule = head.map((_, at) => (at === 0 ? "---" : "---:"));
  return [head, rule, ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}

function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
