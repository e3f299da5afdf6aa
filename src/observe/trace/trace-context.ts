// W3C trace context as it travels in `_meta` or in headers: reading what came, writing what goes on, and the ids in it. Knows
// no spans.

import { randomFillSync } from "node:crypto";
import type { TraceCarrier } from "../../contracts/service.js";

/** Where a call comes from, as its `traceparent` says. */
export interface TraceParent {
  /** 32 hex digits, not all zero. */
  readonly traceId: string;
  /** 16 hex digits, not all zero. */
  readonly spanId: string;
  readonly sampled: boolean;
  /** What vendors add; passed on as it came. */
  readonly tracestate: string | undefined;
}

/** What the specification asks everybody to carry; a longer one may be dropped, and is. */
const MAX_TRACESTATE = 512;
/** Later versions may add fields; ours has 55 characters. */
const MAX_TRACEPARENT = 512;

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const FORBIDDEN_VERSION = "ff";
const ZERO_TRACE = "0".repeat(32);
const ZERO_SPAN = "0".repeat(16);
const SAMPLED = 0x01;

/** Printable ASCII, as a header has it. What is in it is the vendors' business. */
const TRACESTATE = /^[\x20-\x7e\t]+$/;

/** Undefined where there is none, or none that can be used: the call then begins a trace of its own. */
export function readTraceParent({ traceparent, tracestate }: TraceCarrier): TraceParent | undefined {
  if (typeof traceparent !== "string" || traceparent.length > MAX_TRACEPARENT) return undefined;
  const match = TRACEPARENT.exec(traceparent);
  if (match === null) return undefined;
  const [, version = "", traceId = "", spanId = "", flags = "", rest] = match;
  if (version === FORBIDDEN_VERSION || traceId === ZERO_TRACE || spanId === ZERO_SPAN) return undefined;
  // Version 00 ends with its flags; of a later one, what we know is read.
  if (version === "00" && rest !== undefined) return undefined;
  return {
    traceId,
    spanId,
    sampled: (Number.parseInt(flags, 16) & SAMPLED) !== 0,
    tracestate: readTraceState(tracestate),
  };
}

function readTraceState(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > MAX_TRACESTATE) return undefined;
  return TRACESTATE.test(value) ? value : undefined;
}

export function traceparentText(traceId: string, spanId: string, sampled: boolean): string {
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`;
}

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** A few hundred ids for one turn to the system's randomness. */
const POOL_BYTES = 4096;

/** Random ids of traces and spans, drawn many at a time: one by one they would cost more than the rest of a span. */
export class TraceIds {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #used = POOL_BYTES;

  traceId(): string {
    return this.#draw(TRACE_ID_BYTES);
  }

  spanId(): string {
    return this.#draw(SPAN_ID_BYTES);
  }

  #draw(bytes: number): string {
    for (;;) {
      if (this.#used + bytes > POOL_BYTES) {
        randomFillSync(this.#pool);
        this.#used = 0;
      }
      const from = this.#used;
      this.#used += bytes;
      const id = this.#pool.toString("hex", from, this.#used);
      // All zero means "none".
      if (!/^0+$/.test(id)) return id;
    }
  }
}
