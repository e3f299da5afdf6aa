import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { Redactor } from "../../runtime/redact/redactor.js";
import { StderrLines } from "./stderr-lines.js";

const SECRET = "canary-of-the-entry";

function pushed(chunks: readonly Buffer[], everyMs = 1_000): { lines: string[]; leftOut: number } {
  const all = new StderrLines(new Redactor([SECRET]));
  const found: string[] = [];
  let leftOut = 0;
  const take = (isEnd: boolean) => {
    const batch = all.take(isEnd);
    found.push(...(batch?.lines ?? []));
    leftOut += batch?.leftOutBytes ?? 0;
  };
  for (const [i, chunk] of chunks.entries()) {
    all.push(chunk, i * everyMs);
    if (i % 3 === 2) take(false);
  }
  take(true);
  return { lines: found, leftOut };
}

/** The same bytes in pieces that end anywhere, in the middle of a character too. */
function cutAt(text: string, places: readonly number[]): Buffer[] {
  const bytes = Buffer.from(text);
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [0, ...ends].map((from, i) => bytes.subarray(from, ends[i] ?? bytes.length));
}

describe("lines of stderr", () => {
  it("are whole however they come, and no secret is in them [secrets-unseen]", () => {
    const line = fc.constantFrom("hello", "é€😀", `with ${SECRET} in it`, `${SECRET}${SECRET}`, "x".repeat(300), " ");
    fc.assert(
      fc.property(fc.array(line, { maxLength: 30 }), fc.array(fc.nat(9_999), { maxLength: 12 }), (texts, places) => {
        const { lines, leftOut } = pushed(cutAt(texts.join("\n"), places));
        const expected = texts.map((text) => text.replaceAll(SECRET, "[redacted]").trimEnd()).filter(Boolean);
        // Two redactions that touch are one.
        const folded = (all: string[]) => all.map((text) => text.replaceAll("[redacted][redacted]", "[redacted]"));
        expect(folded(lines)).toEqual(folded(expected));
        expect(leftOut).toBe(0);
      }),
      { numRuns: histories(200) },
    );
  });

  it("of a child that floods are bounded, and what is left out is counted [bounded]", () => {
    const size = fc.integer({ min: 0, max: 30_000 });
    const piece = fc.tuple(size, fc.boolean(), fc.nat(SECRET.length), fc.nat(400));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
        const chunks = pieces.map(([length, ends, cut]) =>
          Buffer.from(`${SECRET.slice(cut)} ${"y".repeat(length)}${ends ? "\n" : ""}${SECRET.slice(0, cut)}`),
        );
        const all = new StderrLines(new Redactor([SECRET]));
        let now = 0;
        let inSecond = 0;
        let secondBegan = 0;
        let out = 0;
        let came = 0;
        for (const [i, chunk] of chunks.entries()) {
          now += pieces[i]?.[3] ?? 0;
          if (now - secondBegan >= 1_000) [secondBegan, inSecond] = [now, 0];
          came += chunk.length;
          all.push(chunk, now);
          const batch = all.take(i === chunks.length - 1);
          const text = (batch?.lines ?? []).join("\n");
          inSecond += text.length;
          out += text.length + (batch?.leftOutBytes ?? 0);
          expect(text).not.toContain(SECRET);
        }
        // In a second at most what is taken in it, and what waited from the one before.
        expect(inSecond).toBeLessThanOrEqual(128 * 1024 + 32 * 1024);
        // Nothing is lost without being counted, but for redactions, line ends and spaces.
        expect(out).toBeGreaterThanOrEqual(came - chunks.length * (2 * SECRET.length + 4));
      }),
      { numRuns: histories(40) },
    );
  });

  it("that are too long are left out to their end, which may be half of a secret [secrets-unseen]", () => {
    const [half, rest] = [SECRET.slice(0, 8), SECRET.slice(8)];
    const long = Buffer.from("b".repeat(60_000) + half);
    const { lines, leftOut } = pushed([Buffer.alloc(60_000, "a"), long, Buffer.from(`${rest}\nlast\n`)]);
    expect(lines).toEqual(["last"]);
    expect(leftOut).toBe(120_000 + SECRET.length + 1);
  });
});
