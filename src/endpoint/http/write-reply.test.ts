// Replies as JSON bodies: what the agent gets, and that nothing of it is copied on the way.

import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { WholeReply } from "../../protocol/arrived.js";
import { type BytesReply, PreparedReply } from "../../protocol/reply.js";
import { HeldBytes } from "../../runtime/memory/held-bytes.js";
import { ENDPOINT_LIMITS } from "../session/limits.js";
import { SlowReaders } from "./slow-readers.js";
import { writeReply } from "./write-reply.js";

/** A reply with its id at one end; `é` is two bytes. */
function replyOf(chars: number, isIdLast: boolean): BytesReply {
  const result = `"result":{"text":"${"é".repeat(chars / 2)}"}`;
  const [before, after] = isIdLast
    ? [`{"jsonrpc":"2.0",${result},"id":`, "}"]
    : ['{"jsonrpc":"2.0","id":', `,${result}}`];
  const idStart = Buffer.byteLength(before);
  const text = `${before}77${after}`;
  // In memory of its own, as what is read is copied to: Buffer.from may put it beside others.
  const bytes = Buffer.allocUnsafeSlow(Buffer.byteLength(text));
  bytes.write(text);
  return new WholeReply(bytes, { idStart, idEnd: idStart + 2 }, undefined);
}

/** What an agent gets, and the buffers that were written for it. */
async function sent(reply: BytesReply, idText: string, status?: number) {
  const written: unknown[] = [];
  const readers = new SlowReaders(new HeldBytes(), ENDPOINT_LIMITS);
  const server = createServer((_req, res: ServerResponse) => {
    const { write } = res;
    res.write = ((...args: Parameters<typeof write>) => {
      written.push(args[0]);
      return write.apply(res, args);
    }) as typeof write;
    writeReply(res, reply, idText, readers, "ann", status);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    return { response, text: await response.text(), written };
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

describe("A reply that is held whole", () => {
  it.each([
    [5_000, false, "1"],
    [16_384, false, "123456789"],
    [16_384, true, '"a much longer id than ours, with ü"'],
    [200_000, false, '"ü"'],
    [200_000, true, "5"],
  ])(
    "of %i bytes comes whole under the agent's id, and was written as it lay (id last: %s, %s)",
    async (bytes, isIdLast, idText) => {
      const reply = replyOf(bytes, isIdLast);
      const { response, text, written } = await sent(reply, idText);
      expect(text).toBe(reply.bytes.toString().replace(/"id":77/, `"id":${idText}`));
      expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
      expect(written.some((piece) => Buffer.isBuffer(piece) && piece.buffer === reply.bytes.buffer)).toBe(true);
    },
  );

  it.each([10, 100_000])("comes whole under each id where it is one of ours that is kept (%i bytes)", async (bytes) => {
    const reply = new PreparedReply(`{"text":"${"é".repeat(bytes)}"}`);
    for (const idText of ["1", '"ü"', "123456789012345678901234567890"]) {
      const { response, text } = await sent(reply, idText);
      expect(text).toBe(reply.bytes.toString().replace('"id":0', `"id":${idText}`));
      expect(response.headers.get("content-length")).toBe(String(Buffer.byteLength(text)));
    }
    // A copy with other bytes is no such reply.
    const copy = { ...reply, bytes: Buffer.from(reply.bytes.toString().replace("é", "e")) };
    expect((await sent(copy, "7")).text).toBe(copy.bytes.toString().replace('"id":0', '"id":7'));
  });

  it("is copied out where it is a part of a longer read, which a slow reader would hold", async () => {
    const { bytes, idStart, idEnd } = replyOf(16_384, false);
    const read = Buffer.concat([bytes, Buffer.alloc(48 * 1024)]);
    const reply = new WholeReply(read.subarray(0, bytes.length), { idStart, idEnd }, undefined);
    const { text, written } = await sent(reply, "1");
    expect(text).toBe(bytes.toString().replace(/"id":77/, '"id":1'));
    expect(written.some((piece) => Buffer.isBuffer(piece) && piece.buffer === read.buffer)).toBe(false);
  });

  it("has the status that it was given", async () => {
    const { response } = await sent(replyOf(5_000, false), "1", 404);
    expect(response.status).toBe(404);
  });
});
