import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import type { TracePlace } from "../../contracts/service.js";
import { parseMessage, type RequestMessage } from "../../protocol/message.js";
import { splice } from "../../protocol/scan.js";
import { traceEdits } from "./trace-meta.js";

const span = (metaTracestate?: string): TracePlace => ({
  metaTraceparent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
  metaTracestate,
});
const { metaTraceparent: ours } = span();

function edited(text: string, by = span()): string {
  return splice(text, traceEdits(parseMessage(text) as RequestMessage, by));
}
const request = (params: string) => `{"jsonrpc":"2.0","id":1,"method":"tools/call"${params}}`;

describe("trace context in _meta", () => {
  it("is put there, and nothing else changes", () => {
    expect(edited(request(""))).toBe(request(`,"params":{"_meta":{"traceparent":"${ours}"}}`));
    expect(edited(request(',"params":{ }'))).toBe(request(`,"params":{"_meta":{"traceparent":"${ours}"} }`));
    expect(edited(request(',"params":{"name":"x","n":1.50}'))).toBe(
      request(`,"params":{"_meta":{"traceparent":"${ours}"},"name":"x","n":1.50}`),
    );
    expect(edited(request(',"params":{"_meta":{"baggage":"a=b", "big":12345678901234567890}}'))).toBe(
      request(`,"params":{"_meta":{"traceparent":"${ours}","baggage":"a=b", "big":12345678901234567890}}`),
    );
    expect(edited(request(',"params":{"_meta":7,"name":"x"}'))).toBe(
      request(`,"params":{"_meta":{"traceparent":"${ours}"},"name":"x"}`),
    );
  });

  it("takes the place of the caller's, and carries its state on", () => {
    const before = request(',"params":{"_meta":{"traceparent":"00-old","tracestate":"a=1","progressToken":7}}');
    expect(edited(before, span("a=1"))).toBe(before.replace("00-old", ours));
    // From a header: _meta had none.
    expect(edited(request(',"params":{"_meta":{"traceparent":"x"}}'), span("b=2"))).toBe(
      request(`,"params":{"_meta":{"tracestate":"b=2","traceparent":"${ours}"}}`),
    );
  });

  it("leaves no state of a parent that could not be read", () => {
    expect(edited(request(',"params":{"_meta":{"tracestate":"a=1","traceparent":"nonsense"}}'))).toBe(
      request(`,"params":{"_meta":{"tracestate":"","traceparent":"${ours}"}}`),
    );
  });

  it("refuses a request in which it stands twice", () => {
    const twice = request(',"params":{"_meta":{"traceparent":"a","traceparent":"b"}}');
    expect(() => edited(twice)).toThrow(/Duplicate/);
  });

  it("changes only these two members, whatever else is there", () => {
    const params = fc.option(
      fc.record({ name: fc.string(), arguments: fc.jsonValue(), _meta: fc.jsonValue() }, { requiredKeys: [] }),
      { nil: undefined },
    );
    fc.assert(
      fc.property(params, fc.option(fc.constant("k=v"), { nil: undefined }), (value, state) => {
        const text = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: value });
        const after = JSON.parse(edited(text, span(state))) as { params: { _meta: Record<string, unknown> } };
        const before = JSON.parse(text) as { params?: { _meta?: unknown } };
        const { _meta: metaAfter, ...restAfter } = after.params;
        const { _meta: metaBefore, ...restBefore } = before.params ?? {};
        expect(restAfter).toEqual(restBefore);
        expect(metaAfter["traceparent"]).toBe(ours);
        const { traceparent: _, tracestate, ...others } = metaAfter;
        expect(tracestate ?? "").toBe(state ?? "");
        const kept = typeof metaBefore === "object" && !Array.isArray(metaBefore) ? (metaBefore ?? {}) : {};
        const { traceparent: _p, tracestate: _s, ...expected } = kept as Record<string, unknown>;
        expect(others).toEqual(expected);
      }),
      { numRuns: histories(2_000) },
    );
  });
});
