// W3C trace context as it travels in `_meta` or in headers: reading what came, writing what goes on. Knows no spans.

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
