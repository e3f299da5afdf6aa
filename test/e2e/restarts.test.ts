// Deaths that an agent does not notice: of a server between two calls, and of the gateway between two requests.

import { describe, expect, it } from "vitest";
import { callJson, callText, connectStdioV1, connectV1, connectV2, toolNames, waitForTools } from "./clients.js";
import { isAlive, sleep, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { untilKept } from "./operator.js";
import { lastOf, openHttpWire, post } from "./wire.js";

interface Pid {
  readonly pid: number;
}

describe.concurrent("a server that dies", () => {
  it("by kill -9 between two calls answers the second [restart-unseen]", async () => {
    const gateway = await startGateway({ mcpServers: { crash: stdioFixture("crash") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "pid");
    const first = await callJson<Pid>(client, "pid");
    for (let round = 0; round < 3; round++) {
      const { pid } = await callJson<Pid>(client, "pid");
      process.kill(pid, "SIGKILL");
      await until("the server's end", () => !isAlive(pid));
      const next = await callJson<Pid>(client, "pid");
      expect(next.pid).not.toBe(pid);
    }
    expect(isAlive(first.pid)).toBe(false);
  });

  it("by kill -9 at the moment of a call gives an answer or an honest error, and then works", async () => {
    const gateway = await startGateway({ mcpServers: { crash: stdioFixture("crash") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "pid");
    const { pid } = await callJson<Pid>(client, "pid");
    process.kill(pid, "SIGKILL");
    await callJson<Pid>(client, "pid").catch((error: { code: number }) => expect(error.code).toBe(-31003));
    expect((await callJson<Pid>(client, "pid")).pid).not.toBe(pid);
  });

  it("in the middle of a call leaves an outcome that is said to be unknown, and the call is not repeated [unknown-is-said]", async () => {
    const gateway = await startGateway({ mcpServers: { crash: stdioFixture("crash") } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "crash");
    await expect(client.callTool({ name: "crash", arguments: {} })).rejects.toMatchObject({ code: -31003 });
    // A repeated call would have killed the new one as well.
    const { pid } = await callJson<Pid>(client, "pid");
    await sleep(300);
    expect((await callJson<Pid>(client, "pid")).pid).toBe(pid);
  });

  it("an HTTP server that was restarted has forgotten its sessions: it is initialised again", async () => {
    const fixture = await startHttpFixture("stateful");
    const gateway = await startGateway({ mcpServers: { stateful: fixture.entry } });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "count");
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
    await fixture.kill();
    await startHttpFixture("stateful", [], fixture.port);
    expect(await callJson(client, "count")).toMatchObject({ count: 1 });
  });
});

describe.concurrent("a gateway that dies", () => {
  it.each(["SIGKILL", "SIGTERM"] as const)(
    "by %s goes on with its sessions when it is back [restart-unseen]",
    async (signal) => {
      const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
      const v1 = await connectV1(gateway.url);
      const v2 = await connectV2(gateway.url);
      await waitForTools(v1, "count");
      await callJson(v2, "count");
      await gateway.stop(signal);
      const next = await gateway.again();
      // The same clients, with the sessions that they have: no initialize in between.
      expect(await callJson(v1, "count")).toMatchObject({ count: expect.any(Number) });
      expect(await callJson(v2, "count")).toMatchObject({ count: expect.any(Number) });
      expect(await toolNames(v1)).toContain("count");
      expect(next.pid).not.toBe(gateway.pid);
    },
  );

  it("by SIGKILL a session goes on with its log level and its subscriptions, and is told on its first stream that its lists and what it subscribed to may have changed [restart-unseen]", async () => {
    const mcpServers = { resources: stdioFixture("resources"), logger: stdioFixture("logger") };
    const gateway = await startGateway({ mcpServers });
    const client = await connectV1(gateway.url);
    await waitForTools(client, "subscriptions", "asked");
    await until("its resources", async () => (await client.listResources()).resources.length > 0);
    const wire = await openHttpWire(gateway.url);
    const ask = async (method: string, params: object) =>
      JSON.parse(lastOf(await wire.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })))) as {
        result?: { content?: [{ text: string }] };
      };
    const textOf = async (name: string) => (await ask("tools/call", { name })).result?.content?.[0].text ?? "";
    expect((await ask("resources/subscribe", { uri: "fixture://one" })).result).toEqual({});
    expect((await ask("logging/setLevel", { level: "alert" })).result).toEqual({});
    // At once: what was answered is on disk.
    await gateway.stop("SIGKILL");
    await gateway.again();
    const headers = {
      accept: "text/event-stream",
      "mcp-session-id": wire.sessionId,
      "mcp-protocol-version": "2025-11-25",
    };
    const listening = new AbortController();
    const stream = await fetch(gateway.url, { headers, signal: listening.signal });
    let heard = "";
    const reading = (async () => {
      for await (const bytes of stream.body ?? []) heard += Buffer.from(bytes as Uint8Array).toString();
    })().catch(() => {});
    const told = ["tools/list_changed", "resources/list_changed", "resources/updated", "fixture://one"];
    await until("the catching up", () => told.every((text) => heard.includes(text)));
    listening.abort();
    await reading;
    // The servers are new ones as well: they know what they are told now.
    await until("the subscription", async () => (await textOf("subscriptions")).includes("fixture://one"));
    await until("the level", async () => (await textOf("asked")).includes("alert"));
  });

  it("a session that was ended stays ended, over a kill too, and a made-up one is 404 [ack-is-durable]", async () => {
    const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
    const wire = await openHttpWire(gateway.url);
    const headers = { "mcp-session-id": wire.sessionId, "mcp-protocol-version": "2025-11-25" };
    const list = '{"jsonrpc":"2.0","id":1,"method":"tools/list"}';
    await wire.close();
    expect((await post(gateway.url, list, headers)).status).toBe(404);
    const forged = `${wire.sessionId.slice(0, -2)}${wire.sessionId.endsWith("AA") ? "BB" : "AA"}`;
    expect((await post(gateway.url, list, { ...headers, "mcp-session-id": forged })).status).toBe(404);
    const other = await openHttpWire(gateway.url);
    await gateway.stop("SIGKILL");
    const next = await gateway.again();
    expect((await post(next.url, list, headers)).status).toBe(404);
    expect((await post(next.url, list, { ...headers, "mcp-session-id": other.sessionId })).status).toBe(200);
  });

  it("a session that nobody used for too long is over, though it is in no memory", async () => {
    const config = { mcpServers: { stateful: stdioFixture("stateful") }, sessions: { idleMs: 1_000 } };
    const gateway = await startGateway(config);
    const { sessionId } = await openHttpWire(gateway.url);
    await gateway.stop("SIGKILL");
    await sleep(1_200);
    const next = await gateway.again();
    const headers = { "mcp-session-id": sessionId, "mcp-protocol-version": "2025-11-25" };
    expect((await post(next.url, '{"jsonrpc":"2.0","id":1,"method":"tools/list"}', headers)).status).toBe(404);
  });

  it("tools stay listed while their server is down, from disk after a restart too [menu-survives]", async () => {
    const fixture = await startHttpFixture("stateful");
    const gateway = await startGateway({ mcpServers: { stateful: fixture.entry, slow: stdioFixture("slow") } });
    await waitForTools(await connectV1(gateway.url), "count", "sleep");
    await fixture.kill();
    expect(await toolNames(await connectV1(gateway.url))).toContain("count");
    await untilKept(gateway, "count", "sleep");
    await gateway.stop("SIGKILL");
    const next = await gateway.again();
    const client = await connectV1(next.url);
    // At once, not after waiting: its server never comes back.
    expect(await toolNames(client)).toEqual(expect.arrayContaining(["count", "sleep"]));
    await expect(callText(client, "count")).rejects.toMatchObject({ code: -31001 });
    expect(await callJson(client, "sleep", { ms: 1 })).toMatchObject({ slept: 1 });
  });

  it("an agent on stdio that joined it goes on, or is told [restart-unseen]", async () => {
    const gateway = await startGateway({ mcpServers: { stateful: stdioFixture("stateful") } });
    const client = await connectStdioV1(gateway);
    await waitForTools(client, "count");
    await gateway.stop("SIGKILL");
    await gateway.again();
    expect(await callJson(client, "count")).toMatchObject({ count: expect.any(Number) });
  });
});

it.concurrent("a call in flight at a kill of the gateway ends in an error, not in silence [restart-unseen]", async () => {
  const gateway = await startGateway({ mcpServers: { slow: stdioFixture("slow") } });
  const client = await connectV1(gateway.url);
  await waitForTools(client, "sleep");
  const wire = await openHttpWire(gateway.url);
  const params = '{"name":"sleep","arguments":{"ms":20000,"label":"in flight"}}';
  const call = wire.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`).then(lastOf);
  call.catch(() => {});
  await until("it to be at work", async () => (await callText(client, "started")).includes("in flight"));
  await gateway.stop("SIGKILL");
  await expect(call).rejects.toThrow();
});
