// The links against the official SDKs' servers: v1 streamable (stateful, stateless, JSON, resumable), v1 SSE, v2.

import { randomUUID } from "node:crypto";
import { createServer, type Server as HttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { NodeStreamableHTTPServerTransport } from "@modelcontextprotocol/node";
import { Server as ServerV1 } from "@modelcontextprotocol/sdk/server/index.js";
import { SSEServerTransport } from "@modelcontextprotocol/sdk/server/sse.js";
import { type EventStore, StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  CreateMessageResultSchema,
  type JSONRPCMessage,
} from "@modelcontextprotocol/sdk/types.js";
import { Server as ServerV2 } from "@modelcontextprotocol/server";
import { afterEach, describe, expect, it } from "vitest";
import { Recorder } from "../../../test/fixtures/links/recorder.js";
import { closeHttp, listenOnLoopback } from "../../../test/fixtures/loopback.js";
import type { HttpTarget } from "../../contracts/server-spec.js";
import { openHttpLink } from "./link.js";

const cleanups: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const CAPABILITIES = { tools: { listChanged: true }, logging: {} };
const INFO = { name: "sdk", version: "1" };
const SAMPLE = { messages: [], maxTokens: 5 };
const hello = (name: unknown) => ({ content: [{ type: "text" as const, text: `hello ${String(name)}` }] });

/** `call`: progress, then the result. `ask`: samples first. `shout`: list_changed outside of the call. */
function serverV1(): ServerV1 {
  const server = new ServerV1(INFO, { capabilities: CAPABILITIES });
  server.setRequestHandler(CallToolRequestSchema, async (request, extra) => {
    const { name, _meta } = request.params;
    const progressToken = _meta?.progressToken;
    if (progressToken !== undefined) {
      await extra.sendNotification({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    }
    if (name === "ask") {
      const sampled = await extra.sendRequest(
        { method: "sampling/createMessage", params: SAMPLE },
        CreateMessageResultSchema,
      );
      return hello(sampled.model);
    }
    if (name === "shout") await server.sendToolListChanged();
    if (name === "poll") {
      extra.closeSSEStream?.();
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    return hello(name);
  });
  return server;
}

function serverV2(): ServerV2 {
  const server = new ServerV2(INFO, { capabilities: CAPABILITIES });
  server.setRequestHandler("tools/call", async (request, ctx) => {
    const { name, _meta } = request.params;
    const progressToken = _meta?.progressToken;
    if (progressToken !== undefined) {
      await ctx.mcpReq.notify({ method: "notifications/progress", params: { progressToken, progress: 1 } });
    }
    if (name === "ask") {
      const sampled = await ctx.mcpReq.send({ method: "sampling/createMessage", params: SAMPLE });
      return hello(sampled.model);
    }
    if (name === "shout") await server.sendToolListChanged();
    return hello(name);
  });
  return server;
}

/** Keeps all events of all streams, as a server that can be resumed from does. */
class Events implements EventStore {
  readonly #all: { id: string; stream: string; message: JSONRPCMessage }[] = [];

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const id = `${stream}#${this.#all.length}`;
    this.#all.push({ id, stream, message });
    return id;
  }

  async replayEventsAfter(
    last: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const at = this.#all.findIndex(({ id }) => id === last);
    const stream = this.#all[at]?.stream ?? "";
    for (const event of this.#all.slice(at + 1)) {
      if (event.stream === stream && Object.keys(event.message).length > 0) await send(event.id, event.message);
    }
    return stream;
  }
}

interface Session {
  handleRequest(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

/** Sessions as the SDKs' examples keep them: unknown ids get a 404. `forget()` is a restart. */
async function stateful(open: (opened: (id: string, session: Session) => void) => Promise<Session>) {
  const sessions = new Map<string, Session>();
  const http = createServer(async (request, response) => {
    const id = request.headers["mcp-session-id"];
    if (typeof id === "string" && !sessions.has(id)) {
      const error = { code: -32001, message: "Session not found" };
      response.writeHead(404, { "content-type": "application/json" });
      response.end(JSON.stringify({ jsonrpc: "2.0", error, id: null }));
      return;
    }
    const known = typeof id === "string" ? sessions.get(id) : undefined;
    const session = known ?? (await open((newId, opened) => sessions.set(newId, opened)));
    await session.handleRequest(request, response);
  });
  return { url: await listen(http), sessions };
}

async function listen(http: HttpServer): Promise<string> {
  const port = await listenOnLoopback(http);
  cleanups.push(async () => {
    await closeHttp(http);
  });
  return `http://127.0.0.1:${port}/mcp`;
}

async function connect(url: string, kind: HttpTarget["kind"] = "http"): Promise<Recorder> {
  const recorder = new Recorder();
  recorder.onAsked = () => ({ role: "assistant", content: { type: "text", text: "x" }, model: "sampled" });
  const link = openHttpLink({ kind, url, headers: {} }, recorder);
  cleanups.push(() => link.close());
  await recorder.attach(link);
  return recorder;
}

const call = (recorder: Recorder, name: string, meta = {}) =>
  recorder.request("tools/call", { name, arguments: {}, _meta: meta });

async function v1(options: { enableJsonResponse?: boolean; eventStore?: EventStore; retryInterval?: number } = {}) {
  return await stateful(async (opened) => {
    const transport: StreamableHTTPServerTransport = new StreamableHTTPServerTransport({
      ...options,
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id) => opened(id, transport),
    });
    await serverV1().connect(transport as never);
    return transport;
  });
}

async function v2() {
  return await stateful(async (opened) => {
    const transport: NodeStreamableHTTPServerTransport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (id: string) => opened(id, transport),
    });
    await serverV2().connect(transport);
    return transport;
  });
}

/** The old transport as its examples have it: GET opens, POST goes to `/messages?sessionId=…`. */
async function oldV1(): Promise<string> {
  const sessions = new Map<string, SSEServerTransport>();
  const http = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://x");
    const id = url.searchParams.get("sessionId");
    if (request.method === "GET") {
      const transport = new SSEServerTransport("/messages", response);
      sessions.set(transport.sessionId, transport);
      await serverV1().connect(transport);
    } else if (url.pathname === "/messages" && id !== null && sessions.has(id)) {
      await sessions.get(id)?.handlePostMessage(request, response);
    } else response.writeHead(404).end("Not found");
  });
  return await listen(http);
}

describe.each<[string, () => Promise<string>, HttpTarget["kind"], boolean]>([
  ["v1, events", async () => (await v1()).url, "http", true],
  ["v1, resumable", async () => (await v1({ eventStore: new Events(), retryInterval: 100 })).url, "http", true],
  ["v2", async () => (await v2()).url, "http", true],
  ["v1, the old transport, found out", oldV1, "http", false],
  ["v1, the old transport", oldV1, "sse", false],
])("the SDK's server: %s", (_name, make, kind, ticketed) => {
  it("calls, progress, questions and what is unasked all pass", async () => {
    const recorder = await connect(await make(), kind);
    expect(await recorder.handshake()).toMatchObject({ serverInfo: INFO });

    const plainCall = call(recorder, "world", { progressToken: 7 });
    expect((await recorder.reply(plainCall)).value.result).toMatchObject(hello("world"));
    const progress = recorder.messages.find(({ value }) => value.method === "notifications/progress");
    expect(progress?.value.params).toMatchObject({ progressToken: 7, progress: 1 });
    expect(progress?.ticket).toBe(ticketed ? plainCall : undefined);

    const asking = call(recorder, "ask");
    expect((await recorder.reply(asking)).value.result).toMatchObject(hello("sampled"));
    const question = recorder.messages.find(({ value }) => value.method === "sampling/createMessage");
    expect(question?.ticket).toBe(ticketed ? asking : undefined);

    // The stream may not be open yet when the first shout is made; servers drop what nobody hears.
    const heard = () => recorder.messages.find(({ value }) => value.method === "notifications/tools/list_changed");
    await expect
      .poll(async () => {
        await recorder.reply(call(recorder, "shout"));
        return heard();
      })
      .toBeDefined();
    expect(heard()?.ticket).toBe(undefined);

    const many = Array.from({ length: 50 }, (_, i) => call(recorder, `n${i}`));
    for (const [i, id] of many.entries()) {
      expect((await recorder.reply(id)).value.result).toMatchObject(hello(`n${i}`));
    }
    expect(recorder.failures).toEqual([]);
    expect(recorder.closed).toEqual([]);
  });
});

it("JSON answers of the SDK's server pass, and its large ones", async () => {
  const recorder = await connect((await v1({ enableJsonResponse: true })).url);
  await recorder.handshake();
  expect((await recorder.reply(call(recorder, "world"))).value.result).toMatchObject(hello("world"));
  const name = "x".repeat(2 * 1024 * 1024);
  call(recorder, name);
  await recorder.until(() => recorder.large.length > 0);
  const chunks: Buffer[] = [recorder.large[0]?.head as Buffer];
  for await (const chunk of recorder.large[0]?.rest ?? []) chunks.push(chunk as Buffer);
  expect(JSON.parse(Buffer.concat(chunks).toString())).toMatchObject({ result: hello(name) });
});

it("a server that keeps no sessions is used without one", async () => {
  const http = createServer(async (request, response) => {
    const transport = new StreamableHTTPServerTransport({});
    await serverV1().connect(transport as never);
    await transport.handleRequest(request, response);
  });
  const recorder = await connect(await listen(http));
  await recorder.handshake();
  expect((await recorder.reply(call(recorder, "world"))).value.result).toMatchObject(hello("world"));
  expect(recorder.closed).toEqual([]);
});

it("a server that closes its stream on purpose is polled for the rest", async () => {
  const recorder = await connect((await v1({ eventStore: new Events(), retryInterval: 100 })).url);
  await recorder.handshake();
  expect((await recorder.reply(call(recorder, "poll"))).value.result).toMatchObject(hello("poll"));
  expect(recorder.failures).toEqual([]);
});

it.each([
  ["v1", v1],
  ["v2", v2],
])("a restart of the SDK's %s server is seen as a session that is gone [restart-unseen]", async (_name, make) => {
  const { url, sessions } = await make();
  const recorder = await connect(url);
  await recorder.handshake();
  sessions.clear();
  const { fault, sent } = await recorder.failure(call(recorder, "world"));
  expect({ code: fault.code, sent }).toEqual({ code: "unavailable", sent: false });
  expect(recorder.closed).toHaveLength(1);
});

it("close() ends the session at the server", async () => {
  const { url, sessions } = await v1();
  const recorder = await connect(url);
  await recorder.handshake();
  const [transport] = sessions.values() as Iterable<StreamableHTTPServerTransport>;
  let ended = false;
  const before = transport?.onclose;
  if (transport !== undefined) {
    transport.onclose = () => {
      ended = true;
      before?.();
    };
  }
  await recorder.link.close();
  expect(ended).toBe(true);
});
