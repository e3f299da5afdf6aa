// Old and new ways of speaking HTTP, on both sides: earlier protocol versions, the old HTTP+SSE, resumed streams.

import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { hearInTurn } from "../fixtures/in-turn.js";
import { start } from "../fixtures/processes.js";
import { callJson, callText, connectV1, track, waitForTools } from "./clients.js";
import { freePort, type Gateway, root, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { eventsOf, INITIALIZED, initialize, lastOf, openHttpWire, post } from "./wire.js";

const list = (id: number) => `{"jsonrpc":"2.0","id":${id},"method":"tools/list"}`;

describe("a gateway, towards agents,", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ mcpServers: { slow: stdioFixture("slow"), stateful: stdioFixture("stateful") } });
    await waitForTools(await connectV1(gateway.url), "sleep", "count");
  });

  it.each(["2025-11-25", "2025-06-18", "2025-03-26"])("speaks %s [agent-11]", async (version) => {
    const wire = await openHttpWire(gateway.url, version);
    expect(JSON.parse(wire.initialized)).toMatchObject({ id: 0, result: { protocolVersion: version } });
    expect(wire.sessionId).toMatch(/^[\x21-\x7e]+$/);
    expect(lastOf(await wire.send(list(1)))).toContain('"sleep"');
  });

  it("answers a version that it does not know with one that it does", async () => {
    const answer = await post(gateway.url, initialize("1", "2099-01-01"));
    const { result } = JSON.parse(lastOf(answer)) as { result: { protocolVersion: string } };
    expect(result.protocolVersion).toBe("2025-11-25");
  });

  it("takes batches in 2025-03-26, and answers each of their requests [agent-11]", async () => {
    const wire = await openHttpWire(gateway.url, "2025-03-26");
    const call = '{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"count","arguments":{}}}';
    const answer = await wire.send(`[${list(1)},${call},{"jsonrpc":"2.0","id":3,"method":"ping"}]`);
    expect(answer.status).toBe(200);
    const ids = answer.messages
      .flatMap((text) => JSON.parse(text) as { id: unknown }[] | { id: unknown })
      .map(({ id }) => id);
    expect(new Set(ids)).toEqual(new Set([1, "c", 3]));
  });

  it("refuses batches in later versions", async () => {
    const wire = await openHttpWire(gateway.url);
    expect((await wire.send(`[${list(1)}]`)).status).toBe(400);
  });

  it("answers 400 without a session, 404 for an unknown one, 202 for notifications", async () => {
    expect((await post(gateway.url, list(1))).status).toBe(400);
    expect((await post(gateway.url, list(1), { "mcp-session-id": "made-up" })).status).toBe(404);
    const wire = await openHttpWire(gateway.url);
    expect((await wire.send(INITIALIZED)).status).toBe(202);
  });

  it("refuses a foreign Host or Origin [agent-8]", async () => {
    const wire = await openHttpWire(gateway.url);
    expect((await wire.post(list(1), { origin: "http://evil.example.com" })).status).toBe(403);
    expect((await wire.post(list(1), { origin: gateway.origin })).status).toBe(200);
  });

  it("serves the old HTTP+SSE at /sse", async () => {
    const client = track(new Client({ name: "old", version: "1" }, { capabilities: {} }));
    await client.connect(new SSEClientTransport(new URL(`${gateway.origin}/sse`)));
    hearInTurn(client.transport);
    expect(await callJson(client, "sleep", { ms: 5 })).toMatchObject({ slept: 5 });
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
    await client.callTool({ name: "sleep", arguments: { ms: 60, everyMs: 20 } }, undefined, { onprogress });
    expect(seen).toEqual([20, 40]);
  });

  it("a stream that broke in the middle of a call is resumed by Last-Event-ID, and nothing is lost [agent-12]", async () => {
    const wire = await openHttpWire(gateway.url);
    const headers = { "mcp-session-id": wire.sessionId, "mcp-protocol-version": "2025-11-25" };
    const abort = new AbortController();
    const params =
      '{"name":"sleep","arguments":{"ms":1500,"everyMs":100,"label":"resumed"},"_meta":{"progressToken":"p"}}';
    const response = await fetch(gateway.url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: `{"jsonrpc":"2.0","id":9,"method":"tools/call","params":${params}}`,
      signal: abort.signal,
    });
    expect(response.headers.get("content-type")).toContain("text/event-stream");
    let before = "";
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    while (!before.includes("resumed 300")) {
      const { value, done } = (await reader?.read()) ?? { done: true, value: undefined };
      if (done) break;
      before += decoder.decode(value, { stream: true });
    }
    const complete = before.slice(0, before.lastIndexOf("\n\n") + 2);
    const lastId = [...complete.matchAll(/^id: ?(.*)$/gm)].at(-1)?.[1] ?? "";
    expect(lastId).not.toBe("");
    abort.abort();
    const resumed = await fetch(gateway.url, {
      headers: { ...headers, accept: "text/event-stream", "last-event-id": lastId },
    });
    expect(resumed.status).toBe(200);
    const messages = [...eventsOf(complete), ...eventsOf(await resumed.text())];
    const progress = messages.map((text) => JSON.parse(text) as { params?: { progress: number }; result?: unknown });
    expect(progress.filter(({ params: seen }) => seen).map(({ params: seen }) => seen?.progress)).toEqual(
      Array.from({ length: 14 }, (_, n) => (n + 1) * 100),
    );
    expect(progress.at(-1)).toMatchObject({ id: 9, result: expect.anything() });
  });
});

describe("a gateway, towards servers,", () => {
  it.each([
    ["streamableHttp", "http", "/mcp"],
    ["sse", "sse", "/sse"],
    // Streamable is tried first; the old way is what is left.
    ["sse", "http", "/sse"],
  ])("speaks with server-everything as %s, configured as %s", async (mode, type, path) => {
    const port = await startEverything(mode);
    const entry = { type, url: `http://127.0.0.1:${port}${path}` };
    const gateway = await startGateway({ mcpServers: { everything: entry } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "echo");
    expect(await callText(client, "echo", { message: "over HTTP" })).toBe("Echo: over HTTP");
    const seen: number[] = [];
    const onprogress = ({ progress }: { progress: number }) => void seen.push(progress);
    const params = { name: "trigger-long-running-operation", arguments: { duration: 0.5, steps: 5 } };
    await client.callTool(params, undefined, { onprogress });
    expect(seen.length).toBeGreaterThanOrEqual(4);
  });

  it("a server that closes its stream in the middle of a call is asked again by Last-Event-ID", async () => {
    const fixture = await startHttpFixture("conformance");
    const gateway = await startGateway({ mcpServers: { conformance: fixture.entry } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "test_reconnection");
    expect(await callText(client, "test_reconnection")).toContain("completed successfully");
  });
});

async function startEverything(mode: string): Promise<number> {
  const port = await freePort();
  const file = join(root, "node_modules/@modelcontextprotocol/server-everything/dist/index.js");
  const { stop } = start("server-everything", process.execPath, [file, mode], { ...process.env, PORT: String(port) });
  onTestFinished(() => stop("SIGKILL"));
  await until("server-everything", async () => (await fetch(`http://127.0.0.1:${port}/`)).status > 0);
  return port;
}
