// What a client writes to a connection whose request was written before.

import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { describe, expect, it } from "vitest";
import { withoutWriting } from "./without-writing.js";

function open() {
  const written: string[] = [];
  const stream = new Duplex({
    read() {},
    write(chunk: Buffer, _encoding, done) {
      written.push(chunk.toString());
      done();
    },
  });
  return { written, socket: stream as unknown as Socket };
}

describe("A client that writes a request which was written before", () => {
  it.each([1, 2, 3])("is not heard while it writes it, in pieces of any number: %i", async (pieces) => {
    const { written, socket } = open();
    const seen: string[] = [];
    withoutWriting(socket, () => seen.push("over"));
    await Promise.resolve();
    expect(seen).toEqual([]);
    for (let piece = 0; piece < pieces; piece++) expect(socket.write(`piece ${piece}`)).toBe(true);
    expect(seen).toEqual([]);
    await Promise.resolve();
    expect(seen).toEqual(["over"]);
    expect(written).toEqual([]);
    expect(Object.hasOwn(socket, "write")).toBe(false);
  });

  it("is heard with what it writes later", async () => {
    const { written, socket } = open();
    withoutWriting(socket, () => socket.write("within"));
    socket.write("swallowed");
    await Promise.resolve();
    socket.write("later");
    expect(written.join()).toBe("within,later");
  });
});
