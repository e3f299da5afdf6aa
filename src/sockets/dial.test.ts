// Why there is no socket, in words that help.

import { createServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { closeHttp, listenOnLoopback } from "../../test/fixtures/loopback.js";
import { dialSocket } from "./dial.js";
import { Close } from "./socket.js";

const undo: (() => void)[] = [];
afterEach(() => {
  for (const one of undo.splice(0)) one();
});

async function page(listener: RequestListener, upgradeStatus?: string): Promise<number> {
  const server = createServer(listener);
  if (upgradeStatus !== undefined) {
    server.on("upgrade", (_request, socket) => socket.end(`HTTP/1.1 ${upgradeStatus}\r\nconnection: close\r\n\r\n`));
  }
  const port = await listenOnLoopback(server);
  undo.push(() => {
    void closeHttp(server);
  });
  return port;
}

describe("dialling", () => {
  it.each([
    ["401 Unauthorized", /refused the token \(401\): give the token/],
    ["403 Forbidden", /forbids the connection \(403\)/],
    ["503 Service Unavailable", /no room .* \(503\): try again/],
    ["302 Found", /redirects \(302\): give the URL that it leads to/],
    ["404 Not Found", /answered 404 instead of a WebSocket: the URL is not that of an executor/],
  ])("says what to do about an upgrade that is answered with %s", async (status, message) => {
    const port = await page(() => {}, status);
    const dialled = dialSocket(`ws://127.0.0.1:${port}/x?secret=hush`, { token: "hush-hush" });
    const error: unknown = await dialled.catch((reason: unknown) => reason);
    expect(error).toMatchObject({
      code: "unavailable",
      status: Number.parseInt(status, 10),
      message: expect.stringMatching(message),
    });
    expect(String(error)).not.toContain("hush");
  });

  it("refuses a page that is no WebSocket", async () => {
    const port = await page((_request, response) => response.end("<html>"));
    await expect(dialSocket(`http://127.0.0.1:${port}`)).rejects.toThrow(/answered 200 instead of a WebSocket/);
  });

  it("says what to look at where nobody listens", async () => {
    const port = await page(() => {});
    for (const one of undo.splice(0)) one();
    await expect(dialSocket(`ws://127.0.0.1:${port}`)).rejects.toMatchObject({
      networkCode: "ECONNREFUSED",
      message: expect.stringMatching(/is it running, and is the port right\?/),
    });
  });

  it.each([
    ["127.0.0.1:4100", /is not for WebSockets|not a URL/],
    ["not a url", /not a URL/],
    ["ftp://host/", /ftp:\/\/ is not for WebSockets/],
  ])("refuses %s, which is no URL of a WebSocket", async (url, message) => {
    await expect(dialSocket(url)).rejects.toThrow(message);
  });

  it("gives up a peer that accepts the connection and says nothing", async () => {
    const server = createTcpServer(() => {});
    const port = await listenOnLoopback(server);
    undo.push(() => server.close());
    await expect(dialSocket(`ws://127.0.0.1:${port}`, { timeoutMs: 50 })).rejects.toMatchObject({
      code: "unavailable",
    });
    const control = new AbortController();
    const dialled = dialSocket(`ws://127.0.0.1:${port}`, { signal: control.signal });
    const ending = expect(dialled).rejects.toMatchObject({ code: "cancelled" });
    control.abort(new Error("enough"));
    await ending;
  });

  it("[exec-7] shows the token in its header, http:// is ws://, and what comes early waits for its reader", async () => {
    const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await new Promise((resolve) => server.once("listening", resolve));
    undo.push(() => server.close());
    const headers: unknown[] = [];
    server.on("connection", (ws, request) => {
      headers.push(request.headers.authorization, request.headers["x-more"], request.headers.origin);
      ws.send("early");
    });
    const { port } = server.address() as AddressInfo;
    const socket = await dialSocket(`http://127.0.0.1:${port}#fragment`, {
      token: "hush",
      headers: { "x-more": "1" },
    });
    const message = await new Promise<string>((resolve) => {
      socket.attach({ onMessage: (bytes) => resolve(bytes.toString()), onDrain() {}, onClose() {} });
    });
    expect(message).toBe("early");
    expect(headers).toEqual(["Bearer hush", "1", undefined]);
    socket.close(Close.normal, "done");
  });
});
