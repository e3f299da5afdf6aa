// Metrics as text, for Prometheus (version 0.0.4) and as OpenMetrics (1.0.0). Pure.

import type { Counter, Gauge, Histogram, Labels } from "./series.js";

export type ExpositionFormat = "prometheus" | "openmetrics" | "json";

export interface Metrics {
  readonly counters: readonly Counter[];
  readonly histograms: readonly Histogram[];
  readonly gauges: readonly Gauge[];
}

const TOTAL = "_total";

export function exposition(metrics: Metrics, format: ExpositionFormat): string {
  if (format === "json") return JSON.stringify(metricsJson(metrics));
  const { counters, histograms, gauges } = metrics;
  const lines: string[] = [];
  for (const counter of counters) writeCounter(lines, counter, [...counter.values()], format);
  for (const histogram of histograms) writeHistogram(lines, histogram);
  for (const gauge of gauges) {
    if (gauge.kind === "counter") writeCounter(lines, gauge, gauge.values, format);
    else if (gauge.values.length > 0) {
      writeHead(lines, gauge.name, gauge.help, "gauge");
      for (const [labels, value] of gauge.values) lines.push(sample(gauge.name, labels, value));
    }
  }
  if (format === "openmetrics") lines.push("# EOF");
  return `${lines.join("\n")}\n`;
}

/** One set of labels of a metric; a histogram has its buckets, each with all that are no larger. */
interface JsonSample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value?: number;
  readonly count?: number;
  readonly sum?: number;
  readonly buckets?: readonly (readonly [le: number | null, count: number])[];
}

interface JsonMetric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly samples: readonly JsonSample[];
}

/** The same for programs that read JSON. */
function metricsJson({ counters, histograms, gauges }: Metrics): JsonMetric[] {
  const plain = ([labels, value]: readonly [Labels, number]): JsonSample => ({ labels: named(labels), value });
  return [
    ...counters.map(
      (counter): JsonMetric => ({
        name: counter.name,
        kind: "counter",
        help: counter.help,
        samples: [...counter.values()].map(plain),
      }),
    ),
    ...histograms.map((histogram): JsonMetric => {
      const { name, help, bounds } = histogram;
      const samples = [...histogram.values()].map(([labels, { counts, sum }]): JsonSample => {
        let count = 0;
        const buckets = counts.map((own, i) => {
          count += own;
          return [bounds[i] ?? null, count] as const;
        });
        return { labels: named(labels), count, sum, buckets };
      });
      return { name, kind: "histogram", help, samples };
    }),
    ...gauges.map(
      ({ name, help, kind, values }): JsonMetric => ({ name, kind: kind ?? "gauge", help, samples: values.map(plain) }),
    ),
  ].filter(({ samples }) => samples.length > 0);
}

function named(labels: Labels): Record<string, string> {
  return Object.fromEntries(labels.filter((one): one is [string, string] => one[1] !== undefined));
}

function writeCounter(
  lines: string[],
  { name, help }: { readonly name: string; readonly help: string },
  values: readonly (readonly [Labels, number])[],
  format: ExpositionFormat,
): void {
  if (values.length === 0) return;
  // In OpenMetrics the ending belongs to the sample, in the older form to the name.
  const family = format === "openmetrics" && name.endsWith(TOTAL) ? name.slice(0, -TOTAL.length) : name;
  writeHead(lines, family, help, "counter");
  for (const [labels, value] of values) lines.push(sample(name, labels, value));
}

function writeHistogram(lines: string[], histogram: Histogram): void {
  const { name, help, bounds } = histogram;
  const all = [...histogram.values()];
  if (all.length === 0) return;
  writeHead(lines, name, help, "histogram");
  for (const [labels, { counts, sum }] of all) {
    let count = 0;
    for (let i = 0; i < counts.length; i++) {
      count += counts[i] as number;
      const bound = bounds[i];
      lines.push(sample(`${name}_bucket`, [...labels, ["le", bound === undefined ? "+Inf" : String(bound)]], count));
    }
    lines.push(sample(`${name}_sum`, labels, sum), sample(`${name}_count`, labels, count));
  }
}

function writeHead(lines: string[], name: string, help: string, type: string): void {
  lines.push(`# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`, `# TYPE ${name} ${type}`);
}

function sample(name: string, labels: Labels, value: number): string {
  const pairs = labels.flatMap(([key, text]) => (text === undefined ? [] : [`${key}="${escaped(text)}"`]));
  return `${name}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${numberText(value)}`;
}

function numberText(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? "+Inf" : "-Inf";
}

function escaped(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
