// Spans and metrics as OTLP's JSON: the bodies that a collector takes at /v1/traces and /v1/metrics, and what both have in common.
// Pure.

import type { Metrics } from "../metrics/exposition.js";
import type { Histogram, Labels } from "../metrics/series.js";
import type { FinishedSpan } from "../traces.js";
import { otelAttributes, otelName } from "./metric-names.js";

/** Who says it: OTLP's resource and scope. */
export interface Origin {
  readonly serviceName: string;
  readonly version: string;
  /** Tells several gateways of one name apart. */
  readonly instanceId: string;
}

function resourceOf({ serviceName, version, instanceId }: Origin): object {
  return {
    attributes: attributes({
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": instanceId,
    }),
  };
}

function scopeOf({ version }: Origin): object {
  return { name: "toolway", version };
}

function attributes(values: Readonly<Record<string, string | number>>): object[] {
  return Object.entries(values).map(([key, value]) => ({
    key,
    // 64-bit integers are strings in OTLP's JSON.
    value: typeof value === "number" ? { intValue: String(value) } : { stringValue: value },
  }));
}

/** A double holds the microseconds of a date, not its nanoseconds. */
function nanos(ms: number): string {
  return `${Math.round(ms * 1000)}000`;
}

/** OTLP's numbers: a span that serves a remote caller, one that asks a server, and how it ended. */
const KIND_SERVER = 2;
const KIND_CLIENT = 3;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
/** The sampled flag, and that the parent is known to be remote (bits 8 and 9). */
const FLAG_SAMPLED = 0x001;
const FLAGS_REMOTE_PARENT = 0x300;
const FLAGS_LOCAL_PARENT = 0x100;

/** Finished spans: the body at /v1/traces. */
export function otlpBody(spans: readonly FinishedSpan[], origin: Origin): string {
  const [resource, scope] = [JSON.stringify(resourceOf(origin)), JSON.stringify(scopeOf(origin))];
  const texts = spans.map(spanText).join(",");
  return `{"resourceSpans":[{"resource":${resource},"scopeSpans":[{"scope":${scope},"spans":[${texts}]}]}]}`;
}

/** Written as text: objects for twenty attributes, made to be serialised, cost as much as the rest of a span. Ids are hex. */
function spanText(span: FinishedSpan): string {
  const { parent, kind } = span;
  const flags = FLAG_SAMPLED | (parent === undefined || kind === "client" ? FLAGS_LOCAL_PARENT : FLAGS_REMOTE_PARENT);
  let text = `{"traceId":"${span.traceId}","spanId":"${span.spanId}",`;
  if (parent !== undefined) text += `"parentSpanId":"${parent.spanId}",`;
  if (parent?.tracestate !== undefined) text += `"traceState":${JSON.stringify(parent.tracestate)},`;
  text += `"flags":${flags},"name":${JSON.stringify(span.name)},"kind":${kind === "client" ? KIND_CLIENT : KIND_SERVER},`;
  text += `"startTimeUnixNano":"${nanos(span.startMs)}","endTimeUnixNano":"${nanos(span.endMs)}","attributes":[`;
  let separator = "";
  for (const key in span.attributes) {
    const value = span.attributes[key] as string | number;
    // 64-bit integers are strings in OTLP's JSON.
    const written = typeof value === "number" ? `{"intValue":"${value}"}` : `{"stringValue":${JSON.stringify(value)}}`;
    text += `${separator}{"key":"${key}","value":${written}}`;
    separator = ",";
  }
  return `${text}],"status":{"code":${span.isFailed ? STATUS_ERROR : STATUS_UNSET}}}`;
}

/** OTLP's number for sums and histograms that count from the start: one that does not get through is made good by the next. */
const CUMULATIVE = 2;

interface MetricTimes {
  /** Since when is counted, and now; milliseconds since 1970. */
  readonly sinceMs: number;
  readonly nowMs: number;
}

/** All metrics of a gateway: the body at /v1/metrics. */
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
