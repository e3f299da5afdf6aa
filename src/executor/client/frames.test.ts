// The largest bodies that go in one message, as a plain executor gets them.

import { expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { MIB } from "../../runtime/sizes.js";
import { MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import { connectExecutor } from "./connect.js";

it("[exec-keep] no frame is larger than the exec-server takes, whatever the size of the message", async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  const largest = { frame: 0 };
  const bodies: Buffer[] = [];
  server.on("connection", (ws, request) => {
    // Frames as they stand in the bytes: the receiver hands out whole messages only.
    const frames = new FrameLengths();
    request.socket.on("data", (bytes) => frames.read(bytes));
    ws.on("message", (data) => {
      largest.frame = frames.largest;
      const { id, method, params } = JSON.parse(String(data));
      if (method === "initialize") ws.send(JSON.stringify({ id, result: { sessionId: "s" } }));
      if (method !== "http/request") return;
      bodies.push(Buffer.from(params.bodyBase64, "base64"));
      ws.send(JSON.stringify({ id, result: { status: 200, headers: [], bodyBase64: "" } }));
    });
  });
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as { port: number };
  const client = await connectExecutor({ url: `ws://127.0.0.1:${port}` });
  const body = Buffer.alloc(MAX_WHOLE_BODY_BYTES);
  for (let i = 0; i < body.length; i += 4) body.writeUInt32LE(i, i);
  const post = { method: "POST", url: "http://example.test/", headers: [] };
  await client.request({ ...post, body });
  await client.request({ ...post, body: "äöü" });
  expect(bodies[0]?.equals(body)).toBe(true);
  expect(bodies[1]?.toString()).toBe("äöü");
  expect(largest.frame).toBeGreaterThan(1 * MIB);
  expect(largest.frame).toBeLessThan(16 * MIB);
  await client.close();
  server.close();
});

/** Reads the headers of masked frames, as clients send them, and passes over what they carry. */
class FrameLengths {
  largest = 0;
  #left = 0;
  #head = Buffer.alloc(0);

  read(bytes: Buffer): void {
    let at = 0;
    while (at < bytes.length) {
      const skipped = Math.min(this.#left, bytes.length - at);
      this.#left -= skipped;
      at += skipped;
      if (at === bytes.length) return;
      this.#head = Buffer.concat([this.#head, bytes.subarray(at, at + 1)]);
      at++;
      const short = (this.#head[1] ?? 0) & 0x7f;
      const extra = short === 127 ? 8 : short === 126 ? 2 : 0;
      if (this.#head.length < 2 + extra) continue;
      const length = extra === 8 ? this.#head.readUInt32BE(6) : extra === 2 ? this.#head.readUInt16BE(2) : short;
      this.largest = Math.max(this.largest, length);
      this.#left = length + 4;
      this.#head = Buffer.alloc(0);
    }
  }
}
