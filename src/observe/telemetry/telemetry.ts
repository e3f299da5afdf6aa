// From what is configured to a tracer and whoever takes the metrics, or to none: then nothing of this is loaded but this file.

import type { Clock } from "../../runtime/clock.js";
import { decoded } from "../../runtime/words/percent.js";
import type { MetricReader } from "../metrics/metric-reader.js";
import type { Tracer } from "../traces.js";
import type { MetricExporter } from "./metric-exporter.js";
import type { OpenTelemetryApi } from "./opentelemetry.js";
import type { ApiMeterBridge } from "./opentelemetry-meter.js";
import type { OtlpStats } from "./span-exporter.js";

interface TelemetryConfig {
  readonly otlp: string;
  readonly metrics?: boolean | undefined;
  readonly sample?: number | undefined;
}

export interface TelemetryParts {
  /** The config's `telemetry`. */
  readonly config: TelemetryConfig | undefined;
  /** The embedding program's `@opentelemetry/api`; goes before `config`. */
  readonly api?: OpenTelemetryApi | undefined;
  readonly version: string;
  readonly clock: Clock;
  /** OTEL_SERVICE_NAME and OTEL_EXPORTER_OTLP_HEADERS are read from it, as every exporter does. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly log: (level: "info" | "warn", text: string) => void;
}

export interface Telemetry {
  readonly tracer: Tracer;
  /** Undefined where the spans are somebody else's. */
  stats(): OtlpStats | undefined;
  /** Metrics go the way of the spans from now on, unless the config says otherwise. It is called once at most. */
  takeMetrics(reader: MetricReader): Promise<void>;
  /** Sends the last metrics, within two seconds: when calls have ended, and servers are still known. */
  endMetrics(): Promise<void>;
  /** Sends the last spans, within two seconds. */
  close(): Promise<void>;
}

export async function openTelemetry(parts: TelemetryParts): Promise<Telemetry | undefined> {
  const { config, api, version, clock, env, log } = parts;
  if (api !== undefined) return ofProgram(api, parts);
  if (config === undefined) return undefined;
  const [{ OwnTracer }, { OtlpExporter }, { placesOf }, { randomUUID }] = await Promise.all([
    import("../traces.js"),
    import("./span-exporter.js"),
    import("./collector.js"),
    import("node:crypto"),
  ]);
  const places = placesOf(config.otlp);
  const origin = { serviceName: env["OTEL_SERVICE_NAME"] || "toolway", version, instanceId: randomUUID() };
  const headersOf = (own: string) => readHeaders(env[own] ?? env["OTEL_EXPORTER_OTLP_HEADERS"]);
  const spans = new OtlpExporter({
    url: places.traces,
    headers: headersOf("OTEL_EXPORTER_OTLP_TRACES_HEADERS"),
    origin,
    log,
  });
  const { sample, metrics } = config;
  let exporter: MetricExporter | undefined;
  let taken: MetricReader | undefined;
  return {
    tracer: new OwnTracer({ sink: spans, clock, ...(sample === undefined ? {} : { sample }) }),
    stats: () => spans.stats,
    async takeMetrics(reader) {
      if (metrics === false || places.metrics === undefined) return;
      const { MetricExporter, exportInterval } = await import("./metric-exporter.js");
      taken = reader;
      exporter = new MetricExporter({
        url: places.metrics,
        headers: headersOf("OTEL_EXPORTER_OTLP_METRICS_HEADERS"),
        origin,
        read: async () => (await reader.load())(),
        everyMs: exportInterval(env["OTEL_METRIC_EXPORT_INTERVAL"]),
        wall: () => clock.wall(),
        log,
      });
    },
    async endMetrics() {
      await exporter?.close();
      exporter = undefined;
      taken?.close();
    },
    close: () => spans.close(),
  };
}

/** Through the tracer and the meter of the program that embeds us. */
async function ofProgram(api: OpenTelemetryApi, { config, version, clock }: TelemetryParts): Promise<Telemetry> {
  const { ApiTracerBridge } = await import("./opentelemetry.js");
  let meter: ApiMeterBridge | undefined;
  let taken: MetricReader | undefined;
  return {
    tracer: new ApiTracerBridge(api, version),
    stats: () => undefined,
    async takeMetrics(reader) {
      if (api.metrics === undefined || config?.metrics === false) return;
      const { ApiMeterBridge } = await import("./opentelemetry-meter.js");
      taken = reader;
      meter = new ApiMeterBridge(api.metrics, version, clock);
      await meter.begin(reader);
    },
    async endMetrics() {
      meter?.close();
      taken?.close();
    },
    close: async () => {},
  };
}

/** `name=value,name=value`, values percent-encoded. What is no header is left out. */
function readHeaders(text: string | undefined): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const part of (text ?? "").split(",")) {
    const at = part.indexOf("=");
    const name = part.slice(0, at).trim().toLowerCase();
    if (at < 1 || !/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(name)) continue;
    const value = decoded(part.slice(at + 1).trim());
    if (/^[\x20-\x7e]*$/.test(value)) headers[name] = value;
  }
  return headers;
}
