// When lines leave for a child: at once where it has nothing to do, else together at the end of the turn.

import { Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import { ownHolder } from "../../runtime/memory/held-bytes.js";
import { LineWriter, PIECE_CHARS } from "./writer.js";

it("A line for an idle server leaves at once, and those that follow in the same turn leave together, in order [bounded]", async () => {
  const written: string[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  const events = { onFailed: () => {}, onBroken: () => {} };
  const writer = new LineWriter(stream, 1_000, ownHolder(), events);
  writer.send("1", undefined, true);
  expect(written).toEqual(["1\n"]);
  for (const line of ["2", "3", "4"]) {
    await Promise.resolve();
    writer.send(line, undefined, false);
  }
  await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
  expect(written.join("")).toBe("1\n2\n3\n4\n");
  expect(written.length).toBeLessThanOrEqual(3);
});

it("Lines with and without characters beyond ASCII leave together, as UTF-8", async () => {
  const written: Buffer[] = [];
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk);
      done();
    },
  });
  const writer = new LineWriter(stream, 1_000, ownHolder(), { onFailed: () => {}, onBroken: () => {} });
  const lines = ["plain", "é", "plain again", "😀", "\u00ff"];
  for (const line of lines) writer.send(line, undefined, false);
  await nextTurn();
  writer.send("ÿ, at once", undefined, true);
  await nextTurn();
  expect(Buffer.concat(written).toString()).toBe(`${lines.join("\n")}\nÿ, at once\n`);
});

const nextTurn = () => new Promise((resolve) => setImmediate(resolve));

describe("A line of megabytes", () => {
  /** So many characters stand before the first 😀 that one has its halves on both sides of PIECE_CHARS. */
  const long = `{"xy":"${"😀".repeat(2 * PIECE_CHARS)}"}`;

  function open(written: Buffer[]) {
    const stream = new Writable({
      decodeStrings: true,
      write(chunk: Buffer, _encoding, done) {
        written.push(chunk);
        done();
      },
    });
    const failed: string[] = [];
    const events = { onFailed: (_ticket: unknown, { message }: Error) => failed.push(message), onBroken: () => {} };
    return { stream, failed, writer: new LineWriter(stream, 32 * PIECE_CHARS, ownHolder(), events) };
  }

  it("leaves in pieces, a turn of the event loop for each, whole and before the lines behind it [bounded]", async () => {
    const written: Buffer[] = [];
    const { writer, failed } = open(written);
    writer.send(long, undefined, true);
    writer.send("next", undefined, true);
    /** How many pieces each turn wrote; the line behind the last leaves with it. */
    const pieces: number[] = [];
    for (let before = 0; written.at(-1)?.toString() !== "next\n"; before = written.length) {
      await nextTurn();
      if (before > 0) pieces.push(written.length - before);
    }
    expect(Buffer.concat(written).equals(Buffer.from(`${long}\nnext\n`))).toBe(true);
    expect(Math.max(...written.map(({ length }) => length))).toBeLessThanOrEqual(3 * PIECE_CHARS);
    expect(pieces).toEqual([1, 1, 1, 2]);
    expect(failed).toEqual([]);
  });

  it("has spaces for line breaks, in each of its pieces, and is one line [bounded]", async () => {
    const written: Buffer[] = [];
    const { writer } = open(written);
    writer.send(`{"é":${"\n\r\t".repeat(PIECE_CHARS)}1\r\n}\n`, undefined, true);
    writer.send('{\r\n\n"é":1\r}', undefined, true);
    while (!written.at(-1)?.toString().endsWith("1 }\n")) await nextTurn();
    const lines = `{"é":${"  \t".repeat(PIECE_CHARS)}1  } \n{   "é":1 }\n`;
    expect(Buffer.concat(written).equals(Buffer.from(lines))).toBe(true);
  });

  it("is written to its end where the input ends meanwhile", async () => {
    const written: Buffer[] = [];
    const { writer, stream } = open(written);
    writer.send(long, undefined, true);
    writer.send("next", undefined, true);
    writer.end();
    await new Promise((resolve) => stream.once("finish", resolve));
    expect(Buffer.concat(written).equals(Buffer.from(`${long}\n`))).toBe(true);
    expect(Math.max(...written.map(({ length }) => length))).toBeLessThanOrEqual(3 * PIECE_CHARS);
  });

  it("goes no further where the child is gone, and what waits behind it was not sent", async () => {
    const written: Buffer[] = [];
    const { writer, failed } = open(written);
    writer.send(long, undefined, true);
    writer.send("next", { id: 1 } as never, true);
    writer.abandon();
    for (let n = 0; n < 20; n++) await nextTurn();
    expect(written).toHaveLength(1);
    expect(failed).toEqual(["The server closed its input before the message was written."]);
  });
});
