// Spans of the tracer that the embedding program has registered. The program hands us its `@opentelemetry/api`; nothing
// of OpenTelemetry is a dependency of ours, so the parts of that API that we use are described here.

import type { CallRecord } from "./call-record.js";
import { traceparentText } from "./trace-context.js";
import { attributesOf, type CallInfo, isFailure, parentOf, SPAN_NAME, type Span, type Tracer } from "./traces.js";

/** `import * as api from "@opentelemetry/api"` fits. */
export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string, version?: string): ApiTracer;
    // biome-ignore lint/suspicious/noExplicitAny: the API's own Context, which we only pass on
    setSpanContext(context: any, spanContext: ApiSpanContext): any;
  };
  // biome-ignore lint/suspicious/noExplicitAny: as above
  readonly context: { active(): any };
  createTraceState?(text: string): ApiTraceState;
}

interface ApiTracer {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  startSpan(name: string, options: { kind: number; attributes: Record<string, string> }, context: any): ApiSpan;
}

interface ApiSpan {
  spanContext(): ApiSpanContext;
  setAttributes(attributes: Record<string, string | number>): unknown;
  setStatus(status: { code: number }): unknown;
  end(): void;
}

interface ApiSpanContext {
  traceId: string;
  spanId: string;
  traceFlags: number;
  isRemote?: boolean;
  // biome-ignore lint/suspicious/noExplicitAny: the API's own TraceState, which has more members than we need
  traceState?: any;
}

interface ApiTraceState {
  serialize(): string;
}

/** The API's numbers; they are not those of OTLP. */
const KIND_SERVER = 1;
const STATUS_ERROR = 2;
const FLAG_SAMPLED = 1;

/** Sampling is the program's own business: its SDK decides. */
export class ApiTracerBridge implements Tracer {
  readonly #api: OpenTelemetryApi;
  readonly #tracer: ApiTracer;

  constructor(api: OpenTelemetryApi, version: string) {
    this.#api = api;
    this.#tracer = api.trace.getTracer("toolway", version);
  }

  begin(info: CallInfo): Span | undefined {
    const { method, server, tool } = info;
    const attributes = {
      "mcp.method.name": method,
      "toolway.server": server,
      ...(tool === undefined ? {} : { "toolway.tool": tool }),
    };
    const span = this.#tracer.startSpan(SPAN_NAME, { kind: KIND_SERVER, attributes }, this.#contextOf(info));
    const context = span.spanContext();
    // An API without an SDK behind it gives spans that are none.
    return /^0*$/.test(context.traceId) ? undefined : new BridgedSpan(span, context);
  }

  /** What the call says of itself goes before what the program is doing just now. */
  #contextOf(info: CallInfo): unknown {
    const parent = parentOf(info);
    const active = this.#api.context.active();
    if (parent === undefined) return active;
    const { traceId, spanId, sampled, tracestate } = parent;
    const traceState = tracestate === undefined ? undefined : this.#api.createTraceState?.(tracestate);
    return this.#api.trace.setSpanContext(active, {
      traceId,
      spanId,
      traceFlags: sampled ? FLAG_SAMPLED : 0,
      isRemote: true,
      ...(traceState === undefined ? {} : { traceState }),
    });
  }
}

class BridgedSpan implements Span {
  readonly traceId: string;
  readonly metaTraceparent: string;
  readonly metaTracestate: string | undefined;
  #span: ApiSpan | undefined;

  constructor(span: ApiSpan, { traceId, spanId, traceFlags, traceState }: ApiSpanContext) {
    this.#span = span;
    this.traceId = traceId;
    this.metaTraceparent = traceparentText(traceId, spanId, (traceFlags & FLAG_SAMPLED) !== 0);
    const state = (traceState as ApiTraceState | undefined)?.serialize();
    this.metaTracestate = state === "" ? undefined : state;
  }

  end(record: CallRecord): void {
    const span = this.#span;
    if (span === undefined) return;
    this.#span = undefined;
    span.setAttributes(attributesOf(record));
    if (isFailure(record.outcome)) span.setStatus({ code: STATUS_ERROR });
    span.end();
  }
}
