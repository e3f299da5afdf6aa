// What logins ask, on real sockets: documents without an end, answers that never come, and answers that lead elsewhere.

import { createServer, type RequestListener, type Server } from "node:http";
import type { LookupFunction } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { until } from "../../../test/fixtures/wait.js";
import { requestShortly } from "./short-request.js";

const MAX_BYTES = 64 * 1024;
const servers: Server[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await closeHttp(server);
});

async function serve(listener: RequestListener): Promise<{ url: URL; open: () => number }> {
  const server = createServer(listener);
  servers.push(server);
  let open = 0;
  server.on("connection", (socket) => {
    open++;
    socket.once("close", () => open--);
  });
  return { url: new URL(`http://127.0.0.1:${await listenOnLoopback(server)}/doc`), open: () => open };
}

const lookup = ((_name, _options, callback) => callback(null, "127.0.0.1", 4)) as LookupFunction;
const noExecutor = () => Promise.reject(new Error("There is no executor."));

function ask(url: URL, signal = new AbortController().signal) {
  const request = { url, method: "GET" as const, headers: [], body: undefined, lookup, maxBytes: MAX_BYTES, signal };
  return requestShortly({ kind: "http", url: url.href, headers: {} } as never, request, noExecutor as never);
}

describe("a document that a login needs", () => {
  it("is given whole, with its status", async () => {
    const { url } = await serve((_, response) => response.writeHead(404, { "x-a": "b" }).end("none"));
    const answer = await ask(url);
    expect([answer.status, answer.headers["x-a"], answer.body.toString()]).toEqual([404, "b", "none"]);
  });

  it("that has no end is given up at its bound, and so is the connection [bounded] [login-guarded]", async () => {
    let sent = 0;
    const { url, open } = await serve((_, response) => {
      const more = () => {
        if (response.destroyed) return;
        sent += 16_384;
        response.write(Buffer.alloc(16_384, " "), () => setImmediate(more));
      };
      more();
    });
    await expect(ask(url)).rejects.toThrow(`its answer has more than ${MAX_BYTES} bytes`);
    await until("the connection's end", () => open() === 0);
    expect(sent).toBeGreaterThan(MAX_BYTES);
  });

  it.each([
    ["never comes", () => {}],
    ["never ends", (_: unknown, response: { write(text: string): void }) => response.write("{")],
  ])(
    "that %s is given up when its time is over, and so is the connection [bounded] [login-guarded]",
    async (_, listener) => {
      const { url, open } = await serve(listener as RequestListener);
      const time = new AbortController();
      const asked = ask(url, time.signal);
      await until("the request", () => open() === 1);
      time.abort(new Error("its time is over"));
      await expect(asked).rejects.toThrow("its time is over");
      await until("the connection's end", () => open() === 0);
    },
  );

  it("that lies elsewhere is not gone for, and whoever asked is told where [login-guarded]", async () => {
    let asked = 0;
    const elsewhere = await serve((_, response) => {
      asked++;
      response.end("{}");
    });
    const { url } = await serve((_, response) => response.writeHead(302, { location: elsewhere.url.href }).end());
    await expect(ask(url)).rejects.toThrow(`HTTP 302 to ${elsewhere.url.href}`);
    expect(asked).toBe(0);
  });
});
