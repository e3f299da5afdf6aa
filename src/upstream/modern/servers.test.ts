// Real modern servers behind a Server: lists, listening, rounds and headers, over stdio and over HTTP.

import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { afterEach, describe, expect, it, vi } from "vitest";
import { serverFile, startHttpServer } from "../../../test/fixtures/http-server.js";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import { SUPERVISED } from "../../../test/fixtures/spec.js";
import type { Caller } from "../../contracts/caller.js";
import { ownName } from "../../contracts/names.js";
import type { Target } from "../../contracts/server-spec.js";
import type { Freshness, Listed, ServerIntro, UpstreamCall } from "../../contracts/upstream.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import {
  type NotificationMessage,
  parseMessage,
  type RequestMessage,
  type ResponseMessage,
  requestText,
} from "../../protocol/message.js";
import type { Era } from "../../protocol/modern.js";
import { type Reply, replyText } from "../../protocol/reply.js";
import { Reaper } from "../../runtime/processes/reaper.js";
import { hashStateDir } from "../../runtime/processes/reaper-marker.js";
import { ask } from "../link/own-call.js";
import { linkMaker } from "../links.js";
import { UpstreamServer } from "../server.js";

/** Above what anything here takes on a busy machine; only reached where a test fails. */
const SOON = { timeout: 60_000, interval: 20 };

const cleanUp: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

class Agent implements Caller {
  readonly principal = { id: "tester", role: "default" };
  readonly sessionKey = "agent";
  readonly era: Era;
  logLevel: string | undefined = undefined;
  readonly version = "2025-11-25";
  readonly capabilities: JsonObject = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };
  readonly clientInfo: JsonObject = { name: "agent" };
  readonly asked: RequestMessage[] = [];
  answers: (request: RequestMessage, signal: AbortSignal) => JsonObject | Promise<JsonObject> = () => ({ result: {} });

  constructor(era: Era = "legacy") {
    this.era = era;
  }

  setLogLevel(): void {}

  notify(): void {}

  async ask(request: RequestMessage, signal: AbortSignal): Promise<ResponseMessage> {
    this.asked.push(request);
    const answer = await this.answers(request, signal);
    return parseMessage(JSON.stringify({ jsonrpc: "2.0", id: "agent", ...answer })) as ResponseMessage;
  }
}

const startHttp = (name: string, port = 0) => startHttpServer(cleanUp, name, ["--era", "modern"], { port });

const TARGETS: Record<string, (name: string) => Promise<Target>> = {
  stdio: async (name) => ({
    kind: "stdio",
    command: process.execPath,
    args: [serverFile(name), "--era", "modern"],
    env: {},
    cwd: undefined,
  }),
  http: async (name) => ({ kind: "http", url: (await startHttp(name)).url, headers: {} }),
};

async function start(target: Target) {
  const reaper = new Reaper({ stateHash: hashStateDir(`modern ${process.pid}`), env: process.env });
  const intros: ServerIntro[] = [];
  const lists: { kind: string; items: readonly Listed[]; freshness: Freshness | undefined }[] = [];
  const notifications: { message: NotificationMessage; caller: Caller | undefined }[] = [];
  const logged: string[] = [];
  const server = new UpstreamServer(
    { name: "s", target, isolation: "shared", connectTimeoutMs: 60_000, callTimeoutMs: 60_000, ...SUPERVISED },
    {
      context: { now: () => performance.now(), random: Math.random, makeLink: linkMaker({ reaper, env: process.env }) },
      clientInfo: { name: "toolway", version: "1" },
      log: (_, text) => void logged.push(text),
      events: {
        onIntro: (_, intro) => void intros.push(intro),
        onList: (_, kind, items, freshness) => void lists.push({ kind, items, freshness }),
        onNotification: (_, message, caller) => void notifications.push({ message, caller }),
        onState: () => {},
      },
    },
  );
  cleanUp.push(async () => {
    await server.stop();
    await reaper.close();
  });
  server.start();
  await server.firstTry;
  const send = (caller: Caller, name: string, args: JsonObject = {}) => {
    let resolve: (reply: Reply) => void = () => {};
    const answered = new Promise<Reply>((done) => {
      resolve = done;
    }).then(async (reply) => JSON.parse(await replyText(reply, "1")) as { result: JsonObject; error: JsonObject });
    const call: UpstreamCall = {
      caller,
      method: "tools/call",
      subject: ownName(name),
      params: { name, arguments: args },
      progressToken: undefined,
      render: (id, changes) => requestText(id, "tools/call", { name, arguments: args }, changes),
      reply: (reply) => resolve(reply),
    };
    server.upstream(caller).send(call);
    return { call, answered };
  };
  const textOf = async (caller: Caller, name: string, args?: JsonObject) =>
    ((await send(caller, name, args).answered).result["content"] as { text: string }[])[0]?.text as string;
  const tools = () => lists.findLast(({ kind }) => kind === "tools")?.items.map(({ value }) => value["name"]);
  const tell = (method: string, params: JsonObject) =>
    ask(server.upstream(new Agent()), method, params, AbortSignal.timeout(10_000));
  return { server, intros, lists, notifications, logged, send, textOf, tools, tell };
}

describe.each(Object.keys(TARGETS))("a modern server over %s", (transport) => {
  const target = (name: string) => (TARGETS[transport] as (name: string) => Promise<Target>)(name);

  it("introduces itself, and its lists say how long they are good", async () => {
    const { intros, lists, server } = await start(await target("changing"));
    expect(intros).toMatchObject([{ era: "modern", version: "2026-07-28", serverInfo: { name: "changing" } }]);
    const list = lists.find(({ kind }) => kind === "tools");
    expect(list?.freshness).toEqual({ ttlMs: expect.any(Number), cacheScope: expect.stringMatching(/private|public/) });
    expect(server.status({ tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 })).toMatchObject({
      version: "2026-07-28",
      problems: [],
      inFlight: 0,
    });
  });

  it("tells of a change of its tools, which are read again", async () => {
    const { tools, textOf } = await start(await target("changing"));
    await vi.waitFor(() => expect(tools()).toContain("set_tool"), SOON);
    // The change may come before the server has acknowledged that it is listened to: it is not missed even so.
    await textOf(new Agent(), "set_tool", { name: "fresh", description: "x" });
    await vi.waitFor(() => expect(tools()).toContain("fresh"), SOON);
  });

  it("tells of a resource for as long as it is subscribed to, without the subscription of our hop", async () => {
    const { tell, textOf, notifications } = await start(await target("resources"));
    expect((await tell("resources/subscribe", { uri: "fixture://one" })).result).toEqual({});
    await textOf(new Agent(), "touch", { uri: "fixture://one" });
    await vi.waitFor(() => expect(notifications.length).toBeGreaterThan(0), SOON);
    const { message, caller } = notifications[0] as (typeof notifications)[0];
    expect(message).toMatchObject({ method: "notifications/resources/updated", params: { uri: "fixture://one" } });
    expect(message.text).not.toContain("subscriptionId");
    expect(caller).toBeUndefined();
    await tell("resources/subscribe", { uri: "fixture://two" });
    await tell("resources/unsubscribe", { uri: "fixture://one" });
    await vi.waitFor(async () => {
      await textOf(new Agent(), "touch", { uri: "fixture://two" });
      expect(notifications.at(-1)?.message.params).toMatchObject({ uri: "fixture://two" });
    }, SOON);
    // The server hears of the end when it is asked anew, which is a little later.
    await vi.waitFor(async () => {
      notifications.length = 0;
      await textOf(new Agent(), "touch", { uri: "fixture://one" });
      await textOf(new Agent(), "touch", { uri: "fixture://two" });
      await vi.waitFor(() => expect(notifications.length).toBeGreaterThan(0), SOON);
      expect(notifications.map((one) => one.message.params?.["uri"])).toEqual(["fixture://two"]);
    }, SOON);
  });

  it("is not asked for levels and pings, which are answered here", async () => {
    const { tell } = await start(await target("changing"));
    expect((await tell("logging/setLevel", { level: "debug" })).result).toEqual({});
    expect((await tell("ping", {})).result).toEqual({});
    await expect(tell("resources/subscribe", { uri: "x:1" })).rejects.toMatchObject({ code: -32601 });
  });

  it("is told who calls: our name, the caller's capabilities and level", async () => {
    const { textOf } = await start(await target("asker"));
    const agent = new Agent();
    agent.logLevel = "warning";
    const { envelope } = JSON.parse(await textOf(agent, "whoami")) as { envelope: JsonObject };
    expect(envelope).toMatchObject({
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "toolway" },
      "io.modelcontextprotocol/clientCapabilities": agent.capabilities,
      "io.modelcontextprotocol/logLevel": "warning",
    });
  });

  it("asks a legacy agent several things at once, and in several rounds", async () => {
    const { textOf } = await start(await target("asker"));
    const agent = new Agent();
    agent.answers = ({ method, params }) => {
      if (method === "roots/list") return { result: { roots: [{ uri: "file:///r" }] } };
      if (method === "elicitation/create") {
        return { result: { action: "accept", content: { answer: `<${String(params?.["message"])}>` } } };
      }
      return { result: { role: "assistant", model: "m", content: { type: "text", text: "hello" } } };
    };
    const all = JSON.parse(await textOf(agent, "ask_all")) as JsonObject;
    expect(all).toMatchObject({ where: { roots: [{ uri: "file:///r" }] }, greeting: { content: { text: "hello" } } });
    expect(new Set(agent.asked.map(({ method }) => method)).size).toBe(3);
    expect(JSON.parse(await textOf(agent, "ask_in_turn", { count: 3 }))).toHaveLength(3);
    expect(agent.asked).toHaveLength(6);
  });

  it("sends a legacy agent to a page, under a name as its era wants", async () => {
    const { textOf } = await start(await target("asker"));
    const agent = new Agent();
    agent.answers = () => ({ result: { action: "accept" } });
    expect(JSON.parse(await textOf(agent, "needs_url"))).toEqual({ action: "accept" });
    expect(agent.asked[0]?.params).toMatchObject({ mode: "url", elicitationId: expect.any(String) });
  });

  it("asks a modern agent by its result, which passes as it is", async () => {
    const { send } = await start(await target("asker"));
    const agent = new Agent("modern");
    const { result } = await send(agent, "roots").answered;
    expect(result).toMatchObject({
      resultType: "input_required",
      inputRequests: { question: { method: "roots/list" } },
    });
    expect(agent.asked).toEqual([]);
  });

  it("waits for an agent without a deadline, and a call can be cancelled then", async () => {
    const { send, server } = await start(await target("asker"));
    const agent = new Agent();
    agent.answers = (_, signal) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    const { call, answered } = send(agent, "elicit");
    await vi.waitFor(() => expect(agent.asked).toHaveLength(1), SOON);
    server.tick(performance.now() + 3_600_000);
    expect(server.status({ tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 }).inFlight).toBe(1);
    server.upstream(agent).cancel(call, "enough");
    expect(await answered).toMatchObject({ error: { code: -31008 } });
  });
});

it("listens again to an HTTP server that was restarted, and reads its lists again", async () => {
  const { url, child } = await startHttp("changing");
  const { tools, textOf } = await start({ kind: "http", url, headers: {} });
  await textOf(new Agent(), "set_tool", { name: "fresh", description: "x" });
  await vi.waitFor(() => expect(tools()).toContain("fresh"), SOON);
  child.kill("SIGKILL");
  await once(child, "exit");
  await startHttp("changing", Number(new URL(url).port));
  await vi.waitFor(() => expect(tools()).not.toContain("fresh"), SOON);
});

/** A modern server by hand, which wants a header for `region` that its first list does not mention. */
async function strict() {
  const seen: { message: JsonObject; headers: IncomingHttpHeaders }[] = [];
  let reads = 0;
  const region = { type: "string", "x-mcp-header": "Region" };
  const http = createServer(async (req, res) => {
    let text = "";
    for await (const chunk of req) text += String(chunk);
    // A modern server answers POST alone.
    if (req.method !== "POST") {
      res.writeHead(405).end();
      return;
    }
    const message = JSON.parse(text) as JsonObject & { method: string };
    seen.push({ message, headers: req.headers });
    const answer = (status: number, body: JsonObject) => {
      res.writeHead(status, { "content-type": "application/json" });
      res.end(JSON.stringify({ jsonrpc: "2.0", id: message["id"], ...body }));
    };
    if (message.method === "server/discover") {
      answer(200, { result: { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } } });
    } else if (message.method === "tools/list") {
      const properties = {
        region: reads++ === 0 ? { type: "string" } : region,
        n: { type: "integer", "x-mcp-header": "N" },
      };
      const bad = { name: "bad", inputSchema: { type: "object", properties: { a: { "x-mcp-header": "a b" } } } };
      const tools = [{ name: "run", inputSchema: { type: "object", properties } }, bad];
      answer(200, { result: { tools, ttlMs: 60_000, cacheScope: "public" } });
    } else if (req.headers["mcp-param-region"] === undefined) {
      answer(400, { id: null, error: { code: -32020, message: "Missing Mcp-Param-Region" } });
    } else answer(200, { result: { content: [{ type: "text", text: "ran" }] } });
  });
  const port = await listenOnLoopback(http);
  // It is not waited for: connections to it may be open until the others are closed.
  cleanUp.push(async () => {
    void closeHttp(http);
  });
  const target: Target = {
    kind: "http",
    url: `http://127.0.0.1:${port}/mcp`,
    headers: {},
  };
  return { target, seen };
}

describe("headers from a tool's schema", () => {
  it("are sent; where one is missing, the tools are read again and the call is repeated once", async () => {
    const { target, seen } = await strict();
    const { textOf } = await start(target);
    expect(await textOf(new Agent(), "run", { region: "Zürich", n: 7 })).toBe("ran");
    const calls = seen.filter(({ message }) => message["method"] === "tools/call");
    expect(calls.map(({ headers }) => [headers["mcp-param-region"], headers["mcp-param-n"]])).toEqual([
      [undefined, "7"],
      ["=?base64?WsO8cmljaA==?=", "7"],
    ]);
    expect(new Set(calls.map(({ message }) => message["id"])).size).toBe(2);
  });

  it("are not corrected for ever: the second refusal goes to the caller", async () => {
    const { target, seen } = await strict();
    const { send } = await start(target);
    expect(await send(new Agent("modern"), "run", { region: null }).answered).toMatchObject({
      error: { code: -32020 },
    });
    expect(seen.filter(({ message }) => message["method"] === "tools/call")).toHaveLength(2);
  });

  it("leave out a tool whose annotations are invalid, and status says so", async () => {
    const { target } = await strict();
    const { tools, server, logged } = await start(target);
    expect(tools()).toEqual(["run"]);
    const { problems } = server.status({ tools: 0, prompts: 0, resources: 0, resourceTemplates: 0 });
    expect(problems).toEqual([expect.stringMatching(/"bad" is left out/)]);
    expect(logged).toContainEqual(expect.stringContaining('"bad" is left out'));
  });
});
