// What ends in the middle: bodies in tiny pieces, bodies whose token ends while they come, calls that the end of a drain
// cuts off, and a server that falls silent.

import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { linux, MB, rss } from "../faults/measure.js";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connectStdioV1, connectV1, waitForTools } from "./clients.js";
import { type Gateway, sleep, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { createToken, runCli, toolway } from "./operator.js";
import { initialize, openHttpWire } from "./wire.js";

/** A POST to `/mcp` by hand: what comes back, as it comes. */
function openPost(gateway: Gateway, headers: readonly string[]) {
  const socket = connect(gateway.port, "127.0.0.1");
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk;
  });
  socket.on("error", () => {});
  const lines = ["POST /mcp HTTP/1.1", `Host: 127.0.0.1:${gateway.port}`, "Content-Type: application/json"];
  socket.write([...lines, "Accept: application/json, text/event-stream", ...headers, "", ""].join("\r\n"));
  return { socket, answer: () => answer };
}

describe.skipIf(!linux)("a body in pieces of one byte", () => {
  it("costs about what it has, and not a hundred times as much [bounded]", async () => {
    const gateway = await startGateway({ mcpServers: {} });
    const before = rss(gateway.pid);
    const { socket } = openPost(gateway, ["Transfer-Encoding: chunked"]);
    const bytes = 2 * MB;
    const piece = "1\r\n \r\n".repeat(10_000);
    for (let sent = 0; sent < bytes; sent += 10_000) {
      if (!socket.write(piece)) await new Promise((done) => socket.once("drain", done));
    }
    await until("the body", async () => (await status(gateway)).memory.heldBytes >= bytes * 0.9);
    expect(rss(gateway.pid) - before).toBeLessThan(100 * MB);
    socket.destroy();
  });
});

async function status(gateway: Gateway): Promise<{ memory: { heldBytes: number } }> {
  const { out } = await toolway(gateway, "status", "--json");
  return JSON.parse(out) as { memory: { heldBytes: number } };
}

describe("a body whose token is revoked while it comes", () => {
  it("does nothing any more [token-ends]", async () => {
    const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } }, { auth: true });
    const token = await createToken(gateway, "guest", "default");
    const body = initialize("1");
    const headers = [`Authorization: Bearer ${token}`, `Content-Length: ${body.length}`];
    const { socket, answer } = openPost(gateway, headers);
    socket.write(body.slice(0, -1));
    await sleep(200);
    await toolway(gateway, "token", "revoke", "guest");
    socket.write(body.slice(-1));
    await until("an answer", () => answer().includes("\r\n\r\n"));
    expect(answer()).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });
});

describe("a call that the end of a drain cuts off", () => {
  it("is said to be of unknown outcome, over HTTP and stdio [unknown-is-said] [drain]", async () => {
    const gateway = await startGateway({ mcpServers: { slow: stdioFixture("slow") } }, { args: ["--drain", "1"] });
    await waitForTools(await connectV1(gateway.url), "sleep");
    const wire = await openHttpWire(gateway.url);
    const call = '{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"sleep","arguments":{"ms":60000}}}';
    const overHttp = wire.send(call);
    const client = await connectStdioV1(gateway);
    const overStdio = client.callTool({ name: "sleep", arguments: { ms: 60_000, label: "stdio" } }).then(
      () => undefined,
      (error: unknown) => error,
    );
    await until("both to be at work", async () => JSON.stringify(await started(wire)).includes("stdio"));
    gateway.signal("SIGTERM");
    const { messages } = await overHttp;
    expect(JSON.parse(messages.at(-1) ?? "{}")).toMatchObject({ id: 7, error: { code: -31003 } });
    expect(await overStdio).toMatchObject({ code: -31003 });
  });
});

const started = (wire: { send(text: string): Promise<{ messages: readonly string[] }> }) =>
  wire
    .send('{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"started","arguments":{}}}')
    .then(({ messages }) => messages);

describe("toolway doctor of a server that answers another id, and then nothing", () => {
  it("says so at once, and does not end without a word", async () => {
    const server = createServer((request, response) => {
      request.resume().on("end", () => {
        response.setHeader("content-type", "application/json");
        response.end('{"jsonrpc":"2.0","id":"another","result":{}}');
      });
    });
    const url = `http://127.0.0.1:${await listenOnLoopback(server)}/mcp`;
    const dir = await temporaryDirectory();
    const config = join(dir, "toolway.json");
    await writeFile(config, JSON.stringify({ mcpServers: { odd: { url, connectTimeoutMs: 30_000 } } }));
    const { code, out } = await runCli("doctor", config, "--state", join(dir, "state"));
    expect(out).toContain("not with the reply to this request");
    expect(code).toBe(1);
    await closeHttp(server);
  });
});
