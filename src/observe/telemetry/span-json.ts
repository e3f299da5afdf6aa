// Finished spans as OTLP's JSON: the form of the body that a collector takes at /v1/traces. Pure.

import type { FinishedSpan } from "../traces.js";
import { attributes, nanos, type Origin, resourceOf, scopeOf } from "./json.js";

/** OTLP's numbers: a span that serves a remote caller, one that asks a server, and how it ended. */
const KIND_SERVER = 2;
const KIND_CLIENT = 3;
const STATUS_UNSET = 0;
const STATUS_ERROR = 2;
/** The sampled flag, and that the parent is known to be remote (bits 8 and 9). */
const FLAG_SAMPLED = 0x001;
const FLAGS_REMOTE_PARENT = 0x300;
const FLAGS_LOCAL_PARENT = 0x100;

export function otlpBody(spans: readonly FinishedSpan[], origin: Origin): string {
  return JSON.stringify({
    resourceSpans: [
      { resource: resourceOf(origin), scopeSpans: [{ scope: scopeOf(origin), spans: spans.map(otlpSpan) }] },
    ],
  });
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
