import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { readTraceParent, traceparentText } from "./trace-context.js";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN = "00f067aa0ba902b7";
const good = `00-${TRACE}-${SPAN}-01`;

describe("traceparent", () => {
  it("is read with its flag and its state", () => {
    expect(readTraceParent({ traceparent: good, tracestate: "a=1,b=2" })).toEqual({
      traceId: TRACE,
      spanId: SPAN,
      sampled: true,
      tracestate: "a=1,b=2",
    });
    expect(readTraceParent({ traceparent: `00-${TRACE}-${SPAN}-00` })?.sampled).toBe(false);
    // Other flags are not ours to judge.
    expect(readTraceParent({ traceparent: `00-${TRACE}-${SPAN}-03` })?.sampled).toBe(true);
    expect(readTraceParent({ traceparent: `00-${TRACE}-${SPAN}-02` })?.sampled).toBe(false);
  });

  it("of a later version is read as far as it is known", () => {
    expect(readTraceParent({ traceparent: `cc-${TRACE}-${SPAN}-01` })?.spanId).toBe(SPAN);
    expect(readTraceParent({ traceparent: `cc-${TRACE}-${SPAN}-01-what-the-future-brings` })?.spanId).toBe(SPAN);
    expect(readTraceParent({ traceparent: `cc-${TRACE}-${SPAN}-01.x` })).toBeUndefined();
  });

  it.each([
    ["version ff", `ff-${TRACE}-${SPAN}-01`],
    ["a trace id of zeros", `00-${"0".repeat(32)}-${SPAN}-01`],
    ["a span id of zeros", `00-${TRACE}-${"0".repeat(16)}-01`],
    ["capitals", good.toUpperCase()],
    ["a short trace id", `00-${TRACE.slice(1)}-${SPAN}-01`],
    ["a long span id", `00-${TRACE}-${SPAN}0-01`],
    ["more fields in version 00", `${good}-01`],
    ["white space", ` ${good}`],
    ["a line behind it", `${good}\n`],
    ["no flags", `00-${TRACE}-${SPAN}`],
    ["nothing", ""],
    ["a number", 7],
    ["a list of headers", [good, good]],
    ["an endless one", `cc-${TRACE}-${SPAN}-01-${"x".repeat(10_000)}`],
  ])("with %s is none", (_, traceparent) => {
    expect(readTraceParent({ traceparent, tracestate: "a=1" })).toBeUndefined();
  });

  it("keeps its place where the state is unusable", () => {
    for (const tracestate of ["", 5, "a=1\n", `a=${"x".repeat(600)}`, "ä=1"]) {
      expect(readTraceParent({ traceparent: good, tracestate })).toMatchObject({
        spanId: SPAN,
        tracestate: undefined,
      });
    }
  });

  it("is read again as it was written", () => {
    const hex = (digits: number) =>
      fc
        .array(fc.constantFrom(..."0123456789abcdef"), { minLength: digits, maxLength: digits })
        .map((all) => all.join(""))
        .filter((id) => !/^0+$/.test(id));
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, sampled) => {
        const traceparent = traceparentText(traceId, spanId, sampled);
        expect(readTraceParent({ traceparent })).toEqual({ traceId, spanId, sampled, tracestate: undefined });
      }),
      { numRuns: histories(2_000) },
    );
    fc.assert(
      fc.property(fc.anything(), (anything) => {
        expect(() => readTraceParent({ traceparent: anything, tracestate: anything })).not.toThrow();
      }),
      { numRuns: histories(2_000) },
    );
  });
});
