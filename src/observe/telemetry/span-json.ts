// Finished spans as OTLP's JSON: the form of the body that a collector takes at /v1/traces. Pure.

import type { FinishedSpan } from "../traces.js";
import { nanos, type Origin, resourceOf, scopeOf } from "./json.js";

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
