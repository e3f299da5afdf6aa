// The bridge to the embedding program's tracer, against an API of the same shape that records.

import { describe, expect, it } from "vitest";
import { emptyRecord } from "../call-record.js";
import type { CallInfo } from "../traces.js";
import { ApiTracerBridge, type OpenTelemetryApi } from "./opentelemetry.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const info: CallInfo = { name: "tools/call read", params: undefined };

type Context = { span?: { traceId: string; spanId: string; traceState?: { serialize(): string } } };

function recordingApi(active: Context = {}, spanTrace = TRACE) {
  const started: {
    name: string;
    kind: number;
    context: Context;
    attributes: Record<string, unknown>;
    status: number;
    ends: number;
  }[] = [];
  const api: OpenTelemetryApi = {
    context: { active: () => active },
    createTraceState: (text) => ({ serialize: () => text }),
    trace: {
      setSpanContext: (context: Context, span) => ({ ...context, span }),
      getTracer: () => ({
        startSpan(name, { kind }, context: Context) {
          const record = {
            name,
            kind,
            context,
            attributes: {} as Record<string, unknown>,
            status: 0,
            ends: 0,
          };
          started.push(record);
          const spanId = String(started.length).repeat(16);
          const traceId = context.span?.traceId ?? spanTrace;
          const traceState = context.span?.traceState;
          return {
            spanContext: () => ({ traceId, spanId, traceFlags: 1, traceState }),
            setAttributes: (more) => Object.assign(record.attributes, more),
            setStatus: ({ code }) => {
              record.status = code;
            },
            end: () => {
              record.ends++;
            },
          };
        },
      }),
    },
  };
  return { api, started };
}

describe("the program's own tracer", () => {
  it("makes a span of the call and one of each sending, whose id goes to the server", () => {
    const { api, started } = recordingApi();
    const span = new ApiTracerBridge(api, "0").begin(info);
    expect(span?.metaTraceparent).toBe(`00-${TRACE}-${"1".repeat(16)}-01`);
    span?.sent();
    expect(span?.metaTraceparent).toBe(`00-${TRACE}-${"2".repeat(16)}-01`);
    span?.received("outcome_unknown");
    span?.sent();
    expect(span?.metaTraceparent).toBe(`00-${TRACE}-${"3".repeat(16)}-01`);
    const record = { ...emptyRecord(), server: "files", method: "tools/call", outcome: "timeout" } as const;
    span?.end(record);
    span?.end(emptyRecord());
    const all = { name: "tools/call read", status: 2, ends: 1 };
    expect(started).toMatchObject([
      { ...all, kind: 1, attributes: { "toolway.server": "files", "toolway.outcome": "timeout" } },
      {
        ...all,
        kind: 2,
        attributes: { "error.type": "outcome_unknown" },
        context: { span: { spanId: "1".repeat(16) } },
      },
      { ...all, kind: 2, attributes: { "error.type": "timeout" }, context: { span: { spanId: "1".repeat(16) } } },
    ]);
  });

  it("has as its parent what the call says, else what the program is doing", () => {
    const active = { span: { traceId: "a".repeat(32), spanId: "b".repeat(16) } };
    const { api, started } = recordingApi(active);
    const tracer = new ApiTracerBridge(api, "0");
    tracer.begin(info)?.end(emptyRecord());
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    const span = tracer.begin({ ...info, params: { _meta: { traceparent, tracestate: "k=v" } } });
    expect(started.map(({ context }) => context.span?.spanId)).toEqual(["b".repeat(16), "00f067aa0ba902b7"]);
    expect(span?.metaTracestate).toBe("k=v");
  });

  it("has the sendings of a write that goes out later below the span that its text names, and no other span", () => {
    const { api, started } = recordingApi({ span: { traceId: "a".repeat(32), spanId: "b".repeat(16) } });
    const tracer = new ApiTracerBridge(api, "0");
    expect(tracer.begin({ ...info, isDelivery: true })).toBeUndefined();
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    const span = tracer.begin({ ...info, params: { _meta: { traceparent } }, isDelivery: true });
    expect(span?.traceId).toBe(TRACE);
    span?.sent();
    expect(span?.metaTraceparent).toBe(`00-${TRACE}-${"1".repeat(16)}-01`);
    span?.end({ ...emptyRecord(), server: "files", method: "tools/call", outcome: "timeout" });
    span?.end(emptyRecord());
    expect(started).toMatchObject([{ kind: 2, status: 2, ends: 1, context: { span: { spanId: "00f067aa0ba902b7" } } }]);
  });

  it("that has no SDK behind it gives no span", () => {
    const { api } = recordingApi({}, "0".repeat(32));
    expect(new ApiTracerBridge(api, "0").begin(info)).toBeUndefined();
  });
});
