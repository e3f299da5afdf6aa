// From what is configured to a tracer, or to none: then nothing of this is loaded but this file.

import type { Clock } from "../runtime/clock.js";
import type { OpenTelemetryApi } from "./opentelemetry.js";
import type { OtlpStats } from "./otlp.js";
import type { Tracer } from "./traces.js";

export interface TelemetryParts {
  /** The config's `telemetry`. */
  readonly config: { readonly otlp: string; readonly sample?: number | undefined } | undefined;
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
  /** Sends the last spans, within two seconds. */
  close(): Promise<void>;
}

export async function openTelemetry(parts: TelemetryParts): Promise<Telemetry | undefined> {
  const { config, api, version, clock, env, log } = parts;
  if (api !== undefined) {
    const { ApiTracerBridge } = await import("./opentelemetry.js");
    return { tracer: new ApiTracerBridge(api, version), stats: () => undefined, close: async () => {} };
  }
  if (config === undefined) return undefined;
  const [{ OwnTracer }, { OtlpExporter }, { randomUUID }] = await Promise.all([
    import("./traces.js"),
    import("./otlp.js"),
    import("node:crypto"),
  ]);
  const exporter = new OtlpExporter({
    url: config.otlp,
    headers: readHeaders(env["OTEL_EXPORTER_OTLP_TRACES_HEADERS"] ?? env["OTEL_EXPORTER_OTLP_HEADERS"]),
    origin: { serviceName: env["OTEL_SERVICE_NAME"] || "toolway", version, instanceId: randomUUID() },
    log,
  });
  const { sample } = config;
  return {
    tracer: new OwnTracer({ sink: exporter, clock, ...(sample === undefined ? {} : { sample }) }),
    stats: () => exporter.stats,
    close: () => exporter.close(),
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

function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    return value;
  }
}
