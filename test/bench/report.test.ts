// The bench's report on made-up results: what it says, and that nothing that was not measured makes it fail.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";

interface Change {
  readonly what: string;
  readonly change: number;
  readonly tolerance: number;
}

interface Report {
  printTable(results: object): string;
  writeChart(results: object, file: string): void;
  checkAgainst(
    results: object,
    recorded: object,
  ): { worse: Change[]; better: Change[]; missing: string[]; unrecorded: string[]; useless: string[]; text: string };
  record(results: object, file: string, docs: { page: string; chart: string }): void;
  fillDoc(text: string, results: object): string;
}

// The bench is plain JavaScript; a specifier that is no literal leaves its types to the interface above.
const report: string = "../../bench/report/index.mjs";
const doc: string = "../../bench/report/doc.mjs";
const { printTable, writeChart, checkAgainst, record } = (await import(report)) as Report;
const { fillDoc } = (await import(doc)) as Pick<Report, "fillDoc">;

interface Row {
  readonly workload: string;
  readonly upstream: string;
  readonly target: string;
  readonly cpuUs: number;
}

const MACHINE = { node: "v20.20.2", cpus: "2 × A processor with a rather long name @ 2.10GHz", kernel: "6.1.0" };

function row(target: string, group: string, cpuUs: number, ratio?: number, more: object = {}): Record<string, unknown> {
  const measured =
    ratio === undefined ? {} : { against: "pass-through", ratio, ratios: [ratio, ratio * 1.01, ratio * 0.99] };
  return {
    ...{ workload: "small", upstream: "http", answers: "json", era: "legacy", inFlight: 32, target, group, cpuUs },
    ...{
      cpuRounds: [cpuUs, cpuUs, cpuUs],
      callsPerSec: 9876.5,
      p50Ms: 3.2166,
      p99Ms: 12.3456,
      calls: 900,
      verified: 900,
    },
    ...measured,
    ...more,
  };
}

function results(ratio = 0.95) {
  return {
    machine: MACHINE,
    rows: [
      row("direct", "limit", 0),
      row("pass-through", "limit", 100, 1),
      row("toolway", "toolway", 100 * ratio, ratio),
      row("sdk-v1", "peer", 1400, 14),
      row("bridge", "limit", 80, 1, { upstream: "stdio", against: "bridge" }),
      row("toolway", "toolway", 90, 1.1, { upstream: "stdio", against: "bridge" }),
      row("toolway", "toolway", 95, 1, { workload: "servers", variant: "1 server" }),
      row("toolway", "toolway", 98, 1.03, { workload: "servers", variant: "500 servers", against: "1 server" }),
    ],
    measures: [
      { measure: "start", target: "bare", group: "limit", value: 50, unit: "ms", rounds: [50] },
      { measure: "start", target: "toolway", group: "toolway", value: 90, unit: "ms", rounds: [90], ratio: 1.8 },
      { measure: "rssPerSession", target: "toolway", group: "toolway", value: 41, unit: "kB", rounds: [40, 41, 42] },
    ],
    goals: [
      {
        goal: "HTTP→HTTP small, 32 in flight: CPU against the pass-through",
        limit: 1,
        value: ratio,
        unit: "×",
        met: ratio <= 1,
      },
      { goal: "merged list", limit: 1.25, value: undefined, unit: "×", met: undefined },
    ],
  };
}

const EMPTY = { machine: MACHINE, rows: [], measures: [], goals: [] };
/** Figures as a broken round would leave them. */
const BROKEN = {
  machine: MACHINE,
  rows: [
    row("toolway", "toolway", Number.NaN, Number.NaN, {
      callsPerSec: Number.NaN,
      p50Ms: undefined,
      ratios: [Number.NaN],
    }),
    row("sdk-v2", "peer", Number.POSITIVE_INFINITY),
  ],
  measures: [{ measure: "start", target: "toolway", group: "toolway", value: Number.NaN, unit: "ms", rounds: [] }],
  goals: [{ goal: "start", limit: 2, value: Number.NaN, unit: "×", met: false }],
};

const made: string[] = [];
afterEach(() => {
  for (const dir of made.splice(0)) rmSync(dir, { recursive: true, force: true });
});

function directory(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolway-report-"));
  made.push(dir);
  return dir;
}

function chartOf(of: object): string {
  const file = join(directory(), "chart.svg");
  writeChart(of, file);
  return readFileSync(file, "utf8");
}

describe("the table", () => {
  it("has a part for each case, the goals and the measures, within 120 columns", () => {
    const text = printTable({ ...results(), notes: [`left out: sdk-v2 did not start: ${"x".repeat(300)}\nmore`] });
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(120);
    expect(text).toContain("small: HTTP→HTTP, 32 in flight, JSON answers, legacy   (ratio: CPU against pass-through");
    expect(text).toMatch(/^ {2}toolway +95\.0 +0\.95× +9,877 +3\.22 +12\.3$/m);
    expect(text).toMatch(/^ {2}toolway, 500 servers +98\.0 +1\.03×/m);
    expect(text).toMatch(/^ {2}start to listening: toolway +90\.0 +ms +1\.80×$/m);
    expect(text).toMatch(/pass-through +≤ 1\.00 × +0\.95 × +met$/m);
    expect(text).toMatch(/merged list +≤ 1\.25 × +– +not measured$/m);
    expect(text).toContain("left out: sdk-v2 did not start");
  });

  it("says that a goal is missed", () => {
    expect(printTable(results(1.2))).toMatch(/1\.20 × +missed$/m);
  });

  it("charges nobody for the direct way", () => {
    expect(printTable(results())).toMatch(/^ {2}direct +– +– /m);
  });

  it.each([
    ["nothing", EMPTY],
    ["no lists at all", {}],
    ["figures that are none", BROKEN],
  ])("can do with %s", (_, of) => {
    const text = printTable(of);
    expect(text).not.toMatch(/NaN|undefined|Infinity/);
    if (of !== BROKEN) expect(text).toContain("Nothing was measured.");
  });
});

describe("the chart", () => {
  it("has a bar with its value for each target, the cheapest first", () => {
    const svg = chartOf(results());
    expect(svg.match(/<rect class="(limit|toolway|peer)"/g)).toEqual([
      ...['<rect class="toolway"', '<rect class="limit"', '<rect class="peer"'],
      ...['<rect class="limit"', '<rect class="toolway"'],
    ]);
    expect(svg).toContain("1,400 µs · 14.0×");
    expect(svg).toContain("prefers-color-scheme:dark");
    expect(svg.length).toBeLessThan(8_000);
  });

  it("makes a longer bar for a dearer call, and keeps all of it inside", () => {
    const svg = chartOf(results());
    const bars = [...svg.matchAll(/<rect class="(?:limit|toolway|peer)" x="(\d+)" y="\d+" width="([\d.]+)"/g)];
    const widths = bars.map(([, , width]) => Number(width));
    expect(widths.slice(0, 3)).toEqual([...widths.slice(0, 3)].sort((a, b) => a - b));
    for (const width of widths) expect(width).toBeGreaterThan(0);
    expect(Math.max(...widths)).toBeLessThan(760 - 170);
  });

  it.each([
    ["nothing", EMPTY],
    ["no lists at all", {}],
    ["figures that are none", BROKEN],
  ])("can do with %s", (_, of) => {
    const svg = chartOf(of);
    expect(svg).toContain("Not measured.");
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it("escapes names", () => {
    const svg = chartOf({ rows: [row("a<b&c", "peer", 10)] });
    expect(svg).toContain("a&lt;b&amp;c");
  });
});

describe("the check", () => {
  it("finds nothing between equal runs, whatever the machine's speed", () => {
    const slower = results();
    for (const one of slower.rows) one["cpuUs"] = (one["cpuUs"] as number) * 3;
    const { worse, better, missing, text } = checkAgainst(slower, results());
    expect({ worse, better, missing }).toEqual({ worse: [], better: [], missing: [] });
    expect(text).toContain("Nothing got worse: 6 ratios compared.");
  });

  it("names what got worse, and by how much", () => {
    const { worse, text } = checkAgainst(results(1.2), results(0.95));
    expect(worse).toHaveLength(1);
    expect(worse[0]?.change).toBeCloseTo(0.263, 2);
    expect(text).toContain(
      "small: HTTP→HTTP, 32 in flight, JSON answers, legacy: 0.95× → 1.20×, 26 % worse (tolerance 10 %)",
    );
  });

  it("mentions what got better", () => {
    const { worse, better, text } = checkAgainst(results(0.5), results(0.95));
    expect(worse).toEqual([]);
    expect(better).toHaveLength(1);
    expect(text).toContain("47 % better");
  });

  it("lets a restless record be worse by its own spread, up to a bound", () => {
    const restless = (rounds: number[]) => ({ rows: [row("toolway", "toolway", 100, 1, { ratios: rounds })] });
    const now = { rows: [row("toolway", "toolway", 130, 1.3)] };
    expect(checkAgainst(now, restless([1, 1, 1, 1, 1])).worse).toHaveLength(1);
    expect(checkAgainst(now, restless([0.8, 0.9, 1, 1.1, 1.2, 1.2, 0.8])).worse).toEqual([]);
    const wild = restless([0.1, 3, 0.2, 5, 0.1, 1, 9]);
    expect(checkAgainst({ rows: [row("toolway", "toolway", 1, 1.6)] }, wild).worse).toHaveLength(1);
  });

  it("does not let one disturbed round of the record hide anything", () => {
    const recorded = { rows: [row("toolway", "toolway", 100, 1, { ratios: [1, 1.01, 0.99, 1, 7, 1, 1.01] })] };
    expect(checkAgainst({ rows: [row("toolway", "toolway", 1, 1.15)] }, recorded).worse).toHaveLength(1);
  });

  it.each([0, -12, Number.NaN])("does not take %s for a figure that is as good as before", (value) => {
    const { worse, useless, text } = checkAgainst(results(value), results(0.95));
    expect(worse).toEqual([]);
    expect(useless).toEqual(["small: HTTP→HTTP, 32 in flight, JSON answers, legacy"]);
    expect(text).toContain("No figure, 0 or less; measure again:");
    expect(text).not.toContain("Nothing got worse");
  });

  it("does not look at the peers and the limits", () => {
    const now = results();
    now.rows[3] = row("sdk-v1", "peer", 9000, 90);
    expect(checkAgainst(now, results()).worse).toEqual([]);
    now.rows.splice(3, 1);
    expect(checkAgainst(now, results()).missing).toEqual([]);
  });

  it("compares memory by its value, times by their ratio alone", () => {
    const now = results();
    now.measures[2] = { ...now.measures[2], value: 80 } as never;
    now.measures[1] = { ...now.measures[1], value: 900 } as never;
    const { worse } = checkAgainst(now, results());
    expect(worse.map(({ what }) => what)).toEqual(["RSS for each open session"]);
  });

  it("names what is recorded and was not measured, and the reverse", () => {
    const { rows, ...rest } = results();
    const { missing, text } = checkAgainst({ ...rest, rows: rows.slice(0, 4) }, results());
    expect(missing).toHaveLength(3);
    expect(text).toContain("Recorded, but not measured now:\n  small: HTTP→stdio, 32 in flight, legacy\n");
    expect(checkAgainst(results(), { ...rest, rows: [] }).unrecorded).toHaveLength(4);
  });

  it.each([
    ["nothing", EMPTY],
    ["figures that are none", BROKEN],
  ])("can do with %s on either side", (_, of) => {
    expect(checkAgainst(of, of).text).toContain("Nothing could be compared");
    expect(checkAgainst(of, results()).missing).toHaveLength(6);
    expect(checkAgainst(results(), of).worse).toEqual([]);
  });
});

describe("the record", () => {
  const page = "# Speed\n\n<!-- bench:begin -->\nold\n<!-- bench:end -->\n\nThe end.\n";

  it("can be checked against, and fills the docs", () => {
    const dir = directory();
    const docs = { page: join(dir, "page.md"), chart: join(dir, "chart.svg") };
    writeFileSync(docs.page, page);
    record(results(), join(dir, "recorded.json"), docs);
    const recorded = JSON.parse(readFileSync(join(dir, "recorded.json"), "utf8")) as object;
    expect(checkAgainst(results(1.2), recorded).worse).toHaveLength(1);
    expect(checkAgainst(results(), recorded).text).toContain("6 ratios compared");
    const filled = readFileSync(docs.page, "utf8");
    expect(filled).not.toContain("old");
    expect(filled).toContain("| **toolway** | 95.0 | 0.95× | 9,877 | 3.22 | 12.3 |");
    expect(filled).toContain("| merged list | 1.25 × | – | not measured |");
    expect(filled.endsWith("<!-- bench:end -->\n\nThe end.\n")).toBe(true);
    expect(readFileSync(docs.chart, "utf8")).toContain("<svg");
  });

  it("keeps what did not run, and takes what did by whole cases", () => {
    const dir = directory();
    const file = join(dir, "recorded.json");
    const docs = { page: join(dir, "page.md"), chart: join(dir, "chart.svg") };
    writeFileSync(docs.page, page);
    record(results(), file, docs);
    record({ ...EMPTY, rows: [row("pass-through", "limit", 50, 1), row("toolway", "toolway", 40, 0.8)] }, file, docs);
    const { rows, measures } = JSON.parse(readFileSync(file, "utf8")) as { rows: Row[]; measures: unknown[] };
    const http = rows.filter(({ workload, upstream }) => workload === "small" && upstream === "http");
    // A run without peers leaves those that are recorded.
    expect(http.map(({ target, cpuUs }) => [target, cpuUs])).toEqual([
      ["pass-through", 50],
      ["toolway", 40],
      ["sdk-v1", 1400],
    ]);
    expect(rows).toHaveLength(7);
    expect(measures).toHaveLength(3);
  });

  it("filled twice is the same", () => {
    const once = fillDoc(page, results());
    expect(fillDoc(once, results())).toBe(once);
  });

  it.each([
    ["nothing", EMPTY],
    ["figures that are none", BROKEN],
  ])("can do with %s", (_, of) => {
    expect(fillDoc(page, of)).not.toMatch(/NaN|undefined|Infinity|old/);
  });

  it("does not touch a page without marks", () => {
    expect(() => fillDoc("# Speed\n", results())).toThrow(/bench:begin/);
  });
});
