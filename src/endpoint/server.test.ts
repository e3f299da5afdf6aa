import { connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { begin, hello, rpc, send, startRig, stopRigs, until } from "../../test/fixtures/endpoint/http.js";

afterEach(stopRigs);

const DISCOVER = rpc(1, "server/discover", {
  _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {} },
});

describe("the HTTP endpoint", () => {
  it("checks Host and Origin before anything else [agent-8]", async () => {
    const { url, port } = await startRig({ allowedHosts: ["gate.example"], allowedOrigins: ["https://app.example"] });
    const table: [string, string | undefined, number][] = [
      [`127.0.0.1:${port}`, undefined, 200],
      [`localhost:${port}`, undefined, 200],
      ["localhost", undefined, 200],
      ["[::1]:9", undefined, 200],
      ["LOCALHOST.:80", undefined, 200],
      ["gate.example", undefined, 200],
      ["gate.example:8443", undefined, 200],
      ["evil.example", undefined, 403],
      [`evil.example:${port}`, undefined, 403],
      ["localhost.evil.example", undefined, 403],
      ["127.0.0.1.evil.example", undefined, 403],
      ["user@localhost", undefined, 403],
      ["192.168.7.7", undefined, 403],
      [`127.0.0.1:${port}`, `http://127.0.0.1:${port}`, 200],
      [`127.0.0.1:${port}`, "http://localhost:3000", 200],
      [`127.0.0.1:${port}`, "https://app.example", 200],
      [`127.0.0.1:${port}`, "https://app.example.evil", 403],
      [`127.0.0.1:${port}`, "http://evil.example", 403],
      [`127.0.0.1:${port}`, "null", 403],
      [`127.0.0.1:${port}`, "file://", 403],
    ];
    for (const [host, origin, status] of table) {
      const answer = await send(url, { body: hello(), headers: { host, origin } });
      expect([host, origin, answer.status]).toEqual([host, origin, status]);
      if (status === 403) expect(answer.json.error.message).toMatch(/Host|Origin/);
    }
    const foreign = await send(url, { body: hello(), headers: { host: "evil.example", authorization: undefined } });
    expect(foreign.status).toBe(403);
  });

  it("tells browsers what pages of the config's origins may do, without a token, and others nothing [pages]", async () => {
    const { url } = await startRig({ allowedOrigins: ["https://app.example"] });
    const ask = (origin: string, more: object = {}) =>
      send(url, {
        method: "OPTIONS",
        headers: { authorization: undefined, origin, "access-control-request-method": "POST", ...more },
      });
    const cors = ({ headers }: Awaited<ReturnType<typeof ask>>) =>
      Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("access-control-")));
    const asked = await ask("https://app.example", {
      "access-control-request-headers": "authorization,content-type,mcp-param-x,*,a b",
      "access-control-request-private-network": "true",
    });
    expect([asked.status, asked.text]).toEqual([204, ""]);
    expect(cors(asked)).toEqual({
      "access-control-allow-origin": "https://app.example",
      "access-control-allow-methods": "POST, GET, DELETE",
      "access-control-allow-headers": "authorization, content-type, mcp-param-x",
      "access-control-allow-private-network": "true",
      "access-control-max-age": "600",
      "access-control-expose-headers": "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After",
    });
    expect(asked.headers["vary"]).toContain("Origin");
    expect(cors(await ask("https://app.example"))).not.toHaveProperty("access-control-allow-private-network");
    // Answers and refusals alike.
    for (const authorization of ["Bearer token-a", undefined]) {
      const answer = await send(url, { body: hello(), headers: { authorization, origin: "https://app.example" } });
      expect(cors(answer)).toMatchObject({ "access-control-allow-origin": "https://app.example" });
      expect(answer.headers["vary"]).toBe("Origin");
    }
    // A page of this machine may send, as it always could; it may not read.
    for (const origin of ["http://localhost:3000", "https://evil.example", "null"]) {
      const refused = await ask(origin);
      expect([origin, refused.status, cors(refused)]).toEqual([origin, 403, {}]);
      expect(cors(await send(url, { body: hello(), headers: { origin } }))).toEqual({});
    }
    expect(cors(await send(url, { body: hello() }))).toEqual({});
  });

  it("says how to authenticate, and takes no token from a URL", async () => {
    const { url } = await startRig();
    const none = await send(url, { body: hello(), headers: { authorization: undefined } });
    expect(none.status).toBe(401);
    expect(none.headers["www-authenticate"]).toContain("Bearer");
    expect(none.json).toMatchObject({ jsonrpc: "2.0", id: null });
    expect(none.json.error.message).toContain("Authorization: Bearer");
    const wrong = await send(url, { body: hello(), headers: { authorization: "Bearer nope" } });
    expect(wrong.status).toBe(401);
    expect(wrong.headers["www-authenticate"]).toContain("invalid_token");
    expect((await send(url, { body: hello(), headers: { authorization: "Basic abc" } })).status).toBe(401);
    const inUrl = await send(`${url}?token=token-a`, { body: hello() });
    expect(inUrl.status).toBe(401);
    expect(inUrl.json.error.message).toContain("URL");
    expect((await send(url.replace("/mcp", "/mcp/nobody"), { headers: { authorization: undefined } })).status).toBe(
      401,
    );
  });

  it("answers on its paths and methods, and nowhere else", async () => {
    const { url } = await startRig({ noAuth: true });
    const root = url.slice(0, -4);
    const table: [string, string, object, number][] = [
      ["GET", "/healthz", { authorization: undefined, host: "any.example" }, 200],
      ["GET", "/readyz", { authorization: undefined }, 200],
      ["POST", "/healthz", {}, 405],
      ["GET", "/", {}, 404],
      ["POST", "/mcp/unknown", {}, 404],
      ["POST", "/mcp/%E0%A4%A", {}, 404],
      ["PUT", "/mcp", {}, 405],
      ["OPTIONS", "/mcp", {}, 405],
      ["GET", "/mcp", { accept: "application/json" }, 406],
      ["GET", "/mcp", {}, 400],
      ["DELETE", "/mcp", {}, 400],
      ["POST", "/mcp", { "content-type": "text/plain" }, 415],
      ["POST", "/mcp", { "content-type": undefined }, 415],
      ["POST", "/mcp", { accept: "text/html" }, 406],
      ["POST", "/sse", {}, 405],
      ["GET", "/messages", {}, 405],
      ["POST", "/messages?session=guess", {}, 404],
    ];
    for (const [method, path, headers, status] of table) {
      const body = method === "POST" ? hello() : undefined;
      const answer = await send(root + path, { method, headers: { ...headers }, body });
      expect([method, path, answer.status]).toEqual([method, path, status]);
      if (status === 405) expect(answer.headers["allow"]).toBeTruthy();
    }
    for (const accept of [undefined, "*/*", "application/json", "application/json;q=0.9, text/event-stream"]) {
      const answer = await send(url, {
        body: hello(),
        headers: { accept, "content-type": "application/json; charset=utf-8" },
      });
      expect(answer.json.result.protocolVersion).toBe("2025-11-25");
    }
    const events = await send(url, { body: hello(), headers: { accept: "text/event-stream" } });
    expect(events.headers["content-type"]).toBe("text/event-stream");
    expect(events.text).toContain('"protocolVersion"');
  });

  it("keeps each named limit, and stays alive [bounded]", async () => {
    const { url } = await startRig({ limits: { bodyBytes: 200_000, batchMessages: 5, depth: 20 } });
    const session = await begin(url, { version: "2025-03-26" });
    const ping = rpc(1, "ping");
    const deep = (levels: number) =>
      `{"jsonrpc":"2.0","id":1,"method":"ping","params":${'{"a":'.repeat(levels)}1${"}".repeat(levels)}}`;
    const table: [string, unknown, number, RegExp | undefined][] = [
      ["a body at its limit", `${JSON.stringify(ping)}${" ".repeat(190_000)}`, 200, undefined],
      ["a body over it", `${JSON.stringify(ping)}${" ".repeat(250_000)}`, 413, /200000/],
      ["a body far over it", " ".repeat(1_000_000), 413, /200000/],
      ["a batch at its limit", Array.from({ length: 5 }, (_, id) => rpc(id, "ping")), 200, undefined],
      ["a batch over it", Array.from({ length: 6 }, (_, id) => rpc(id, "ping")), 400, /batch/],
      ["an empty batch", [], 400, /empty/],
      ["depth at its limit", deep(18), 200, undefined],
      ["depth over it", deep(40), 400, /deeper/],
      ["great depth", deep(30_000), 400, /deeper/],
      ["no JSON", "{", 400, /JSON/],
      ["nothing", "", 400, /JSON/],
      ["no message", "42", 400, /object/],
      ["another version of JSON-RPC", { jsonrpc: "1.0", id: 1, method: "ping" }, 400, /2\.0/],
      ["a member twice", '{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', 400, /[Dd]uplicate/],
      ["an id that is none", { jsonrpc: "2.0", id: {}, method: "ping" }, 400, /id/],
      ["a method in capitals", { jsonrpc: "2.0", id: 1, Method: "ping" }, 400, /method|result/],
      ["a prototype", '{"jsonrpc":"2.0","id":1,"__proto__":{"method":"ping"}}', 400, /method|result/],
    ];
    for (const [what, body, status, message] of table) {
      const answer = await send(url, { body, headers: session });
      expect([what, answer.status]).toEqual([what, status]);
      if (message !== undefined) expect(answer.json.error.message).toMatch(message);
    }
    expect((await send(url, { body: ping, headers: session })).json).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
  });

  it("closes connections that never finish their headers, and serves others meanwhile [bounded]", async () => {
    const { url, port, endpoint } = await startRig({ limits: { headerMs: 2_000 } });
    const sockets = Array.from({ length: 500 }, () => connect(port, "127.0.0.1"));
    let closed = 0;
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.on("close", () => closed++);
      socket.on("connect", () => socket.write("POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "));
      socket.resume();
    }
    await until(() => endpoint.stats().connections >= 500);
    const session = await begin(url);
    expect((await send(url, { body: rpc(1, "ping"), headers: session })).status).toBe(200);
    await until(() => closed === 500);
    await until(() => endpoint.stats().connections === 0);
  });

  it("holds no more connections than it may [bounded]", async () => {
    const { port, endpoint } = await startRig({ limits: { connections: 20 } });
    const sockets = Array.from({ length: 40 }, () => connect(port, "127.0.0.1"));
    let closed = 0;
    for (const socket of sockets) {
      socket.on("error", () => {});
      socket.on("close", () => closed++);
      socket.resume();
    }
    await until(() => closed >= 20);
    expect(endpoint.stats().connections).toBeLessThanOrEqual(20);
    for (const socket of sockets) socket.destroy();
  });

  it("opens with server/discover as Claude Code does, and with initialize should that be tried next", async () => {
    const { url } = await startRig();
    const headers = { "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover" };
    const discover = await send(url, { body: DISCOVER, headers });
    expect(discover.status).toBe(200);
    expect(discover.json.result.supportedVersions[0]).toBe("2026-07-28");
    expect((await send(url, { body: hello(), headers })).status).toBe(200);
  });

  it("serves clients whose requests deviate from the protocol in ways that were seen", async () => {
    const { url, service } = await startRig();
    // mcp-remote: GET first, then two initializes, and Mcp-Method on everything.
    expect((await send(url, { method: "GET", headers: { accept: "text/event-stream" } })).status).toBe(400);
    const remote = { "mcp-method": "initialize" };
    const sessions = [await begin(url, { headers: remote }), await begin(url, { headers: remote })];
    // Gemini CLI: never a version header. Codex: a large _meta. opencode: a cancellation after each success.
    for (const headers of sessions) {
      const _meta = { "x-codex-turn-metadata": "m".repeat(100_000), progressToken: 1 };
      const call = await send(url, { body: rpc(1, "test/echo", { _meta }), headers });
      expect(call.status).toBe(200);
      const method = "notifications/cancelled";
      const body = { jsonrpc: "2.0", method, params: { requestId: 1, reason: "done" } };
      expect((await send(url, { body, headers })).status).toBe(202);
      expect((await send(url, { body: rpc(1, "test/echo"), headers })).status).toBe(200);
    }
    expect(service.cancelled).toEqual([]);
    // A second initialize in a running session begins another one.
    const again = await send(url, { body: hello(), headers: sessions[0] ?? {} });
    expect(again.headers["mcp-session-id"]).not.toBe(sessions[0]?.["mcp-session-id"]);
    expect((await send(url, { body: rpc(2, "ping"), headers: sessions[0] ?? {} })).status).toBe(200);
  });

  it("does not show the details of an internal error to its client", async () => {
    const events: unknown[] = [];
    const { url } = await startRig({ log: (event) => events.push(event) });
    const session = await begin(url);
    const answer = await send(url, { body: rpc(1, "test/throws"), headers: session });
    expect(answer.json.error.code).toBe(-32603);
    expect(answer.text).not.toContain("details that stay");
    expect(events).toHaveLength(1);
  });
});
