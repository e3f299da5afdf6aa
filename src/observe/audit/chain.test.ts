// The chain of the audit log: what is done to its lines is found, and told at the line where it was done.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type ChainHead, chained, lineHash, NO_LINES, resumption } from "./chain.js";
import { type ChainAnchor, ChainCheck } from "./check.js";

const body = (text: string) => JSON.stringify({ time: "2026-01-01T00:00:00.000Z", kind: "call", text });

function linesOf(count: number, head: ChainHead = NO_LINES): string[] {
  const { text } = chained(
    Array.from({ length: count }, (_, i) => body(`call ${i}`)),
    head,
  );
  return text.split("\n").slice(0, -1);
}

function headOf(lines: readonly string[]): ChainHead {
  return { seq: lines.length, hash: lineHash(lines.at(-1) as string) };
}

function check(lines: readonly string[], ...anchors: ChainAnchor[]) {
  const one = new ChainCheck(anchors);
  for (const [i, line] of lines.entries()) one.line(line, "f", i + 1);
  return one.end();
}

const size = fc.integer({ min: 3, max: 30 });
const from = "the store";

describe("a chain", () => {
  it("holds as it was written, and says where it ends [audit-tells]", () => {
    const lines = linesOf(20);
    expect(check(lines, { ...headOf(lines), from })).toEqual({
      lines: 20,
      first: 1,
      last: headOf(lines),
      wrong: undefined,
      notes: [],
    });
    expect(check([])).toMatchObject({ lines: 0, first: 0, wrong: undefined });
  });

  it("names a line that was changed by any letter, the last one too where its head is kept [audit-tells]", () => {
    fc.assert(
      fc.property(size, fc.nat(), fc.nat(), (count, which, where) => {
        const lines = linesOf(count);
        const anchor = { ...headOf(lines), from };
        const at = which % count;
        const line = lines[at] as string;
        const letter = where % line.length;
        lines[at] = line.slice(0, letter) + (line[letter] === "0" ? "1" : "0") + line.slice(letter + 1);
        const { wrong } = check(lines, anchor);
        // A number or a link that was changed is found in its own line, all else by the one after it.
        expect(wrong).toBeDefined();
        expect([at, at + 1, at + 2]).toContain(wrong?.line);
      }),
      { numRuns: histories(500) },
    );
    const lines = linesOf(5);
    lines[2] = (lines[2] as string).replace("call 2", "call 9");
    expect(check(lines).wrong).toEqual({ file: "f", line: 3, why: expect.stringContaining("it was changed") });
  });

  it("names the place where a line was taken out, or two changed places [audit-tells]", () => {
    fc.assert(
      fc.property(size, fc.nat(), (count, which) => {
        const lines = linesOf(count);
        const at = which % (count - 1);
        const without = lines.filter((_, i) => i !== at);
        expect(check(without).wrong).toBeDefined();
        if (at > 0) {
          expect(check(without).wrong?.line).toBe(at + 1);
          expect(check(without).wrong?.why).toContain(`line ${at + 1} is missing`);
        }
        const swapped = [...lines];
        [swapped[at], swapped[at + 1]] = [swapped[at + 1] as string, swapped[at] as string];
        const found = check(swapped).wrong;
        expect(found).toBeDefined();
        if (at > 0) expect(found?.line).toBe(at + 1);
      }),
    );
  });

  it("has its tail cut off seen by the head in the store, or an anchor that is kept elsewhere [audit-tells]", () => {
    const lines = linesOf(10);
    const anchor = { ...headOf(lines), from };
    for (let left = 1; left < 10; left++) {
      expect(check(lines.slice(0, left)).wrong).toBeUndefined();
      expect(check(lines.slice(0, left), anchor).wrong?.why).toContain("its tail was cut off");
    }
  });

  it("that was cut and grown again, or made anew as a whole, is seen by an anchor [audit-tells]", () => {
    const lines = linesOf(10);
    const anchor = { seq: 7, hash: lineHash(lines[6] as string), from: "--anchor" };
    const cut = lines.slice(0, 5);
    const grown = chained(
      Array.from({ length: 9 }, (_, i) => body(`another ${i}`)),
      headOf(cut),
    );
    const again = [...cut, ...grown.text.split("\n").slice(0, -1)];
    expect(check(again).wrong).toBeUndefined();
    expect(check(again, anchor).wrong).toMatchObject({ line: 7, why: expect.stringContaining("--anchor names") });
    expect(check(lines, anchor).wrong).toBeUndefined();
  });

  it("goes on after it was torn at any byte, and tells that as what it was [audit-tells]", () => {
    const { text } = chained([body("one"), body("two"), body("three")], NO_LINES);
    for (let length = 0; length <= text.length; length++) {
      const torn = text.slice(0, length);
      const found = resumption(torn) ?? {
        head: { seq: 0, hash: lineHash(torn) },
        isTorn: torn !== "",
        end: "\n" as const,
      };
      const start = torn === "" ? NO_LINES : found.head;
      const resumed = JSON.stringify({ time: "", kind: "resumed", torn: found.isTorn ? true : undefined });
      const all = torn + (torn === "" ? "" : found.end) + chained([resumed, body("four")], start).text;
      const report = check(all.split("\n").slice(0, -1));
      expect(report.wrong).toBeUndefined();
      expect(report.notes).toHaveLength(found.isTorn ? 1 : 0);
    }
  });

  it("does not take a line that cannot be read for one that was torn, unless the next one says so [audit-tells]", () => {
    const lines = linesOf(5);
    lines[2] = "{ nonsense";
    expect(check(lines).wrong).toMatchObject({ line: 3, why: expect.stringContaining("cannot be read") });
    const last = [...linesOf(3), '{"seq":4,"pre'];
    expect(check(last)).toMatchObject({ wrong: undefined, notes: [expect.stringContaining("torn")] });
  });

  it("whose first files were removed says so, and has no beginning cut off unseen [audit-tells]", () => {
    const lines = linesOf(10);
    const removed = JSON.stringify({ time: "", kind: "removed", lastSeq: 4, lastHash: lineHash(lines[3] as string) });
    const rest = [...lines, ...chained([removed], headOf(lines)).text.split("\n").slice(0, -1)];
    expect(check(rest.slice(4)).wrong).toBeUndefined();
    expect(check(rest).wrong).toBeUndefined();
    expect(check(rest.slice(5)).wrong?.why).toContain("lines 5 to 5 are missing");
    expect(check(lines.slice(4)).wrong?.why).toContain("no line says that they were removed");
    expect(check(rest.slice(4), { seq: 2, hash: "x", from: "--anchor" }).notes[0]).toContain("older than what is kept");
  });
});
