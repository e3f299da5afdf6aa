// Puts a span's context into the `_meta` of the request that goes to the server. Edits of text only: everything else
// in the request stays as the agent wrote it.

import type { TracePlace } from "../../contracts/service.js";
import { isObject } from "../../protocol/jsonrpc.js";
import { locate, type RequestMessage, type Scans } from "../../protocol/message.js";
import { type Edit, insertFirst, type MemberTexts } from "../../protocol/scan.js";

const PARAMS = ["params"];
const META = ["params", "_meta"];
const TRACEPARENT = ["params", "_meta", "traceparent"];
const TRACESTATE = ["params", "_meta", "tracestate"];

/**
 * Throws a Fault `invalid` where a member on the way stands there twice. `scans` as in locate(). An edit without
 * length is an insertion.
 */
export function traceEdits(message: RequestMessage, span: TracePlace, scans: Scans = []): Edit[] {
  const traceparent = JSON.stringify(span.metaTraceparent);
  const state = span.metaTracestate;
  const params = locate(message, PARAMS);
  if (params === undefined) {
    const end = message.text.lastIndexOf("}");
    return [{ start: end, end, text: `,"params":{"_meta":{${fresh(traceparent, state)}}}` }];
  }
  const meta = locate(message, META, scans);
  if (meta === undefined) return [insertFirst(message.text, params.start, `"_meta":{${fresh(traceparent, state)}}`)];
  const value = message.params?.["_meta"];
  // Nothing that could be kept.
  if (!isObject(value)) return [{ start: meta.start, end: meta.end, text: `{${fresh(traceparent, state)}}` }];
  const edits: Edit[] = [];
  const added: string[] = [];
  const parentAt = locate(message, TRACEPARENT, scans);
  if (parentAt === undefined) added.push(`"traceparent":${traceparent}`);
  else edits.push({ start: parentAt.start, end: parentAt.end, text: traceparent });
  const stateAt = locate(message, TRACESTATE, scans);
  if (stateAt === undefined) {
    if (state !== undefined) added.push(`"tracestate":${JSON.stringify(state)}`);
  } else if (value["tracestate"] !== (state ?? "")) {
    // It is of a parent that could not be read: an empty one says nothing, and is allowed.
    edits.push({ start: stateAt.start, end: stateAt.end, text: JSON.stringify(state ?? "") });
  }
  if (added.length > 0) edits.push(insertFirst(message.text, meta.start, added.join(",")));
  return edits;
}

/** The same as members of `_meta`, for who changes more in it. */
export function traceMembers({ metaTraceparent, metaTracestate }: TracePlace): MemberTexts {
  return [
    ["traceparent", JSON.stringify(metaTraceparent)],
    ["tracestate", metaTracestate === undefined ? undefined : JSON.stringify(metaTracestate)],
  ];
}

function fresh(traceparent: string, state: string | undefined): string {
  return `"traceparent":${traceparent}${state === undefined ? "" : `,"tracestate":${JSON.stringify(state)}`}`;
}
