// Spans of the tracer that the embedding program has registered. The program hands us its `@opentelemetry/api`; nothing
// of OpenTelemetry is a dependency of ours, so the parts of that API that we use are described here.

import type { CallRecord } from "../call-record.js";
import { attributesOf, sendingAttributes, spanErrorType } from "../span-facts.js";
import { type TraceParent, traceparentText } from "../trace/trace-context.js";
import { type CallInfo, parentOf, type Span, type Tracer } from "../traces.js";
import type { ApiMetrics } from "./opentelemetry-meter.js";

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
  /** Without it there are spans, and no metrics. */
  readonly metrics?: ApiMetrics;
}

interface ApiTracer {
  // biome-ignore lint/suspicious/noExplicitAny: as above
  startSpan(name: string, options: { kind: number }, context: any): ApiSpan;
}

interface ApiSpan {
  spanContext(): ApiSpanContext;
  setAttributes(attributes: Record<string, string | number>): unknown;
  setStatus(status: { code: number }): unknown;
  end(endTime?: number): void;
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
const KIND_CLIENT = 2;
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
    const around = this.#contextOf(info);
    if (info.isDelivery === true) return this.#delivery(info, around);
    const span = this.#tracer.startSpan(info.name, { kind: KIND_SERVER }, around);
    const context = span.spanContext();
    // An API without an SDK behind it gives spans that are none.
    return /^0*$/.test(context.traceId)
      ? undefined
      : new BridgedSpan(span, context, () => this.#sending(info, around, context));
  }

  #delivery(info: CallInfo, around: unknown): Span | undefined {
    const parent = parentOf(info);
    if (parent === undefined) return undefined;
    const context = this.#spanContext(parent);
    return new BridgedSpan(undefined, context, () => this.#tracer.startSpan(info.name, { kind: KIND_CLIENT }, around));
  }

  #sending({ name }: CallInfo, around: unknown, context: ApiSpanContext): ApiSpan {
    return this.#tracer.startSpan(name, { kind: KIND_CLIENT }, this.#api.trace.setSpanContext(around, context));
  }

  /** What the call says of itself goes before what the program is doing just now. */
  #contextOf(info: CallInfo): unknown {
    const parent = parentOf(info);
    const active = this.#api.context.active();
    return parent === undefined ? active : this.#api.trace.setSpanContext(active, this.#spanContext(parent));
  }

  #spanContext({ traceId, spanId, sampled, tracestate }: TraceParent): ApiSpanContext {
    const traceState = tracestate === undefined ? undefined : this.#api.createTraceState?.(tracestate);
    return {
      traceId,
      spanId,
      traceFlags: sampled ? FLAG_SAMPLED : 0,
      isRemote: true,
      ...(traceState === undefined ? {} : { traceState }),
    };
  }
}

/** So many sendings of one call are told, as by a tracer of our own. */
const MAX_SENDINGS = 16;

class BridgedSpan implements Span {
  readonly traceId: string;
  readonly metaTracestate: string | undefined;
  readonly #context: ApiSpanContext;
  readonly #begin: () => ApiSpan;
  /** Undefined of a delivery: the span of its call has ended. */
  readonly #span: ApiSpan | undefined;
  #isOver = false;
  #sending: ApiSpan | undefined;
  /** Sendings that have ended, with why: they are told when the call is over, and what it was is known. */
  readonly #over: { readonly span: ApiSpan; readonly error: string | undefined; readonly at: number }[] = [];

  constructor(span: ApiSpan | undefined, context: ApiSpanContext, begin: () => ApiSpan) {
    this.#span = span;
    this.#context = context;
    this.#begin = begin;
    this.traceId = context.traceId;
    const state = (context.traceState as ApiTraceState | undefined)?.serialize();
    this.metaTracestate = state === "" ? undefined : state;
  }

  get metaTraceparent(): string {
    const { traceId, spanId, traceFlags } = this.#sending?.spanContext() ?? this.#context;
    return traceparentText(traceId, spanId, (traceFlags & FLAG_SAMPLED) !== 0);
  }

  sent(): void {
    this.received();
    if (!this.#isOver && this.#over.length < MAX_SENDINGS) this.#sending = this.#begin();
  }

  received(error?: string): void {
    if (this.#sending === undefined) return;
    this.#over.push({ span: this.#sending, error, at: Date.now() });
    this.#sending = undefined;
  }

  end(record: CallRecord): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.received();
    const own = spanErrorType(record);
    for (const [nth, { span: sending, error, at }] of this.#over.entries()) {
      // What came of the call came of its last sending.
      const why = error ?? (nth === this.#over.length - 1 ? own : undefined);
      sending.setAttributes(sendingAttributes(record, why));
      if (why !== undefined) sending.setStatus({ code: STATUS_ERROR });
      sending.end(at);
    }
    this.#span?.setAttributes(attributesOf(record));
    if (own !== undefined) this.#span?.setStatus({ code: STATUS_ERROR });
    this.#span?.end();
  }
}
