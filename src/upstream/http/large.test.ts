import { createServer, type Socket } from "node:net";
import type { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, it } from "vitest";
import { events, json, Peer, plain, Recorder, reply } from "../../../test/fixtures/links/recorder.js";
import { listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { HELD_BACK_BYTES } from "../../protocol/check-reply.js";
import { LARGE_REPLY_BYTES } from "../link/large-body.js";
import { StreamableLink } from "./streamable.js";

const MIB = 1024 * 1024;
const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function connect(url: string): Promise<Recorder> {
  const recorder = new Recorder();
  const link = new StreamableLink({ kind: "http", url, headers: {} }, recorder);
  cleanups.push(() => link.close());
  await recorder.attach(link);
  return recorder;
}

/** A server that answers `large` with that many bytes of text in a result, and anything else at once. */
async function serve(bytes: number) {
  const piece = Buffer.alloc(64 * 1024, "abcdefgh");
  const state = { written: 0 };
  const peer = new Peer(
    plain(({ message }, response) => {
      if (message.method !== "large") {
        json(response, { jsonrpc: "2.0", id: message.id, result: {} });
        return;
      }
      response.writeHead(200, { "content-type": "application/json" });
      response.write(`{"jsonrpc":"2.0","id":${message.id},"result":{"text":"`);
      let left = bytes;
      const write = () => {
        while (left > 0) {
          const part = left < piece.length ? piece.subarray(0, left) : piece;
          left -= part.length;
          state.written += part.length;
          if (!response.write(part)) {
            response.once("drain", write);
            return;
          }
        }
        response.end('"}}');
      };
      write();
    }),
  );
  cleanups.push(() => peer.close());
  return { state, recorder: await connect(await peer.listen()) };
}

/** The count once it stands still: it may take a while to get there. */
async function settled(count: () => number): Promise<number> {
  let [before, now] = [-1, count()];
  while (now !== before) {
    await sleep(300);
    [before, now] = [now, count()];
  }
  return now;
}

async function readAll(head: Buffer, rest: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [head];
  for await (const chunk of rest) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

describe("large replies", () => {
  it("up to the bound come as one buffer, in JSON and in events", async () => {
    const { recorder } = await serve(LARGE_REPLY_BYTES - 1000);
    const id = recorder.request("large");
    expect((await recorder.reply(id)).bytes.length).toBeGreaterThan(LARGE_REPLY_BYTES - 1000);

    const text = "y".repeat(8 * MIB);
    const peer = new Peer(plain(({ message }, r) => void events(r).end(`id: 1\ndata: ${reply(message.id, text)}\n\n`)));
    cleanups.push(() => peer.close());
    const streamed = await connect(await peer.listen());
    expect((await streamed.reply(streamed.request("x"))).value.result).toBe(text);
  });

  it("above it come as a head and a stream, 8 MiB whole", async () => {
    const { recorder } = await serve(8 * MIB);
    const id = recorder.request("large");
    await recorder.until(() => recorder.large.length > 0);
    const [large] = recorder.large;
    expect(large?.head.length).toBeGreaterThan(LARGE_REPLY_BYTES - HELD_BACK_BYTES);
    const whole = await readAll(large?.head as Buffer, large?.rest as Readable);
    const value = JSON.parse(whole.toString()) as { id: number; result: { text: string } };
    expect(value.id).toBe(id);
    expect(value.result.text.length).toBe(8 * MIB);
    expect(recorder.failures).toEqual([]);
  });

  it("200 MiB to a slow reader wait at the server, and delay nobody else [bounded] [one-bad-server]", async () => {
    const { recorder, state } = await serve(200 * MIB);
    recorder.request("large");
    await recorder.until(() => recorder.large.length > 0);
    const rest = recorder.large[0]?.rest as Readable;
    // What is on its way: socket buffers of both sides, and what is held here.
    const stalledAt = await settled(() => state.written);
    expect(stalledAt).toBeLessThan(40 * MIB);
    for (let i = 0; i < 20; i++) await recorder.reply(recorder.request("small"));
    expect(state.written).toBe(stalledAt);

    const before = process.memoryUsage().rss;
    let peak = before;
    let bytes = recorder.large[0]?.head.length ?? 0;
    let reads = 0;
    for await (const chunk of rest) {
      bytes += (chunk as Buffer).length;
      if (++reads % 64 === 0) await sleep(1);
      if (reads % 16 === 0) peak = Math.max(peak, process.memoryUsage().rss);
    }
    expect(bytes).toBeGreaterThan(200 * MIB);
    // Client and server are one process here, and buffers wait for the collector.
    expect((peak - before) / MIB).toBeLessThan(100);
  });

  it("that nobody wants any more are cut, alone", async () => {
    const { recorder, state } = await serve(200 * MIB);
    recorder.request("large");
    await recorder.until(() => recorder.large.length > 0);
    recorder.large[0]?.rest.destroy();
    await recorder.reply(recorder.request("small"));
    await sleep(200);
    expect(state.written).toBeLessThan(200 * MIB);
    expect(recorder.failures).toEqual([]);
  });

  it.each(["reset", "end"] as const)(
    "that break off (%s) end in an error, paused or not, and never look whole [unknown-is-said]",
    async (how) => {
      for (const paused of [true, false]) {
        for (const length of ["", `content-length: ${200 * MIB}\r\n`]) {
          const sockets: Socket[] = [];
          const server = createServer((socket) => {
            sockets.push(socket);
            socket.on("error", () => {});
            socket.once("data", () => {
              const chunked = length === "" ? "transfer-encoding: chunked\r\n" : length;
              socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${chunked}\r\n`);
              const text = "x".repeat(3 * MIB);
              socket.write(length === "" ? `${text.length.toString(16)}\r\n${text}\r\n` : text);
            });
          });
          const port = await listenOnLoopback(server);
          const recorder = await connect(`http://127.0.0.1:${port}/`);
          recorder.request("large");
          await recorder.until(() => recorder.large.length > 0);
          const rest = recorder.large[0]?.rest as Readable;
          if (!paused) rest.resume();
          await sleep(50);
          if (how === "reset") sockets[0]?.resetAndDestroy();
          else sockets[0]?.end();
          await sleep(50);
          await expect(readAll(Buffer.alloc(0), rest).then(({ length }) => length)).rejects.toThrow(/broke|unknown/);
          await recorder.link.close();
          await new Promise((resolve) => server.close(resolve));
        }
      }
    },
  );

  it("of the close-delimited kind may be reset while nobody reads, and nothing falls over", async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      sockets.push(socket);
      socket.on("error", () => {});
      socket.once("data", () => {
        socket.write("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n");
        socket.write("x".repeat(3 * MIB));
      });
    });
    const port = await listenOnLoopback(server);
    cleanups.push(() => new Promise((resolve) => server.close(resolve)));
    const recorder = await connect(`http://127.0.0.1:${port}/`);
    recorder.request("large");
    await recorder.until(() => recorder.large.length > 0);
    await sleep(50);
    sockets[0]?.resetAndDestroy();
    await sleep(100);
    const rest = recorder.large[0]?.rest as Readable;
    await expect(readAll(Buffer.alloc(0), rest).then(({ length }) => length)).rejects.toThrow(/broke|unknown/);
  });
});
