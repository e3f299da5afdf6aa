// Every call as spans: one for what an agent asked, and below it one for each sending to a server. What they are called
// and what they say is span-facts.ts; where finished spans go is a SpanSink's business.

import type { TraceCarrier, TracePlace } from "../contracts/service.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import type { Clock } from "../runtime/clock.js";
import type { CallRecord } from "./call-record.js";
import { attributesOf, type SpanAttributes, sendingAttributes, spanErrorType } from "./span-facts.js";
import { readTraceParent, TraceIds, type TraceParent, traceparentText } from "./trace/trace-context.js";

export type CacheUse = "hit" | "miss" | "coalesced" | "off";

/** What is known of a call when it begins. */
export interface CallInfo {
  /** What its spans are called. */
  readonly name: string;
  /** The params of the request, with `_meta` in them. */
  readonly params: JsonObject | undefined;
  /** The headers of the HTTP request that brought it: they are used where `_meta` has no `traceparent`. */
  readonly headers?: TraceCarrier | undefined;
  /**
   * It is a kept write that goes out without its agent: its sendings are below the span that its params name, which has
   * ended, and there is no other. Not traced where they name none.
   */
  readonly isDelivery?: boolean | undefined;
}

/** A span that has ended. */
export interface FinishedSpan {
  readonly name: string;
  /** `client`: it is a sending to a server, and its parent is ours. */
  readonly kind: "server" | "client";
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: TraceParent | undefined;
  /** Milliseconds since 1970, with fractions. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<SpanAttributes>;
  readonly isFailed: boolean;
}

/** A span under way. */
export interface Span extends TracePlace {
  readonly traceId: string;
  /** It is sent to its server: from now on the place in the trace is that of this sending. */
  sent(): void;
  /** The sending has ended; `error` is why the call goes on without an answer to it. */
  received(error?: string): void;
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
    const { name, isDelivery = false } = info;
    const isTraced = parent === undefined ? !isDelivery && this.#random() < this.#sample : parent.sampled;
    if (!isTraced) return undefined;
    const traceId = parent?.traceId ?? this.#ids.traceId();
    return new OwnSpan(name, traceId, parent, this.#ids, this.#clock, this.#sink, isDelivery);
  }
}

/** The request's own word goes before its carrier's: one HTTP request may bring many. */
export function parentOf({ params, headers }: CallInfo): TraceParent | undefined {
  const meta = params?.["_meta"];
  if (isObject(meta) && meta["traceparent"] !== undefined) return readTraceParent(meta);
  return headers === undefined ? undefined : readTraceParent(headers);
}

/** So many sendings of one call are told: a dialogue has two or three, and ten rounds are the most. */
const MAX_SENDINGS = 16;

interface Sending {
  readonly spanId: string;
  readonly startMs: number;
  /** Undefined while it is under way. */
  endMs: number | undefined;
  error: string | undefined;
}

class OwnSpan implements Span {
  readonly traceId: string;
  readonly #name: string;
  readonly #spanId: string;
  readonly #parent: TraceParent | undefined;
  readonly #ids: TraceIds;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #startWallMs: number;
  readonly #isDelivery: boolean;
  #sink: SpanSink | undefined;
  #sending: Sending | undefined;
  /** Those before; most calls have none. */
  #before: Sending[] | undefined;

  constructor(
    name: string,
    traceId: string,
    parent: TraceParent | undefined,
    ids: TraceIds,
    clock: Clock,
    sink: SpanSink,
    isDelivery: boolean,
  ) {
    this.#name = name;
    this.traceId = traceId;
    this.#isDelivery = isDelivery;
    // Of a delivery it is the one that its call had, and was told with that.
    this.#spanId = (isDelivery ? parent?.spanId : undefined) ?? ids.spanId();
    this.#parent = parent;
    this.#ids = ids;
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#startWallMs = clock.wall();
    this.#sink = sink;
  }

  get metaTraceparent(): string {
    return traceparentText(this.traceId, this.#sending?.spanId ?? this.#spanId, true);
  }

  get metaTracestate(): string | undefined {
    return this.#parent?.tracestate;
  }

  sent(): void {
    if (this.#sending !== undefined) {
      this.received();
      this.#before ??= [];
      if (this.#before.length < MAX_SENDINGS) this.#before.push(this.#sending);
    }
    this.#sending = { spanId: this.#ids.spanId(), startMs: this.#clock.now(), endMs: undefined, error: undefined };
  }

  received(error?: string): void {
    const sending = this.#sending;
    if (sending === undefined || sending.endMs !== undefined) return;
    sending.endMs = this.#clock.now();
    sending.error = error;
  }

  end(record: CallRecord): void {
    const sink = this.#sink;
    if (sink === undefined) return;
    this.#sink = undefined;
    const error = spanErrorType(record);
    if (this.#sending !== undefined) {
      this.received();
      // What came of the call came of its last sending.
      this.#sending.error ??= error;
      for (const one of this.#before ?? []) this.#endSending(one, record, sink);
      this.#endSending(this.#sending, record, sink);
    }
    if (this.#isDelivery) return;
    sink.end({
      name: this.#name,
      kind: "server",
      traceId: this.traceId,
      spanId: this.#spanId,
      parent: this.#parent,
      startMs: this.#startWallMs,
      endMs: this.#wallOf(this.#clock.now()),
      attributes: attributesOf(record),
      isFailed: error !== undefined,
    });
  }

  #endSending({ spanId, startMs, endMs = startMs, error }: Sending, record: CallRecord, sink: SpanSink): void {
    sink.end({
      name: this.#name,
      kind: "client",
      traceId: this.traceId,
      spanId,
      parent: { traceId: this.traceId, spanId: this.#spanId, sampled: true, tracestate: this.#parent?.tracestate },
      startMs: this.#wallOf(startMs),
      endMs: this.#wallOf(endMs),
      attributes: sendingAttributes(record, error),
      isFailed: error !== undefined,
    });
  }

  /** The wall clock may jump while a call is under way; what it took must not. */
  #wallOf(nowMs: number): number {
    return this.#startWallMs + nowMs - this.#startMs;
  }
}
