// Every call as a span `toolway.call`: when it began and ended, where it went, what came of it. Holds no secrets: no
// arguments, results, messages or names of principals. Where finished spans go is a SpanSink's business.

import type { TraceCarrier, TracePlace } from "../contracts/service.js";
import type { FaultCode } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { Clock } from "../runtime/clock.js";
import type { CallRecord } from "./call-record.js";
import { readTraceParent, type TraceParent, traceparentText } from "./trace-context.js";
import { TraceIds } from "./trace-ids.js";

export const SPAN_NAME = "toolway.call";

/** `rpc-error`: the server answered with an error; `tool-error`: with a result that says `isError`. */
export type Outcome = "ok" | "tool-error" | "rpc-error" | FaultCode | "internal";

export type CacheUse = "hit" | "miss" | "coalesced" | "off";

/** What is known of a call when it begins. */
export interface CallInfo {
  readonly method: string;
  readonly server: string;
  /** The server's own name of the tool; undefined for what is no tool. */
  readonly tool: string | undefined;
  /** The params of the request, with `_meta` in them. */
  readonly params: JsonObject | undefined;
  /** The headers of the HTTP request that brought it: they are used where `_meta` has no `traceparent`. */
  readonly headers?: TraceCarrier | undefined;
}

/** A span that has ended. */
export interface FinishedSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: TraceParent | undefined;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly outcome: Outcome;
}

/** A span under way. */
export interface Span extends TracePlace {
  readonly traceId: string;
  /** The record is used again when this returns. The first end counts. */
  end(record: CallRecord): void;
}

/** Takes finished spans. */
export interface SpanSink {
  end(span: FinishedSpan): void;
}

/** Makes spans: our own, or those of the program that embeds us. */
export interface Tracer {
  /** Undefined where this call is not traced, and its `_meta` goes on as it came. */
  begin(info: CallInfo): Span | undefined;
}

export interface OwnTracerOptions {
  readonly sink: SpanSink;
  readonly clock: Clock;
  /** The share of calls without a parent that is traced, from 0 to 1. A parent decides for its calls. */
  readonly sample?: number;
  /** In [0, 1), as Math.random. */
  readonly random?: () => number;
}

export class OwnTracer implements Tracer {
  readonly #sink: SpanSink;
  readonly #clock: Clock;
  readonly #sample: number;
  readonly #random: () => number;
  readonly #ids = new TraceIds();

  constructor({ sink, clock, sample = 1, random = Math.random }: OwnTracerOptions) {
    this.#sink = sink;
    this.#clock = clock;
    this.#sample = sample;
    this.#random = random;
  }

  begin(info: CallInfo): Span | undefined {
    const parent = parentOf(info);
    if (parent === undefined ? this.#random() >= this.#sample : !parent.sampled) return undefined;
    const traceId = parent?.traceId ?? this.#ids.traceId();
    return new OwnSpan(traceId, this.#ids.spanId(), parent, this.#clock, this.#sink);
  }
}

/** The request's own word goes before its carrier's: one HTTP request may bring many. */
export function parentOf({ params, headers }: CallInfo): TraceParent | undefined {
  const meta = params?.["_meta"];
  if (isObject(meta) && meta["traceparent"] !== undefined) return readTraceParent(meta);
  return headers === undefined ? undefined : readTraceParent(headers);
}

/** What a span says of its call when it ends. Names of our own have a prefix; the rest are OpenTelemetry's for MCP. */
export function attributesOf(record: CallRecord): Record<string, string | number> {
  const { method, server, tool, principal, agentEra, era, cache, attempt, outcome } = record;
  return {
    "mcp.method.name": method,
    ...(server === undefined ? {} : { "toolway.server": server }),
    ...(tool === undefined ? {} : { "toolway.tool": tool, "gen_ai.tool.name": tool }),
    "toolway.era": era ?? "unknown",
    "toolway.agent.era": agentEra,
    // Its id stays out: it may be a person's.
    "toolway.role": principal.role,
    "toolway.cache": cache ?? "off",
    "toolway.attempt": attempt,
    "toolway.outcome": outcome,
    ...(isFailure(outcome) ? { "error.type": outcome } : {}),
  };
}

/** Taking a call back is no failure of anything. */
export function isFailure(outcome: Outcome): boolean {
  return outcome !== "ok" && outcome !== "cancelled";
}

class OwnSpan implements Span {
  readonly traceId: string;
  readonly #spanId: string;
  readonly #parent: TraceParent | undefined;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #startWallMs: number;
  #sink: SpanSink | undefined;

  constructor(traceId: string, spanId: string, parent: TraceParent | undefined, clock: Clock, sink: SpanSink) {
    this.traceId = traceId;
    this.#spanId = spanId;
    this.#parent = parent;
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#startWallMs = clock.wall();
    this.#sink = sink;
  }

  get metaTraceparent(): string {
    return traceparentText(this.traceId, this.#spanId, true);
  }

  get metaTracestate(): string | undefined {
    return this.#parent?.tracestate;
  }

  end(record: CallRecord): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    this.#sink = undefined;
    sink.end({
      traceId: this.traceId,
      spanId: this.#spanId,
      parent: this.#parent,
      startMs: this.#startWallMs,
      // The wall clock may jump while a call is under way; what it took must not.
      endMs: this.#startWallMs + this.#clock.now() - this.#startMs,
      attributes: attributesOf(record),
      outcome: record.outcome,
    });
  }
}
