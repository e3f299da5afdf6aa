// What arrives is what was sent, whatever the eras; and the gateway's own doings (names, scopes, search, headers) are the
// same in both.

import { beforeAll, describe, expect, it } from "vitest";
import { COMBINATIONS, connect, ERAS, fourServers, modernRequest, SERVERS, send } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { lastOf, ODD_TOKENS, openHttpWire, post } from "./wire.js";

/** Unknown members at each level, numbers that JavaScript cannot hold, odd text. */
const RESULT =
  '{"content":[{"type":"text","text":"\\u2028é","x-item":[1.0,-0]}],"x-big":12345678901234567890,' +
  '"structuredContent":{"n":1E2},"_meta":{"fixture/meta":{"deep":[null]}}}';
/** A modern server says of which type its result is. */
const template = (server: string) => {
  const result = server.startsWith("modern") ? RESULT.replace("{", '{"resultType":"complete",') : RESULT;
  return `{"x-top":1.50,"jsonrpc":"2.0","result":${result},"id":@ID@}`;
};

describe("a result crosses the eras", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    gateway = await startGateway({ names: "prefixed", mcpServers: await fourServers("fidelity") });
    await (await connect("legacy", gateway)).waitFor(...SERVERS.map((server) => `${server}__answer`));
  });

  /** The text of the answer, as it came. */
  async function called(era: string, name: string, args: object): Promise<string> {
    const params = { name, arguments: args };
    if (era === "legacy") {
      const wire = await openHttpWire(gateway.url);
      return lastOf(await wire.send(JSON.stringify({ jsonrpc: "2.0", id: "q", method: "tools/call", params })));
    }
    const { text, headers } = modernRequest({ method: "tools/call", params, id: "q" });
    return lastOf(await post(gateway.url, text, headers));
  }

  describe.each(COMBINATIONS)("from $server to a $era agent", ({ era, server }) => {
    it("members that nobody knows survive, and so do numbers as they were written", async () => {
      const text = await called(era, `${server}__answer`, { template: template(server) });
      for (const part of [
        '"x-item":[1.0,-0]',
        '"x-big":12345678901234567890',
        '"n":1E2',
        '"fixture/meta":{"deep":[null]}',
      ])
        expect(text).toContain(part);
      expect(JSON.parse(text)).toMatchObject({ id: "q", "x-top": 1.5 });
      const { result } = JSON.parse(text) as { result: Record<string, unknown> };
      if (era === "modern") expect(result["resultType"]).toBe("complete");
    });

    it("progress tokens come back as they were written, numbers that JavaScript cannot hold among them [eras-meet]", async () => {
      const notification =
        '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":@TOKEN@,"progress":1}}';
      const args = { notification, template: template(server) };
      const params = { name: `${server}__notify_first`, arguments: args };
      const wire = era === "legacy" ? await openHttpWire(gateway.url) : undefined;
      for (const token of ODD_TOKENS) {
        const meta = { progressToken: "@CHOSEN@" };
        const { text, headers } = modernRequest({ method: "tools/call", params, id: "q", meta });
        const legacy = JSON.stringify({
          jsonrpc: "2.0",
          id: "q",
          method: "tools/call",
          params: { ...params, _meta: meta },
        });
        const chosen = (request: string) => request.replace('"@CHOSEN@"', () => token);
        const answer = await (wire?.send(chosen(legacy)) ?? post(gateway.url, chosen(text), headers));
        expect(answer.messages[0]).toBe(notification.replace("@TOKEN@", () => token));
      }
    });

    it("an agent's notification that nobody knows reaches the server, in the server's terms [eras-meet]", async () => {
      const url = `${gateway.url}/${server}`;
      const method = `notifications/${era}/thing`;
      const params = '"n":1.0,"big":9007199254740993';
      if (era === "legacy") {
        const wire = await openHttpWire(url);
        await wire.send(`{"jsonrpc":"2.0","method":"${method}","params":{${params}}}`);
        await wire.send('{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}');
      } else {
        const { text, headers } = modernRequest({ method, id: "@" });
        await post(url, text.replace('"id":"@",', "").replace('"params":{', `"params":{${params},`), headers);
      }
      let told: string | undefined;
      await until("the notification", async () => {
        const agent = await connect(era, url);
        told = (await agent.text("told")).split("\n").find((line) => line.includes(method));
        return told !== undefined;
      });
      expect(told).toContain(params);
      // What a modern message says of its sender would be a lie in a legacy session.
      const envelope = '"io.modelcontextprotocol/protocolVersion":"2026-07-28"';
      if (server.startsWith("modern")) expect(told).toContain(envelope);
      else expect(told).not.toContain("io.modelcontextprotocol/");
    });

    it("an error's code, data and unknown members survive", async () => {
      const error = '{"code":-31999,"message":"no","data":{"x":[1.0]},"x-error":true}';
      const text = await called(era, `${server}__answer`, { template: `{"jsonrpc":"2.0","id":@ID@,"error":${error}}` });
      expect(text).toContain(error);
    });

    it("a large result arrives whole", async () => {
      const bytes = 3_000_000;
      const { result } = JSON.parse(await called(era, `${server}__big`, { bytes })) as {
        result: { content: { text: string }[]; x: number };
      };
      const unit = 'a"\\\u2028é😀';
      expect(result.content[0]?.text).toBe(unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit))));
      expect(result.x).toBe(1);
    });

    it("tools are listed with everything that their server says of them", async () => {
      const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
      const text =
        era === "legacy"
          ? lastOf(await (await openHttpWire(gateway.url)).send(JSON.stringify(list)))
          : (await send(gateway.url, { method: "tools/list" })).messages.at(-1);
      const { result } = JSON.parse(text ?? "") as { result: { tools: { name: string }[]; ttlMs?: number } };
      const tool = result.tools.find(({ name }) => name === `${server}__answer`);
      expect(tool).toMatchObject({
        "x-unknown": {},
        inputSchema: { "x-schema": 1.5, properties: { template: { "x-deep": { y: null } } } },
        annotations: { "x-hint": "h" },
      });
      expect(typeof result.ttlMs).toBe(era === "modern" ? "number" : "undefined");
    });

    it("what the agent says in _meta reaches the server", async () => {
      const name = `${server}__echo_raw`;
      const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
      const _meta = { traceparent, "acme/key": { a: [1] } };
      const request = { method: "tools/call", params: { name, arguments: {}, "x-param": 1 }, meta: _meta };
      let text: string;
      if (era === "modern") text = (await send(gateway.url, request)).messages.at(-1) ?? "";
      else {
        const params = { ...request.params, _meta };
        const wire = await openHttpWire(gateway.url);
        text = lastOf(await wire.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params })));
      }
      const { result } = JSON.parse(text) as { result: { content: { text: string }[] } };
      const seen = JSON.parse(result.content[0]?.text ?? "") as { params: Record<string, unknown> };
      expect(seen.params).toMatchObject({ name: "echo_raw", "x-param": 1, _meta });
      const own = Object.keys(seen.params["_meta"] as object).filter((key) =>
        key.startsWith("io.modelcontextprotocol/"),
      );
      // The envelope belongs to the hop, and a legacy one has none.
      expect(own.length > 0).toBe(server.startsWith("modern"));
    });
  });
});

describe("an argument that is a header too", () => {
  let gateway: Gateway;
  const args = { region: "eu ", priority: 3, urgent: false, plain: "p" };

  beforeAll(async () => {
    gateway = await startGateway({ names: "prefixed", mcpServers: await fourServers("conformance") });
    await (await connect("legacy", gateway)).waitFor(...SERVERS.map((server) => `${server}__test_x_mcp_header`));
  });

  it.each(COMBINATIONS)("of a $era agent reaches $server, in a header where the server reads one", async (one) => {
    const agent = await connect(one.era, gateway);
    // The SDK of the modern era makes the headers from the list that it has seen.
    await agent.names();
    const seen = JSON.parse(await agent.text(`${one.server}__test_x_mcp_header`, args)) as Record<string, object>;
    expect(seen["args"]).toEqual(args);
    const headers = {
      "mcp-param-region": `=?base64?${Buffer.from("eu ").toString("base64")}?=`,
      "mcp-param-priority": "3",
      "mcp-param-urgent": "false",
    };
    expect(seen["headers"]).toEqual(one.server === "modern_http" ? headers : {});
  });

  it.each(SERVERS)(
    "a modern agent whose header differs from the body is refused before %s hears of it",
    async (server) => {
      const name = `${server}__test_x_mcp_header`;
      const request = { method: "tools/call", params: { name, arguments: { region: "eu" } } };
      const wrong = await send(gateway.url, { ...request, headers: { "mcp-param-region": "us" } });
      expect(wrong.status).toBe(400);
      expect(wrong.reply.error).toMatchObject({ code: -32020 });
      const missing = await send(gateway.url, request);
      expect(missing.reply.error).toMatchObject({ code: -32020 });
      const right = await send(gateway.url, { ...request, headers: { "mcp-param-region": "eu" } });
      expect(right.status).toBe(200);
    },
  );
});

describe("a gateway serves the modern era in its own ways", () => {
  it("/mcp/<server> is one server alone, under its own names", async () => {
    const gateway = await startGateway({ names: "prefixed", mcpServers: await fourServers("asker") });
    for (const era of ERAS) {
      for (const server of SERVERS) {
        const agent = await connect(era, `${gateway.url}/${server}`);
        await agent.waitFor("elicit");
        expect((await agent.names()).filter((name) => name.includes("__"))).toEqual([]);
        expect(await agent.text("elicit", { what: "alone?" })).toContain(`${era}: alone?`);
        await expect(agent.call("legacy_http__elicit")).rejects.toMatchObject({ code: -32602 });
      }
    }
  });

  it("renamed, described and hidden tools are so in both eras, also when they ask", async () => {
    const tools = {
      elicit: { name: "ask_user", description: "Asks" },
      sample: { hide: true },
    };
    const { entry } = await startHttpFixture("asker", ["--era", "modern"]);
    const mcpServers = {
      a: { ...entry, tools },
      b: stdioFixture("asker", [], { tools: { elicit: { name: "ask_b" } } }),
    };
    const gateway = await startGateway({ names: "prefixed", mcpServers });
    for (const era of ERAS) {
      const agent = await connect(era, gateway);
      await agent.waitFor("ask_user", "ask_b");
      expect(await agent.names()).not.toContain("a__sample");
      expect(await agent.text("ask_user", { what: "1" })).toContain(`${era}: 1`);
      expect(await agent.text("ask_b", { what: "2" })).toContain(`${era}: 2`);
      await expect(agent.call("a__sample")).rejects.toMatchObject({ code: -32602 });
    }
  });

  it("the search menu finds and calls tools of servers of both eras, questions included", async () => {
    const mcpServers = await fourServers("asker");
    const gateway = await startGateway({ names: "prefixed", menu: "search", mcpServers });
    for (const era of ERAS) {
      const agent = await connect(era, gateway);
      await agent.waitFor("find_tools", "call_tool");
      for (const server of SERVERS) {
        const name = `${server}__elicit`;
        const call = { name, arguments: { what: "found?" } };
        expect(await agent.text("call_tool", call)).toContain(`${era}: found?`);
      }
    }
  });

  it("toolway stdio speaks both eras too", async () => {
    const mcpServers = await fourServers("asker", { isolation: "session" });
    const gateway = await startGateway({ names: "prefixed", mcpServers });
    await (await connect("legacy", gateway)).waitFor(...SERVERS.map((server) => `${server}__elicit`));
    for (const era of ERAS) {
      const agent = await connect(era, gateway, { stdio: true });
      for (const server of SERVERS) {
        expect(await agent.text(`${server}__elicit`, { what: "pipe?" })).toContain(`${era}: pipe?`);
      }
    }
  });

  it("one URL serves both eras, and refuses what belongs to neither", async () => {
    const gateway = await startGateway({ mcpServers: { s: stdioFixture("stateful") } });
    const unknown = await send(gateway.url, { method: "no/such" });
    expect([unknown.status, unknown.reply.error?.code]).toEqual([404, -32601]);
    const future = await send(gateway.url, {
      method: "tools/list",
      meta: { "io.modelcontextprotocol/protocolVersion": "2099-01-01" },
      headers: { "mcp-protocol-version": "2099-01-01" },
    });
    expect([future.status, future.reply.error?.code]).toEqual([400, -32022]);
    for (const method of ["GET", "DELETE"]) {
      const headers = { accept: "text/event-stream", "mcp-protocol-version": "2026-07-28" };
      expect((await fetch(gateway.url, { method, headers })).status).toBe(405);
    }
  });
});
