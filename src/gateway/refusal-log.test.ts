import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RefusalCounts } from "./refusal-log.js";

const MINUTE = 60_000;
const none = { status: 401, path: "/mcp", why: "A token is needed." };

describe("requests that were refused, in the log [bounded]", () => {
  it("the first is told at once, the others once a minute with their number", () => {
    const counts = new RefusalCounts();
    expect(counts.refused(none, 0)?.text).toBe("refused with 401: A token is needed.");
    for (let i = 1; i <= 500; i++) expect(counts.refused({ ...none, path: `/mcp/${i}` }, i)).toBeUndefined();
    expect(counts.due(MINUTE - 1)).toEqual([]);
    const text = "refused with 401: A token is needed. (500 more times in the last minute)";
    expect(counts.due(MINUTE)).toEqual([{ text, path: "/mcp/500" }]);
    expect(counts.refused(none, MINUTE + 1)).toBeUndefined();
    expect(counts.due(2 * MINUTE)[0]?.text).toContain("(once more in the last minute)");
    expect(counts.due(3 * MINUTE)).toEqual([]);
    expect(counts.nextMs).toBeUndefined();
    expect(counts.refused(none, 4 * MINUTE)?.text).toBe("refused with 401: A token is needed.");
  });

  it("each kind is told by itself, and a stranger who makes up kinds is one", () => {
    const counts = new RefusalCounts();
    const lines = Array.from({ length: 1_000 }, (_, i) =>
      counts.refused({ ...none, status: 403, why: `host ${i}` }, i),
    );
    expect(lines.filter((line) => line !== undefined).length).toBeLessThan(40);
    expect(counts.refused({ ...none, status: 404, why: "x" }, 1_000)?.text).toContain("404");
    const [last] = counts.due(2 * MINUTE).slice(-1);
    expect(last?.text).toMatch(/^refused with 403, for other reasons \(\d+ more times/);
  });

  it("none is lost: what is told adds up to what came", () => {
    const step = fc.record({ wait: fc.nat(30_000), status: fc.constantFrom(401, 403, 404), why: fc.nat(60) });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 300 }), (steps) => {
        const counts = new RefusalCounts();
        let [nowMs, told] = [0, 0];
        const tell = (text: string) => {
          told += Number(/\((\d+) more/.exec(text)?.[1] ?? 1);
        };
        for (const { wait, status, why } of steps) {
          nowMs += wait;
          for (const { text } of counts.due(nowMs)) tell(text);
          const line = counts.refused({ status, path: "/", why: `why ${why}` }, nowMs);
          if (line !== undefined) tell(line.text);
        }
        for (const { text } of counts.due(nowMs + MINUTE)) tell(text);
        expect(told).toBe(steps.length);
      }),
    );
  });
});
