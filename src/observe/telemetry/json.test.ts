import { expect, it } from "vitest";
import { Counter, type Gauge, Histogram } from "../metrics/series.js";
import { placesOf } from "./collector.js";
import { metricsBody } from "./json.js";
import { exportInterval } from "./metric-exporter.js";
import { otelAttributes, otelName } from "./metric-names.js";

const origin = { serviceName: "toolway", version: "0", instanceId: "test" };

it("spans and metrics go beside each other, wherever the config's address says so [metrics-agree]", () => {
  const both = (base: string, search = "") => ({
    traces: `${base}/v1/traces${search}`,
    metrics: `${base}/v1/metrics${search}`,
  });
  expect(placesOf("http://127.0.0.1:4318")).toEqual(both("http://127.0.0.1:4318"));
  expect(placesOf("http://127.0.0.1:4318/")).toEqual(both("http://127.0.0.1:4318"));
  expect(placesOf("https://c.example/?team=a")).toEqual(both("https://c.example", "?team=a"));
  expect(placesOf("https://c.example/otlp/v1/traces")).toEqual(both("https://c.example/otlp"));
  expect(placesOf("https://c.example/spans")).toEqual({ traces: "https://c.example/spans", metrics: undefined });
});

it("metrics have the names of OpenTelemetry, which a collector makes ours of again", () => {
  const names = {
    mcp_server_operation_duration_seconds: ["mcp.server.operation.duration", "s"],
    toolway_own_seconds: ["toolway.own", "s"],
    toolway_refused_total: ["toolway.refused", ""],
    toolway_bytes_total: ["toolway.bytes", "By"],
    toolway_held_limit_bytes: ["toolway.held_limit", "By"],
    toolway_in_flight: ["toolway.in_flight", ""],
    process_cpu_seconds_total: ["process.cpu", "s"],
  };
  for (const [ours, [name, unit]] of Object.entries(names)) expect(otelName(ours)).toEqual({ name, unit });
  expect(
    otelAttributes([
      ["toolway_server", "files"],
      ["gen_ai_tool_name", undefined],
      ["error_type", "-32602"],
      ["kind", "pin"],
    ]),
  ).toEqual({ "toolway.server": "files", "error.type": "-32602", kind: "pin" });
});

it("sums and histograms are cumulative, and numbers of 64 bits are texts", () => {
  const counter = new Counter("toolway_refused_total", "Refused.");
  counter.add([["rule", "role"]], 3);
  const histogram = new Histogram("toolway_own_seconds", "Ours.", [0.1, 1]);
  for (const value of [0.05, 0.1, 0.5, 7]) histogram.observe([], value);
  const gauge: Gauge = { name: "toolway_runs", help: "Runs.", values: [[[], 2]] };
  const empty: Gauge = { name: "toolway_waiting", help: "Waiting.", values: [] };
  const counted: Gauge = { name: "toolway_dropped_total", help: "Dropped.", kind: "counter", values: [[[], 5]] };
  const metrics = { counters: [counter], histograms: [histogram], gauges: [gauge, empty, counted] };
  const body = JSON.parse(metricsBody(metrics, origin, { sinceMs: 1_000, nowMs: 61_000.5 }));
  const [{ resource, scopeMetrics }] = body.resourceMetrics;
  expect(resource.attributes[0]).toEqual({ key: "service.name", value: { stringValue: "toolway" } });
  const times = { startTimeUnixNano: "1000000000", timeUnixNano: "61000500000" };
  const sum = (dataPoints: object[]) => ({ aggregationTemporality: 2, isMonotonic: true, dataPoints });
  expect(scopeMetrics[0].metrics).toEqual([
    {
      name: "toolway.refused",
      unit: "",
      description: "Refused.",
      sum: sum([{ attributes: [{ key: "rule", value: { stringValue: "role" } }], ...times, asDouble: 3 }]),
    },
    {
      name: "toolway.own",
      unit: "s",
      description: "Ours.",
      histogram: {
        aggregationTemporality: 2,
        dataPoints: [
          {
            attributes: [],
            ...times,
            count: "4",
            sum: 7.65,
            bucketCounts: ["2", "1", "1"],
            explicitBounds: [0.1, 1],
          },
        ],
      },
    },
    {
      name: "toolway.runs",
      unit: "",
      description: "Runs.",
      gauge: { dataPoints: [{ attributes: [], timeUnixNano: times.timeUnixNano, asDouble: 2 }] },
    },
    {
      name: "toolway.dropped",
      unit: "",
      description: "Dropped.",
      sum: sum([{ attributes: [], ...times, asDouble: 5 }]),
    },
  ]);
});

it("is sent as often as OTEL_METRIC_EXPORT_INTERVAL says, which no value makes endless or never [bounded]", () => {
  const times = { "250": 250, "1": 100, "99999999999": 2_147_483_647, "": 60_000, soon: 60_000, "-5": 60_000 };
  for (const [text, ms] of Object.entries(times)) expect(exportInterval(text), text).toBe(ms);
  expect(exportInterval(undefined)).toBe(60_000);
});
