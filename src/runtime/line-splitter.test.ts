import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../test/faults/length.js";
import { LineSplitter } from "./line-splitter.js";
import { HeldBytes } from "./memory/held-bytes.js";
import { blockReadingBy, giveBack } from "./memory/read-blocks.js";

interface Seen {
  lines: Buffer[];
  oversize: { head: string; tail: string; length: number }[];
}

function split(chunks: readonly Buffer[], max = 1024): Seen {
  const seen: Seen = { lines: [], oversize: [] };
  const splitter = new LineSplitter(
    {
      onLine: (line) => seen.lines.push(line),
      onOversize: (head, tail, length) =>
        seen.oversize.push({ head: head.toString("latin1"), tail: tail.toString("latin1"), length }),
    },
    max,
  );
  for (const chunk of chunks) splitter.push(chunk);
  splitter.end();
  return seen;
}

const texts = (seen: Seen) => seen.lines.map((line) => line.toString());

/** `bytes` cut at the given fractions. */
function cut(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [...new Set([0, ...cuts.map((c) => Math.floor(c * bytes.length)), bytes.length])].sort((a, b) => a - b);
  return at.slice(1).map((end, i) => bytes.subarray(at[i], end));
}

describe("LineSplitter", () => {
  it("gives the same lines however the bytes are cut", () => {
    const unit = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", maxLength: 60 }).map((s) => s.replace(/[\r\n]/g, ""))),
        fc.constantFrom("\n", "\r\n"),
        fc.array(unit, { maxLength: 40 }),
        (lines, eol, cuts) => {
          const bytes = Buffer.from(lines.map((line) => line + eol).join(""));
          expect(texts(split(cut(bytes, cuts), 100_000))).toEqual(lines.filter((line) => line !== ""));
        },
      ),
      { numRuns: histories(2_000) },
    );
  });

  it("gives the last line without a line end, and skips empty ones", () => {
    expect(texts(split([Buffer.from("\n\n\r\na\n\n"), Buffer.from("b")]))).toEqual(["a", "b"]);
  });

  it("throws a line over the bound away, keeps its ends, and goes on after it", () => {
    const long = `{"jsonrpc":"2.0","id":7,"result":"${"x".repeat(5_000)}","end":1}`;
    const bytes = Buffer.from(`first\n${long}\nlast\n`);
    for (const size of [1, 3, 100, 1_000, 4_000, 100_000]) {
      const chunks: Buffer[] = [];
      for (let i = 0; i < bytes.length; i += size) chunks.push(bytes.subarray(i, i + size));
      const seen = split(chunks);
      expect(texts(seen)).toEqual(["first", "last"]);
      expect(seen.oversize).toEqual([{ head: long.slice(0, 256), tail: long.slice(-128), length: long.length }]);
    }
  });

  it("takes a line of exactly the bound", () => {
    const seen = split([Buffer.from(`${"a".repeat(1024)}\n${"b".repeat(1025)}\n`)]);
    expect([seen.lines.length, seen.oversize.length]).toEqual([1, 1]);
  });

  it("copies a small line out of a large chunk, and does not copy a large one", () => {
    const chunk = Buffer.allocUnsafeSlow(60_000).fill("a");
    chunk[100] = 0x0a;
    chunk[59_999] = 0x0a;
    const { lines } = split([chunk], 100_000);
    expect(lines.map((line) => line.length)).toEqual([100, 59_898]);
    expect(lines[0]?.buffer).not.toBe(chunk.buffer);
    expect(lines[1]?.buffer).toBe(chunk.buffer);
  });

  it("holds a line that comes byte by byte in about its own size [bounded]", () => {
    const splitter = new LineSplitter({ onLine: () => {}, onOversize: () => {} }, 8 * 1024 * 1024);
    const byte = Buffer.from("x");
    const before = process.memoryUsage();
    for (let i = 0; i < histories(4 * 1024 * 1024); i++) splitter.push(byte);
    const after = process.memoryUsage();
    const grown = after.arrayBuffers - before.arrayBuffers;
    expect(grown).toBeLessThan(16 * 1024 * 1024);
    splitter.end();
  });

  it("gives a long line in the pieces that it came in, without joining them", () => {
    const seen: Buffer[][] = [];
    const onPieces = (pieces: Buffer[]) => void seen.push(pieces);
    const splitter = new LineSplitter({ onLine: () => {}, onPieces, onOversize: () => {} }, 1_000_000);
    const chunks = ["a", "b", "c"].map((letter) => Buffer.alloc(64 * 1024, letter));
    for (const chunk of chunks) splitter.push(chunk);
    splitter.push(Buffer.from("d\r\n"));
    const [pieces = []] = seen;
    expect(Buffer.concat(pieces).equals(Buffer.concat([...chunks, Buffer.from("d")]))).toBe(true);
    expect(pieces[1]?.buffer).toBe(chunks[1]?.buffer);
  });

  it("counts an unfinished line, and throws away one for which there is no room [bounded]", () => {
    const held = new HeldBytes(1024 * 1024);
    const lines: number[] = [];
    const thrown: [string, number, boolean][] = [];
    const splitter = new LineSplitter(
      {
        onLine: (line) => lines.push(line.length),
        onOversize: (head, _tail, length, hadRoom) => thrown.push([head.toString("latin1", 0, 3), length, hadRoom]),
      },
      64 * 1024 * 1024,
      held.holder("a"),
    );
    const chunk = Buffer.alloc(64 * 1024, "x");
    for (let i = 0; i < 8; i++) splitter.push(chunk);
    expect(held.used).toBe(8 * chunk.length);
    splitter.push(Buffer.from("\n"));
    expect([held.used, lines]).toEqual([0, [8 * chunk.length]]);
    for (let i = 0; i < 20; i++) splitter.push(chunk);
    expect(held.used).toBe(0);
    splitter.push(Buffer.from("\nshort\n"));
    expect(thrown).toEqual([["xxx", 20 * chunk.length, false]]);
    expect(lines).toEqual([8 * chunk.length, 5]);
    for (let i = 0; i < 8; i++) splitter.push(chunk);
    splitter.abandon();
    expect(held.used).toBe(0);
  });
});

/** Numbers that look random, the same for each seed. */
function numbers(seed: number): (below: number) => number {
  let state = seed + 1;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

const READ_BYTES = 64 * 1024;

/** Lines of all lengths, read into lent blocks; each is written after a while, and all its blocks are overwritten. */
function readLent(seed: number): { sent: string[]; seen: string[] } {
  const random = numbers(seed);
  const longest = [200, 40_000, 90_000, 300_000];
  const sent = Array.from(
    { length: 20 },
    (_, i) => `${i} ${"abc"[i % 3]?.repeat(1 + random(longest[random(4)] as number))}`,
  );
  const seen: string[] = [];
  const unwritten: { at: number; pieces: Buffer[] }[] = [];
  const take = (pieces: Buffer[]) => unwritten.push({ at: seen.push("") - 1, pieces });
  const splitter = new LineSplitter(
    { onLine: (line) => take([line]), onPieces: take, onOversize: () => {} },
    1024 * 1024,
  );
  const write = () => {
    const { at, pieces } = unwritten.splice(random(unwritten.length), 1)[0] as (typeof unwritten)[number];
    seen[at] = Buffer.concat(pieces).toString("latin1");
    // A line that is not given in pieces is nobody's to give back.
    if (pieces.length > 1) for (const piece of pieces) giveBack(piece);
  };
  const { buffer, callback } = blockReadingBy((bytes) => {
    splitter.pushLent(bytes);
    return splitter.keptLent;
  }) as { buffer(): Buffer; callback(length: number, bytes: Buffer): boolean };
  const all = Buffer.from(`${sent.join("\n")}\n`, "latin1");
  for (let from = 0; from < all.length; ) {
    const block = buffer().fill("!");
    const length = Math.min(all.length - from, 1 + random(random(2) === 0 ? READ_BYTES : 3_000));
    all.copy(block, 0, from, from + length);
    callback(length, block);
    from += length;
    while (unwritten.length > random(6)) write();
  }
  while (unwritten.length > 0) write();
  return { sent, seen };
}

it("Lines that were read into lent blocks are whole however long they are kept [crossed-never]", () => {
  for (let seed = 0; seed < histories(100); seed++) {
    const { sent, seen } = readLent(seed);
    expect(seen.length, `seed ${seed}`).toBe(sent.length);
    for (const [i, line] of sent.entries()) expect(seen[i] === line, `seed ${seed}, line ${i}`).toBe(true);
  }
});
