// The door of an executor: who is let in, and who is not.

import { connect } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RawClient } from "../../../test/fixtures/executor/raw-client.js";
import { get, type ServedExecutor, startServed, TOKEN } from "../../../test/fixtures/executor/served.js";
import { everyNameIs } from "../../../test/fixtures/lookup.js";
import { MAX_CONNECTIONS } from "../../sockets/limits.js";
import { listenForClients } from "./listener.js";

let served: ServedExecutor;
beforeEach(async () => {
  served = await startServed();
});
afterEach(() => served.stop());

/** The whole answer to an upgrade with these headers. */
async function upgrade(headers: Record<string, string>, path = "/"): Promise<string> {
  const { port } = new URL(served.url);
  const lines = Object.entries({
    host: `127.0.0.1:${port}`,
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), "127.0.0.1");
    let text = "";
    socket.on("data", (data) => {
      text += data.toString("latin1");
      if (text.startsWith("HTTP/1.1 101")) socket.destroy();
    });
    socket.on("close", () => resolve(text));
    socket.on("error", reject);
    socket.write(`GET ${path} HTTP/1.1\r\n${lines.join("")}\r\n`);
  });
}

test("[exec-7] [exec-keep] a client without the token gets 401, whatever it shows in its place", async () => {
  const missing = await upgrade({});
  expect(missing).toMatch(/^HTTP\/1\.1 401 [\s\S]*www-authenticate: Bearer[\s\S]*missing websocket bearer token$/);
  for (const wrong of ["x", `${TOKEN}x`, TOKEN.slice(1), TOKEN.toUpperCase()]) {
    expect(await upgrade({ authorization: `Bearer ${wrong}` })).toMatch(
      /^HTTP\/1\.1 401 [\s\S]*invalid websocket bearer/,
    );
  }
  for (const scheme of [`Basic ${TOKEN}`, TOKEN, "Bearer", `Bearer ${TOKEN} more`]) {
    expect(await upgrade({ authorization: scheme })).toMatch(/^HTTP\/1\.1 401 [\s\S]*invalid authorization header$/);
  }
  expect(await upgrade({}, `/?token=${TOKEN}`)).toMatch(/^HTTP\/1\.1 401 /);
  expect(served.executor.status().sockets).toBe(0);
  expect(served.log.lines.join("\n")).not.toContain(TOKEN.slice(1));
});

test("[exec-7] [exec-keep] a browser gets 403, with the token or without", async () => {
  for (const origin of ["http://localhost", "null", served.url.replace("ws", "http")]) {
    expect(await upgrade({ origin, authorization: `Bearer ${TOKEN}` })).toMatch(/^HTTP\/1\.1 403 /);
  }
});

test("the right token is let in, on any path, by any spelling of the scheme; an offered protocol is passed over", async () => {
  for (const path of ["/", "/some/path?query"]) {
    expect(await upgrade({ authorization: `bearer ${TOKEN}` }, path)).toMatch(/^HTTP\/1\.1 101 /);
  }
  const offered = await upgrade({ authorization: `Bearer ${TOKEN}`, "sec-websocket-protocol": "a, b" });
  expect(offered).toMatch(/^HTTP\/1\.1 101 /);
  expect(offered.toLowerCase()).not.toContain("sec-websocket-protocol");
  const deflate = { authorization: `Bearer ${TOKEN}`, "sec-websocket-extensions": "permessage-deflate" };
  expect((await upgrade(deflate)).toLowerCase()).not.toContain("permessage-deflate");
});

test("[exec-keep] /readyz and /healthz answer without a token, nothing else does", async () => {
  const base = served.url.replace("ws", "http");
  for (const path of ["/readyz", "/healthz", "/healthz?x"]) expect((await fetch(base + path)).status).toBe(200);
  expect((await fetch(base)).status).toBe(400);
  expect((await fetch(`${base}/readyz`, { method: "POST" })).status).toBe(400);
});

test("[bounded] only so many connections are let in, and there is room again when one is gone", async () => {
  const clients = await Promise.all(
    Array.from({ length: MAX_CONNECTIONS }, () => RawClient.dial(served.url, { token: TOKEN })),
  );
  expect(await upgrade({ authorization: `Bearer ${TOKEN}` })).toMatch(/^HTTP\/1\.1 503 /);
  clients[0]?.ws.terminate();
  await expect.poll(() => served.executor.status().sockets).toBe(MAX_CONNECTIONS - 1);
  const client = await RawClient.plain(served.url, { token: TOKEN });
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "h"))).result.status).toBe(200);
});

test("[exec-7] without a token it listens on loopback only", async () => {
  for (const host of ["0.0.0.0", "::", "192.0.2.1", "example.com", "127.0.0.1.example.com"]) {
    await expect(listenForClients(served.executor, { host, port: 0, token: undefined })).rejects.toThrow(/loopback/);
  }
  await expect(listenForClients(served.executor, { host: "127.0.0.1", port: 0, token: "" })).rejects.toThrow(/empty/);
  const open = await listenForClients(served.executor, { host: "localhost", port: 0, token: undefined });
  const client = await RawClient.plain(open.url);
  expect((await client.call("http/request", get(`${served.origin.url}/hello`, "h"))).result.status).toBe(200);
  await open.close();
  expect((await client.end()).code).toBe(1001);
});

test("[exec-7] without a token it does not listen where a hosts file sends localhost elsewhere", async () => {
  const names = everyNameIs("0.0.0.0");
  try {
    const listening = listenForClients(served.executor, { host: "localhost", port: 0, token: undefined });
    await expect(listening).rejects.toThrow(/loopback address only, not on 0\.0\.0\.0/);
    expect(names.lookups).toBe(1);
  } finally {
    names.restore();
  }
});

test("a port that is taken is told, and a message that is too large ends its socket alone", async () => {
  const { port } = new URL(served.url);
  const taken = listenForClients(served.executor, { host: "127.0.0.1", port: Number(port), token: TOKEN });
  await expect(taken).rejects.toThrow(/EADDRINUSE/);
  const large = await RawClient.plain(served.url, { token: TOKEN });
  const other = await RawClient.plain(served.url, { token: TOKEN });
  large.send(Buffer.alloc(48 * 1024 * 1024, "x"));
  expect((await large.end()).code).toBeGreaterThan(1000);
  expect((await other.call("http/request", get(`${served.origin.url}/hello`, "h"))).result.status).toBe(200);
});
