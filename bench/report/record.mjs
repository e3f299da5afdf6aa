// Keeps a run's figures in the repository: what `--check` compares with, and what the docs show.

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { majorOf } from "../../scripts/node-versions.mjs";
import { goalsOf } from "../goals.mjs";
import { fillCapacity } from "./capacity.mjs";
import { writeChart } from "./chart.mjs";
import { fillDoc, PAGE_MAJOR } from "./doc.mjs";

const DOCS = { page: inDocs("performance.md"), chart: inDocs("performance.svg"), capacity: inDocs("scale.md") };

/** More digits than these are noise, and make each record a large change. */
const DIGITS = 4;

/**
 * What ran replaces what was recorded of it; what did not run stays.
 * @param {import("../target.mjs").Results} run
 * @param {string} file such as bench/recorded/node20.json
 * @param {{ page: string, chart: string, capacity?: string }} docs are filled with the same figures
 */
export function record(run, file, docs = DOCS) {
  const results = existsSync(file) ? merged(JSON.parse(readFileSync(file, "utf8")), run) : run;
  const text = recordText(results);
  writeFileSync(file, text);
  // From what was written, so that a test can compare the two to the digit.
  const kept = JSON.parse(text);
  writeFileSync(docs.page, fillDoc(readFileSync(docs.page, "utf8"), kept));
  if (majorOf(kept.machine?.node) === PAGE_MAJOR) writeChart(kept, docs.chart);
  if (docs.capacity !== undefined)
    writeFileSync(docs.capacity, fillCapacity(readFileSync(docs.capacity, "utf8"), kept));
}

/** By whole cases; but a run without peers leaves those of before, each with its ratio to the limit of its own rounds. */
export function merged(before, run) {
  const caseOf = ({ workload, upstream, group }) => `${workload} ${upstream} ${group === "peer" ? "peers" : ""}`;
  const ran = new Set(run.rows.map(caseOf));
  const measured = new Set(run.measures.map(({ measure }) => measure));
  const kept = before.rows.filter((row) => !ran.has(caseOf(row)));
  const isPeer = ({ group }) => group === "peer";
  const rows = [...kept.filter((row) => !isPeer(row)), ...run.rows, ...kept.filter(isPeer)];
  const measures = [...before.measures.filter(({ measure }) => !measured.has(measure)), ...run.measures];
  return { ...run, rows, measures, goals: goalsOf({ rows, measures }) };
}

/** A line for each row, so that a change of a record can be read. */
export function recordText({ machine = {}, rows = [], measures = [], goals = [] }) {
  const short = (_key, value) => (typeof value === "number" ? Number(value.toPrecision(DIGITS)) : value);
  const list = (items) =>
    items.length === 0 ? "[]" : `[\n${items.map((one) => JSON.stringify(one, short)).join(",\n")}\n]`;
  const parts = Object.entries({ rows, measures, goals }).map(([key, items]) => `"${key}": ${list(items)}`);
  return `{\n"machine": ${JSON.stringify(machine)},\n${parts.join(",\n")}\n}\n`;
}

function inDocs(name) {
  return fileURLToPath(new URL(`../../docs/${name}`, import.meta.url));
}
