// The chart of docs/performance.md: CPU of a small call, a bar for each target. An SVG by hand; its text is text.

import { writeFileSync } from "node:fs";
import { figure, sideOf, times } from "./figures.mjs";

const WIDTH = 760;
const LEFT = 170;
const RIGHT = 140;
const BAR = 18;
const GAP = 8;
const PANEL_HEAD = 44;
const PANEL_FOOT = 34;
const TOP = 16;
const BOTTOM = 30;

/** One panel for each way of a call; the busier case is the one where CPU counts. */
const PANELS = [
  { title: "Small call, HTTP→HTTP, 32 in flight", upstream: "http" },
  { title: "Small call, HTTP→stdio, 32 in flight", upstream: "stdio" },
];
const IN_FLIGHT = 32;

const STYLE = `
.bg{fill:#fff;stroke:#d0d7de}.t{fill:#1f2328;font:13px system-ui,sans-serif}.h{font-weight:600}
.q{fill:#59636e;font-size:11px}.g{stroke:#d0d7de}.limit{fill:#9aa4af}.toolway{fill:#0a7d5a}.peer{fill:#c98a3b}
@media(prefers-color-scheme:dark){.bg{fill:#0d1117;stroke:#3d444d}.t{fill:#f0f6fc}.q{fill:#9198a1}.g{stroke:#3d444d}
.limit{fill:#656c76}.toolway{fill:#2fbf8f}.peer{fill:#c98a3b}}`.replaceAll("\n", "");

/** @param {import("../target.mjs").Results} results @returns {string} the SVG */
export function chart(results) {
  const panels = PANELS.map(({ title, upstream }) => ({ title, rows: barsOf(results.rows ?? [], upstream) })).filter(
    ({ rows }) => rows.length > 0,
  );
  const all = panels.flatMap(({ rows }) => rows.map(({ cpuUs }) => cpuUs));
  const scale = logScale(Math.min(...all), Math.max(...all));
  let y = TOP;
  const drawn = panels.map((panel) => {
    const piece = drawPanel(panel, y, scale);
    y += PANEL_HEAD + panel.rows.length * (BAR + GAP) + PANEL_FOOT;
    return piece;
  });
  if (panels.length === 0) {
    drawn.push(text(LEFT, y + 20, "t", "Not measured."));
    y += 40;
  }
  const height = y + BOTTOM;
  const note =
    "CPU time of the process tree, µs a call, on a logarithmic axis; shorter is better. × is against the bare limit.";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img"`,
    ` aria-label="CPU time of a small call, by target"><style>${STYLE}</style>`,
    `<rect class="bg" x=".5" y=".5" width="${WIDTH - 1}" height="${height - 1}" rx="6"/>`,
    ...drawn,
    text(16, height - 14, "t q", note),
    "</svg>\n",
  ].join("\n");
}

/** @param {import("../target.mjs").Results} results */
export function writeChart(results, file) {
  writeFileSync(file, chart(results));
}

/** What has a bar: measured, and charged to somebody. The cheapest first. */
function barsOf(rows, upstream) {
  return rows
    .filter((row) => row.workload === "small" && row.upstream === upstream && row.answers === "json")
    .filter((row) => row.era === "legacy" && row.inFlight === IN_FLIGHT && row.variant === undefined)
    .filter(({ cpuUs }) => Number.isFinite(cpuUs) && cpuUs > 0)
    .sort((a, b) => a.cpuUs - b.cpuUs);
}

/** Begins well below the shortest bar, at a round figure, so that each bar has a length. */
function logScale(least, most) {
  const from = 10 ** Math.floor(Math.log10(least / 1.5));
  const to = most * 1.1;
  const span = Math.log10(to / from);
  const x = (value) => LEFT + ((WIDTH - LEFT - RIGHT) * Math.log10(value / from)) / span;
  const ticks = [];
  for (let power = from; power <= to; power *= 10) {
    for (const step of span > 2.5 ? [1] : [1, 2, 5]) if (power * step <= to) ticks.push(power * step);
  }
  return { x, ticks };
}

function drawPanel({ title, rows }, top, { x, ticks }) {
  const begin = top + PANEL_HEAD;
  const end = begin + rows.length * (BAR + GAP);
  const grid = ticks.map((tick) => {
    const at = x(tick).toFixed(1);
    const line = `<line class="g" x1="${at}" x2="${at}" y1="${begin - 6}" y2="${end}"/>`;
    return line + text(at, end + 14, "t q", `${tick.toLocaleString("en-US")} µs`, "middle");
  });
  const bars = rows.map((row, at) => {
    const y = begin + at * (BAR + GAP);
    const width = (x(row.cpuUs) - LEFT).toFixed(1);
    const value = `${figure(row.cpuUs)} µs${Number.isFinite(row.ratio) ? ` · ${times(row.ratio)}` : ""}`;
    return [
      text(LEFT - 8, y + 13, row.group === "toolway" ? "t h" : "t", sideOf(row), "end"),
      `<rect class="${row.group}" x="${LEFT}" y="${y}" width="${width}" height="${BAR}" rx="2"/>`,
      text((x(row.cpuUs) + 6).toFixed(1), y + 13, row.group === "toolway" ? "t h" : "t", value),
    ].join("");
  });
  return [text(16, top + 18, "t h", title), ...grid, ...bars].join("\n");
}

function text(x, y, style, content, anchor) {
  const where = anchor === undefined ? "" : ` text-anchor="${anchor}"`;
  const safe = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text class="${style}" x="${x}" y="${y}"${where}>${safe}</text>`;
}
