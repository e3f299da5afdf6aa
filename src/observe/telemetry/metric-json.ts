// All metrics of a gateway as OTLP's JSON: the form of the body that a collector takes at /v1/metrics. Sums and histograms
// are cumulative, so that one that does not get through is made good by the next. Pure.

import type { Metrics } from "../metrics/exposition.js";
import type { Histogram, Labels } from "../metrics/series.js";
import { attributes, nanos, type Origin, resourceOf, scopeOf } from "./json.js";
import { otelAttributes, otelName } from "./metric-names.js";

const CUMULATIVE = 2;

export interface MetricTimes {
  /** Since when is counted, and now; milliseconds since 1970. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

export function metricsBody(metrics: Metrics, origin: Origin, times: MetricTimes): string {
  const timeUnixNano = nanos(times.nowMs);
  const startTimeUnixNano = nanos(times.sinceMs);
  const { counters, histograms, gauges } = metrics;
  const named = (name: string, description: string, data: object) => ({ ...otelName(name), description, ...data });
  const numbers = (values: Iterable<readonly [Labels, number]>, isSum: boolean) =>
    [...values].map(([labels, value]) => ({
      attributes: attributes(otelAttributes(labels)),
      ...(isSum ? { startTimeUnixNano } : {}),
      timeUnixNano,
      asDouble: Number.isFinite(value) ? value : 0,
    }));
  const sum = (values: Iterable<readonly [Labels, number]>) => {
    const dataPoints = numbers(values, true);
    return { sum: { aggregationTemporality: CUMULATIVE, isMonotonic: true, dataPoints } };
  };
  const histogram = ({ bounds, ...one }: Pick<Histogram, "bounds"> & { all: ReturnType<Histogram["values"]> }) => ({
    histogram: {
      aggregationTemporality: CUMULATIVE,
      dataPoints: [...one.all].map(([labels, { counts, sum: total }]) => ({
        attributes: attributes(otelAttributes(labels)),
        startTimeUnixNano,
        timeUnixNano,
        // 64-bit integers are strings.
        count: String(counts.reduce((all, count) => all + count, 0)),
        sum: total,
        bucketCounts: counts.map(String),
        explicitBounds: bounds,
      })),
    },
  });
  const all = [
    ...counters.map((one) => named(one.name, one.help, sum(one.values()))),
    ...histograms.map((one) => named(one.name, one.help, histogram({ bounds: one.bounds, all: one.values() }))),
    ...gauges.map(({ name, help, kind, values }) =>
      named(name, help, kind === "counter" ? sum(values) : { gauge: { dataPoints: numbers(values, false) } }),
    ),
  ];
  return JSON.stringify({
    resourceMetrics: [
      { resource: resourceOf(origin), scopeMetrics: [{ scope: scopeOf(origin), metrics: all.filter(hasPoints) }] },
    ],
  });
}

function hasPoints(metric: object): boolean {
  const { sum, gauge, histogram } = metric as Record<string, { readonly dataPoints: readonly unknown[] } | undefined>;
  return ((sum ?? gauge ?? histogram)?.dataPoints.length ?? 0) > 0;
}
