// Our client with our executor: in the suite for all, and then what only the two of them can do.

import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { connect, createServer as createTcpServer, type Socket as TcpSocket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { Destinations } from "../../src/executor/allow/destinations.js";
import type { SocketClient } from "../../src/executor/client/client.js";
import { connectExecutor } from "../../src/executor/client/connect.js";
import { createExecutor, type Executor } from "../../src/executor/server/executor.js";
import { listenForClients } from "../../src/executor/server/listener.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { clientSuite, type SuiteExecutor } from "./client-suite.js";

const TOKEN = "of-the-client-tests-0123456789";

async function startOurs(): Promise<SuiteExecutor & { executor: Executor }> {
  const executor = createExecutor({ destinations: Destinations.parse(["127.0.0.1"]) });
  const listener = await listenForClients(executor, { host: "127.0.0.1", port: 0, token: TOKEN });
  const stop = async (): Promise<void> => {
    await executor.close();
    await listener.close();
  };
  return { executor, url: listener.url, token: TOKEN, stop };
}

clientSuite("our executor", startOurs);

const undo: (() => Promise<unknown> | undefined)[] = [];
afterEach(async () => {
  for (const one of undo.splice(0).reverse()) await one();
});

async function serve(server: Server): Promise<string> {
  const port = await listenOnLoopback(server);
  undo.push(() => {
    return closeHttp(server);
  });
  return `http://127.0.0.1:${port}`;
}

describe("our client with our executor", () => {
  it("[exec-1] a reader that stops stops the server, and holds up nobody", async () => {
    let written = 0;
    const url = await serve(
      createServer(async (request, response) => {
        if (request.url !== "/endless") {
          response.end("quick");
          return;
        }
        const chunk = Buffer.alloc(64 * 1024, 1);
        response.setMaxListeners(0);
        while (!response.destroyed && written < 512 * 1024 * 1024) {
          written += chunk.length;
          if (!response.write(chunk)) await Promise.race([once(response, "drain"), once(response, "close")]);
        }
      }),
    );
    const ours = await startOurs();
    undo.push(ours.stop);
    const client = await connectExecutor({ url: ours.url, token: TOKEN });
    undo.push(() => client.close());
    const endless = await client.requestStream({ method: "GET", url: `${url}/endless`, headers: [] });
    const reader = endless.body[Symbol.asyncIterator]();
    await reader.next();
    // Where it stands still for as long as fifty other requests take, it stands.
    let before = -1;
    await expect
      .poll(async () => {
        const same = before === written;
        before = written;
        for (let i = 0; i < 50; i++) {
          const answer = await client.request({ method: "GET", url, headers: [] });
          if (answer.body.toString() !== "quick") return false;
        }
        return same && before === written;
      })
      .toBe(true);
    expect(written).toBeLessThan(64 * 1024 * 1024);
    // And goes on with the reader.
    for (let bytes = 0; bytes < 8 * 1024 * 1024; ) bytes += ((await reader.next()).value as Buffer).length;
    expect(written).toBeGreaterThan(before);
    endless.body.destroy();
  });

  it("[exec-4] cut again and again, answers and bodies arrive whole and once", async () => {
    const url = await serve(
      createServer(async (request, response) => {
        const hash = createHash("sha256");
        for await (const chunk of request) hash.update(chunk as Buffer);
        response.setHeader("x-hash", hash.digest("hex"));
        const body = Buffer.alloc(1_500_000, request.url ?? "");
        for (let at = 0; at < body.length; at += 50_000) {
          if (!response.write(body.subarray(at, at + 50_000))) await once(response, "drain");
        }
        response.end();
      }),
    );
    const ours = await startOurs();
    undo.push(ours.stop);
    const proxy = await cuttingProxy(ours.url);
    undo.push(proxy.close);
    const client = (await connectExecutor({ url: proxy.url, token: TOKEN })) as SocketClient;
    undo.push(() => client.close());
    const session = client.sessionId;
    const cutting = setInterval(() => proxy.cut(), 150);
    undo.push(async () => clearInterval(cutting));
    const one = async (name: string): Promise<void> => {
      const sent = randomBytes(700_000);
      async function* pieces() {
        for (let at = 0; at < sent.length; at += 30_000) yield sent.subarray(at, at + 30_000);
      }
      const answer = await client.requestStream({ method: "POST", url: `${url}/${name}`, headers: [], body: pieces() });
      const sha = createHash("sha256").update(sent).digest("hex");
      expect(answer.headers.find((header) => header.name === "x-hash")?.value).toBe(sha);
      const chunks: Buffer[] = [];
      for await (const chunk of answer.body) chunks.push(chunk as Buffer);
      expect(Buffer.concat(chunks).equals(Buffer.alloc(1_500_000, `/${name}`))).toBe(true);
    };
    let rounds = 0;
    while (proxy.cuts < 12 && rounds < 200) {
      await Promise.all(["a", "bb", "ccc", "dddd"].map((name) => one(`${name}${rounds}`)));
      rounds++;
    }
    expect(proxy.cuts).toBeGreaterThanOrEqual(12);
    expect(client.sessionId).toBe(session);
    expect(client.inFlight).toBe(0);
    expect(ours.executor.status()).toMatchObject({ sessions: 1, requests: 0 });
  });

  it("[exec-2] close() ends everything at the far end", async () => {
    const open = new Set<unknown>();
    const url = await serve(
      createServer((_request, response) => {
        open.add(response);
        response.on("close", () => open.delete(response));
        response.write("some");
      }),
    );
    const ours = await startOurs();
    undo.push(ours.stop);
    const client = await connectExecutor({ url: ours.url, token: TOKEN });
    const streams = await Promise.all(
      Array.from({ length: 10 }, () => client.requestStream({ method: "GET", url, headers: [] })),
    );
    for (const { body } of streams) body.on("error", () => {});
    expect(open.size).toBe(10);
    await client.close();
    await expect.poll(() => open.size).toBe(0);
    await expect.poll(() => ours.executor.status()).toMatchObject({ sessions: 0, requests: 0 });
  });
});

/** Cuts all connections that there are, when it is told. */
async function cuttingProxy(target: string) {
  const behind = Number(new URL(target).port);
  const pairs = new Set<TcpSocket>();
  let cuts = 0;
  const server = createTcpServer((near) => {
    const far = connect(behind, "127.0.0.1");
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      pairs.add(from);
      from.pipe(to);
      from.on("error", () => {});
      from.on("close", () => {
        pairs.delete(from);
        to.destroy();
      });
    }
  });
  const port = await listenOnLoopback(server);
  return {
    url: `ws://127.0.0.1:${port}`,
    get cuts() {
      return cuts;
    },
    cut() {
      if (pairs.size > 0) cuts++;
      for (const socket of pairs) socket.destroy();
    },
    close: () =>
      new Promise((resolve) => {
        for (const socket of pairs) socket.destroy();
        server.close(resolve);
      }),
  };
}
