// Raw requests of the modern era: every check with its status and code, and the life of one call.

import { afterEach, describe, expect, it } from "vitest";
import {
  begin,
  call,
  capabilities,
  hello,
  MODERN_META,
  modern,
  rpc,
  type Sent,
  send,
  start,
  startRig,
  stopRigs,
  stream,
  until,
} from "../../../test/fixtures/endpoint/http.js";
import { note } from "../../../test/fixtures/endpoint/service.js";

afterEach(stopRigs);

const VERSION = "io.modelcontextprotocol/protocolVersion";
const LOG_LEVEL = "io.modelcontextprotocol/logLevel";
const SERVER_INFO = "io.modelcontextprotocol/serverInfo";
const list = (changes: Parameters<typeof modern>[3]) => modern(1, "tools/list", {}, changes);
const bare = (body: object, headers: object = {}): Sent => ({ body, headers: { ...headers } });
const regional = (args: object, headers: { [name: string]: string }) => call(1, "regional", args, { headers });

const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`;
const UNKNOWN = "2031-01-01";

describe("checks of a modern POST", () => {
  it.each<[string, Sent, number, number | undefined]>([
    ["all as it should be", list({}), 200, undefined],
    ["no clientInfo", list({ meta: { "io.modelcontextprotocol/clientInfo": undefined } }), 200, undefined],
    ["no protocolVersion", list({ meta: { [VERSION]: undefined } }), 400, -32602],
    ["no capabilities", list({ meta: { "io.modelcontextprotocol/clientCapabilities": undefined } }), 400, -32602],
    ["a modern header, no _meta", bare(rpc(1, "tools/list"), { "mcp-protocol-version": "2026-07-28" }), 400, -32602],
    ["discover with nothing", bare(rpc(1, "server/discover")), 400, -32602],
    ["discover with an empty _meta", bare(rpc(1, "server/discover", { _meta: {} })), 400, -32602],
    ["no version header", list({ headers: { "mcp-protocol-version": undefined } }), 400, -32020],
    ["another version in the header", list({ meta: { [VERSION]: "v999.0.0" } }), 400, -32020],
    [
      "an unknown version",
      list({ meta: { [VERSION]: UNKNOWN }, headers: { "mcp-protocol-version": UNKNOWN } }),
      400,
      -32022,
    ],
    ["no Mcp-Method", list({ headers: { "mcp-method": undefined } }), 400, -32020],
    ["another Mcp-Method", list({ headers: { "mcp-method": "prompts/list" } }), 400, -32020],
    ["Mcp-Method in capitals", list({ headers: { "mcp-method": "TOOLS/LIST" } }), 400, -32020],
    ["no Mcp-Name", call(1, "echo", {}, { headers: { "mcp-name": undefined } }), 400, -32020],
    ["another Mcp-Name", call(1, "echo", {}, { headers: { "mcp-name": "other" } }), 400, -32020],
    ["Mcp-Name with spaces around", call(1, "echo", {}, { headers: { "mcp-name": "  echo  " } }), 200, undefined],
    ["Mcp-Name in base64", call(1, "echo", {}, { headers: { "mcp-name": base64("echo") } }), 200, undefined],
    ["Mcp-Name in bad base64", call(1, "echo", {}, { headers: { "mcp-name": "=?base64?ZWNob?=" } }), 400, -32020],
    ["Mcp-Name of no ASCII", call(1, "echo", {}, { headers: { "mcp-name": "\u00e9cho" } }), 400, -32020],
    ["a resource's Mcp-Name", modern(1, "resources/read", { uri: "test://a" }), 200, undefined],
    [
      "another resource's Mcp-Name",
      modern(1, "resources/read", { uri: "test://a" }, { headers: { "mcp-name": "test://b" } }),
      400,
      -32020,
    ],
    ["a task's id as Mcp-Name", modern(1, "tasks/get", { taskId: "t" }), 404, -32601],
    [
      "a task without Mcp-Name",
      modern(1, "tasks/get", { taskId: "t" }, { headers: { "mcp-name": undefined } }),
      400,
      -32020,
    ],
    ["an unknown log level", list({ meta: { [LOG_LEVEL]: "loud" } }), 400, -32602],
    [
      "a session id, which is ignored",
      list({ headers: { "mcp-session-id": "x", "last-event-id": "y" } }),
      200,
      undefined,
    ],
    ["an unknown method", modern(1, "unknown/method"), 404, -32601],
    ["initialize", modern(1, "initialize"), 404, -32601],
    ["ping", modern(1, "ping"), 404, -32601],
    ["logging/setLevel", modern(1, "logging/setLevel", { level: "info" }), 404, -32601],
    ["resources/subscribe", modern(1, "resources/subscribe"), 404, -32601],
    ["resources/unsubscribe", modern(1, "resources/unsubscribe"), 404, -32601],
    ["an argument in its header", regional({ region: "eu" }, { "mcp-param-region": "eu" }), 200, undefined],
    ["an argument in base64", regional({ region: " é" }, { "mcp-param-region": base64(" é") }), 200, undefined],
    ["an argument without its header", regional({ region: "eu" }, {}), 400, -32020],
    ["an argument unlike its header", regional({ region: "eu" }, { "mcp-param-region": "us" }), 400, -32020],
    ["an argument in bad base64", regional({ region: "eu" }, { "mcp-param-region": "=?base64?!!?=" }), 400, -32020],
    ["a nested number", regional({ nested: { count: 42 } }, { "mcp-param-count": "42.0" }), 200, undefined],
    [
      "a nested number unlike its header",
      regional({ nested: { count: 42 } }, { "mcp-param-count": "43" }),
      400,
      -32020,
    ],
    ["a boolean", regional({ urgent: false }, { "mcp-param-urgent": "false" }), 200, undefined],
    ["null, which has no header", regional({ region: null }, {}), 200, undefined],
    ["no arguments, no headers", regional({}, {}), 200, undefined],
    ["a batch", { ...list({}), body: [list({}).body] }, 400, -32600],
    ["a batch of a legacy kind under a modern header", { ...list({}), body: [rpc(1, "ping")] }, 400, -32600],
    ["a response", { ...list({}), body: { jsonrpc: "2.0", id: 1, result: {} } }, 400, -32600],
    ["a legacy request without a session", bare(rpc(1, "tools/list")), 400, -32600],
    [
      "a legacy version in _meta",
      list({ meta: { [VERSION]: "2025-11-25" }, headers: { "mcp-protocol-version": "2025-11-25" } }),
      400,
      -32600,
    ],
  ])("%s", async (_name, sent, status, code) => {
    const { url } = await startRig();
    const answer = await send(url, sent);
    expect([answer.status, answer.json?.error?.code]).toEqual([status, code]);
    if (!Array.isArray(sent.body) && "method" in (sent.body as object)) expect(answer.json.id).toBe(1);
  });

  it("names the versions it has to one that asks for another", async () => {
    const { url } = await startRig();
    const meta = { [VERSION]: "v999.0.0" };
    const answer = await send(
      url,
      modern(1, "tools/list", {}, { meta, headers: { "mcp-protocol-version": "v999.0.0" } }),
    );
    const { supportedVersions } = (await send(url, modern(2, "server/discover"))).json.result;
    expect(answer.json.error.data).toEqual({ supported: supportedVersions, requested: "v999.0.0" });
    expect(supportedVersions).toEqual(["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]);
  });

  it("takes notifications and answers them with 202", async () => {
    const { url, service } = await startRig();
    for (const method of ["notifications/cancelled", "notifications/own"]) {
      const body = { jsonrpc: "2.0", method, params: { requestId: 1, _meta: MODERN_META } };
      expect((await send(url, { body })).status).toBe(202);
      const header = { "mcp-protocol-version": "2026-07-28" };
      expect((await send(url, { body: { jsonrpc: "2.0", method }, headers: header })).status).toBe(202);
    }
    expect(service.notifications.map(({ method }) => method)).toEqual(["notifications/own", "notifications/own"]);
  });

  it.each(["GET", "DELETE"])("has no %s", async (method) => {
    const { url } = await startRig();
    for (const version of ["2026-07-28", UNKNOWN]) {
      const headers = { "mcp-protocol-version": version, "mcp-session-id": "x" };
      const answer = await send(url, { method, headers });
      expect([answer.status, answer.headers.allow]).toEqual([405, "POST"]);
    }
  });
});

describe("a modern call", () => {
  it("is answered with JSON, and with what a modern result has", async () => {
    const { url, service } = await startRig();
    const echo = await send(url, call("e", "echo", { a: 1 }));
    expect(echo.headers["content-type"]).toBe("application/json");
    expect(echo.headers).not.toHaveProperty("mcp-session-id");
    expect(echo.json.result).toMatchObject({ resultType: "complete", _meta: { [SERVER_INFO]: { name: "test" } } });
    // What a server wrote: as it came, but for the members that it cannot know.
    const large = await send(url, call(2, "large", { size: 200_000 }));
    expect(large.json.result.resultType).toBe("complete");
    expect(large.json.result.content[0].text).toHaveLength(200_000);
    const streamed = await send(url, call(3, "stream", { size: 300_000 }));
    expect(streamed.json).toMatchObject({ id: 3, result: { resultType: "complete" } });
    expect(streamed.json.result.text).toHaveLength(300_000);
    const read = await send(url, modern(4, "resources/read", { uri: "test://a" }));
    expect(read.json.result).toEqual({
      resultType: "complete",
      ttlMs: 0,
      cacheScope: "private",
      contents: [{ uri: "test://a", text: "here" }],
    });
    const none = await send(url, modern(5, "resources/read", { uri: "none://a" }));
    expect(none.status).toBe(200);
    expect(none.json.error).toMatchObject({ code: -32602, data: { uri: "none://a" } });
    expect(service.opened).toHaveLength(1);
  });

  it("may be server/discover, which tells of versions and capabilities", async () => {
    const { url } = await startRig();
    const { json } = await send(url, modern(1, "server/discover"));
    expect(json.result).toMatchObject({
      resultType: "complete",
      capabilities: { tools: { listChanged: true } },
      instructions: "Be kind.",
      ttlMs: 0,
      cacheScope: "private",
      _meta: { [SERVER_INFO]: { name: "test", version: "1" } },
    });
  });

  it("becomes a plain event stream where there is something to tell", async () => {
    const { url } = await startRig();
    const meta = { progressToken: "p" };
    const answer = await stream(url, call(1, "progress", { steps: 2 }, { meta }));
    await until(() => answer.ended);
    expect(answer.headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    expect(answer.messages.map((message) => message.params?.progress ?? message.result.resultType)).toEqual([
      1,
      2,
      "complete",
    ]);
    expect(answer.events.every((event) => event.id === undefined)).toBe(true);
    expect(answer.retry).toBeUndefined();
    const json = await send(url, call(2, "progress", {}, { meta, headers: { accept: "application/json" } }));
    expect(json.json.result.resultType).toBe("complete");
    const events = await stream(url, call(3, "echo", {}, { headers: { accept: "text/event-stream" } }));
    await until(() => events.ended);
    expect(events.messages[0].result.resultType).toBe("complete");
  });

  it("carries log messages from the asked level on, and nothing that is not its own", async () => {
    const { url } = await startRig();
    expect((await send(url, call(1, "log"))).json.result.resultType).toBe("complete");
    const answer = await stream(url, call(2, "log", {}, { meta: { [LOG_LEVEL]: "warning" } }));
    await until(() => answer.ended);
    expect(answer.messages.map((message) => message.params?.level)).toEqual(["warning", "error", undefined]);
  });

  it("has its reply, however much its server says before it [bounded] [one-bad-server]", async () => {
    const { url, service } = await startRig({ limits: { slowReaderBytes: 256 * 1024 } });
    const answer = stream(url, call(1, "hold", {}, { meta: { [LOG_LEVEL]: "debug" } }));
    await until(() => service.held.length === 1);
    for (const size of [300_000, 1_000]) {
      service.held[0]?.caller.notify(note("notifications/message", { level: "info", data: "é".repeat(size / 2) }));
    }
    service.held[0]?.reply({ kind: "result", result: {} });
    const read = await answer;
    await until(() => read.ended);
    expect(read.messages.map(({ params }) => params?.data?.length)).toEqual([500, undefined]);
    expect(read.messages.at(-1)).toMatchObject({ id: 1, result: {} });
    expect(service.cancelled).toHaveLength(0);
  });

  it.each(["JSON", "events"])("is cancelled by who leaves before the answer: %s", async (mode) => {
    const { url, service, endpoint } = await startRig({ limits: mode === "JSON" ? {} : { quietMs: 30 } });
    const answer = stream(url, call(1, "hold"));
    await until(() => service.held.length === 1);
    if (mode === "events") {
      const open = await answer;
      await until(() => open.comments.length > 0);
      open.cut();
    } else {
      // Nothing was answered yet: only the connection can be cut.
      const cut = start(url, call(2, "hold"));
      cut.on("error", () => {});
      await until(() => service.held.length === 2);
      cut.destroy();
    }
    await until(() => service.cancelled.length === 1);
    service.held.at(-1)?.reply({ kind: "result", result: {} });
    if (mode === "JSON") service.held[0]?.reply({ kind: "result", result: {} });
    await until(() => endpoint.stats().inFlight === 0);
  });

  it("has one presence for each principal and path, which ends when it is idle", async () => {
    const { url, service, endpoint } = await startRig({ limits: { quietMs: 15, sessionIdleMs: 60 } });
    const held = send(url, call(0, "hold"));
    await send(url, call(1, "echo"));
    await send(url, call(1, "echo", {}, { headers: { authorization: "Bearer token-b" } }));
    await send(`${url}/one`, call(1, "echo"));
    expect(new Set(service.opened.map(({ sessionKey }) => sessionKey)).size).toBe(3);
    expect(service.opened).toHaveLength(3);
    await until(() => service.closed.length === 2);
    expect(service.closed.map(({ principal }) => principal.id)).toEqual(expect.arrayContaining(["alice", "bob"]));
    // What is in flight keeps it.
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(service.closed).toHaveLength(2);
    service.held[0]?.reply({ kind: "result", result: {} });
    expect((await held).status).toBe(200);
    await until(() => service.closed.length === 3);
    await send(url, call(2, "echo"));
    expect(service.opened).toHaveLength(4);
    expect(endpoint.stats().sessions).toBeLessThanOrEqual(1);
  });

  it("never gets another's reply, whatever ids they choose [crossed-never]", async () => {
    const { url } = await startRig();
    const answers = await Promise.all(
      Array.from({ length: 100 }, (_, n) =>
        send(url, call(1, "later", { n, ms: n % 7 }, n % 2 ? { headers: { authorization: "Bearer token-b" } } : {})),
      ),
    );
    expect(answers.map(({ json }) => JSON.parse(json.result.content[0].text).n)).toEqual([...answers.keys()]);
  });

  it("lives beside legacy sessions at one URL", async () => {
    const { url } = await startRig();
    const session = await begin(url);
    const [old, now] = await Promise.all([
      send(url, { body: rpc(1, "test/who"), headers: session }),
      send(url, call(1, "who")),
    ]);
    expect(old.json.result).toEqual({ text: "alice undefined 2025-11-25" });
    expect(now.json.result.content[0].text).toBe("alice undefined 2026-07-28");
    expect((await send(url, { body: hello(), headers: { "mcp-protocol-version": "2026-07-28" } })).status).toBe(200);
  });

  it("ends with an error when the gateway closes or the token is revoked", async () => {
    const { url, service, endpoint } = await startRig();
    const revoked = send(url, call(1, "hold"));
    await until(() => service.held.length === 1);
    endpoint.closePrincipals(({ id }) => id === "alice");
    expect((await revoked).json.error.code).toBe(-31003);
    expect(service.cancelled).toHaveLength(1);
    const closing = send(url, call(2, "hold", {}, { meta: capabilities({}) }));
    await until(() => service.held.length === 2);
    await endpoint.close({ drainMs: 50 });
    expect((await closing).json.error.code).toBe(-31003);
    expect(service.closed).toHaveLength(2);
  });
});
