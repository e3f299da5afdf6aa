// Keeps a run's figures in the repository: what `--check` compares with, and what the docs show.

import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { writeChart } from "./chart.mjs";
import { fillDoc } from "./doc.mjs";

const DOCS = { page: inDocs("performance.md"), chart: inDocs("performance.svg") };

/** More digits than these are noise, and make each record a large change. */
const DIGITS = 4;

/**
 * @param {import("../target.mjs").Results} results
 * @param {string} file such as bench/recorded.json
 * @param {{ page: string, chart: string }} docs are filled with the same figures
 */
export function record(results, file, docs = DOCS) {
  writeFileSync(file, recordText(results));
  writeFileSync(docs.page, fillDoc(readFileSync(docs.page, "utf8"), results));
  writeChart(results, docs.chart);
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
