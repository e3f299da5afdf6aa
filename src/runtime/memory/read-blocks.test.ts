// The blocks that sockets are read into: what is lent, what is copied, and what is read into again.

import type { Socket } from "node:net";
import { expect, it } from "vitest";
import { blockReading, giveBack } from "./read-blocks.js";

const BLOCK_BYTES = 64 * 1024;
const MAX_FREE = 128;

/** A socket as Node drives one that reads into a buffer of its user's. */
class Reader {
  readonly chunks: Buffer[] = [];
  readonly #reading = blockReading() as {
    buffer(): Buffer;
    callback(this: Socket, length: number, bytes: Buffer): boolean;
  };
  readonly #socket = { push: (chunk: Buffer) => this.chunks.push(chunk) < 3 } as unknown as Socket;
  block = this.#reading.buffer();

  /** So many bytes of this letter come in. */
  read(length: number, letter: string): boolean {
    this.block.fill(letter, 0, length);
    const goesOn = this.#reading.callback.call(this.#socket, length, this.block);
    this.block = this.#reading.buffer();
    return goesOn;
  }

  get texts(): string[] {
    return this.chunks.map(
      (chunk) => `${chunk.length}${chunk.toString("latin1", 0, 1)}${chunk.toString("latin1", chunk.length - 1)}`,
    );
  }
}

it("What is short is copied and its block read into again; what is long is lent until it is given back [crossed-never]", () => {
  const reader = new Reader();
  const first = reader.block;
  expect(reader.read(300, "a")).toBe(true);
  expect(reader.block).toBe(first);
  expect(reader.read(BLOCK_BYTES, "b")).toBe(true);
  expect(reader.block).not.toBe(first);
  expect(reader.read(BLOCK_BYTES / 2, "c")).toBe(false);
  reader.read(BLOCK_BYTES / 2 - 1, "d");
  expect(reader.texts).toEqual(["300aa", "65536bb", "32768cc", "32767dd"]);
  // Nobody keeps a whole block for the sake of less than half of it.
  expect(reader.chunks[3]?.buffer.byteLength).toBeLessThan(BLOCK_BYTES);

  giveBack(reader.chunks[1] as Buffer);
  const other = new Reader();
  expect(other.block).toBe(first);
  other.read(BLOCK_BYTES, "e");
  expect(other.block).not.toBe(first);
  expect(reader.texts[2]).toBe("32768cc");
});

it("A block is given back once, by any view of it, and buffers of others are left alone [crossed-never]", () => {
  const reader = new Reader();
  reader.read(BLOCK_BYTES, "a");
  const lent = reader.chunks[0] as Buffer;
  for (const view of [lent.subarray(10, 20), lent, lent.subarray(1)]) giveBack(view);
  for (const foreign of [Buffer.from("small"), Buffer.alloc(BLOCK_BYTES)]) giveBack(foreign);
  const next = [new Reader(), new Reader()];
  expect(next.map(({ block }) => block.buffer === lent.buffer)).toEqual([true, false]);
  // It is a socket's now, and nobody else's to give.
  giveBack(lent);
  expect(new Reader().block.buffer).not.toBe(lent.buffer);
});

it("Of blocks that were given back a bounded number waits for its next use [bounded]", () => {
  const reader = new Reader();
  for (let i = 0; i < 2 * MAX_FREE; i++) reader.read(BLOCK_BYTES, "a");
  const lent = new Set(reader.chunks.map(({ buffer }) => buffer));
  for (const chunk of reader.chunks) giveBack(chunk);
  const taken = Array.from({ length: 2 * MAX_FREE }, () => new Reader().block.buffer);
  expect(taken.filter((buffer) => lent.has(buffer))).toHaveLength(MAX_FREE);
});
