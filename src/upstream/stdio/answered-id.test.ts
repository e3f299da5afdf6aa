import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { answeredId } from "./link.js";

const idOf = (text: string) => {
  const bytes = Buffer.from(text);
  return answeredId(bytes.subarray(0, 256), bytes.subarray(-128));
};

describe("the id that a line answers, told by its ends", () => {
  it("finds an id that stands first or last, of responses only", () => {
    expect(idOf('{"jsonrpc":"2.0","id":12,"result":{}}')).toBe(12);
    expect(idOf('{"jsonrpc":"2.0","id":12,"error":{"code":1,"message":""}}')).toBe(12);
    expect(idOf('{"result":{"id":3},"jsonrpc":"2.0","id":12}')).toBe(12);
    expect(idOf('{"jsonrpc":"2.0","id":12,"method":"sampling/createMessage"}')).toBeUndefined();
    expect(idOf('{"method":"ping","jsonrpc":"2.0","id":12}')).toBeUndefined();
    expect(idOf('{"result":{"a":1,"id":12}}')).toBeUndefined();
    expect(idOf('{"result":1,"id":"12"}')).toBeUndefined();
    expect(idOf(String.raw`{"result":1,"x,\"id":12}`)).toBeUndefined();
  });

  it("never names another id than JSON.parse does", () => {
    // Keys and strings made of what the patterns look for.
    const tricky = fc
      .array(
        fc.constantFrom('"', "\\", ",", ":", "}", "{", '"id":', ',"id":5}', '"result":', "7", '{"jsonrpc":"2.0","id":'),
      )
      .map((parts) => parts.join(""));
    const value = fc.oneof(tricky, fc.nat(), fc.record({ id: fc.nat(), x: tricky }), fc.array(tricky));
    const message = fc.record(
      { jsonrpc: fc.constant("2.0"), id: fc.oneof(fc.nat(), tricky), result: value, method: tricky, extra: value },
      { requiredKeys: [] },
    );
    const shuffled = message.chain((m) => fc.shuffledSubarray(Object.entries(m), { minLength: Object.keys(m).length }));
    fc.assert(
      fc.property(shuffled, fc.option(tricky), (entries, key) => {
        const all = key === null ? entries : [...entries.slice(0, 1), [key, 1] as const, ...entries.slice(1)];
        const text = JSON.stringify(Object.fromEntries(all));
        const found = idOf(text);
        if (found === undefined) return;
        const parsed = JSON.parse(text);
        expect(parsed.id).toBe(found);
        expect("result" in parsed || "error" in parsed).toBe(true);
      }),
      { numRuns: histories(10_000) },
    );
  });
});
