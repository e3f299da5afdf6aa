// Finished spans as OTLP's JSON: the form of the body that a collector takes at /v1/traces. Pure.

import type { FinishedSpan } from "./traces.js";

/** Who says it: OTLP's resource and scope. */
export interface Origin {
  readonly serviceName: string;
  readonly version: string;
  /** Tells several gateways of one name apart. */
  readonly instanceId: string;
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

export function otlpBody(spans: readonly FinishedSpan[], { serviceName, version, instanceId }: Origin): string {
  const resource = {
    attributes: attributes({
      "service.name": serviceName,
      "service.version": version,
      "service.instance.id": instanceId,
    }),
  };
  const scope = { name: "toolway", version };
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(otlpSpan) }] }] });
}

function otlpSpan(span: FinishedSpan): object {
  const { parent } = span;
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    ...(parent === undefined ? {} : { parentSpanId: parent.spanId }),
    ...(parent?.tracestate === undefined ? {} : { traceState: parent.tracestate }),
    flags: FLAG_SAMPLED | (parent === undefined || span.kind === "client" ? FLAGS_LOCAL_PARENT : FLAGS_REMOTE_PARENT),
    name: span.name,
    kind: span.kind === "client" ? KIND_CLIENT : KIND_SERVER,
    startTimeUnixNano: nanos(span.startMs),
    endTimeUnixNano: nanos(span.endMs),
    attributes: attributes(span.attributes),
    status: { code: span.isFailed ? STATUS_ERROR : STATUS_UNSET },
  };
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
