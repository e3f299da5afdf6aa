// Listening streams of servers that want a credential, of both eras: they go on when it ends, when it is refused for a while
// and when it is another, and agents hear what is said there.

import { writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, expect, it, onTestFinished } from "vitest";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connect, type ERAS } from "./eras.js";
import { startGateway, temporaryDirectory, until } from "./harness.js";

type Era = (typeof ERAS)[number];

interface Stream {
  readonly token: string;
  readonly response: ServerResponse;
  /** Of the modern era, whose messages name what they are for. */
  readonly id: number | undefined;
  isOpen: boolean;
}

const INFO = { name: "streaming", version: "1" };
const CAPABILITIES = { tools: { listChanged: true } };
/** Longer than the pauses after which a stream is opened again, on a busy machine. */
const REOPENED_MS = 30_000;

/** A server of one era that lets in whoever shows the token that is good now, and tells of changes on its streams. */
class Streaming {
  readonly streams: Stream[] = [];
  readonly refused: string[] = [];
  good = "first";
  tools = ["echo"];
  readonly #era: Era;

  constructor(era: Era) {
    this.#era = era;
  }

  async listen(): Promise<string> {
    const server = createServer(async (request, response) => {
      const token = request.headers.authorization?.replace(/^Bearer /, "") ?? "";
      const body = request.method === "POST" ? await text(request) : "";
      if (token !== this.good) {
        this.refused.push(request.method ?? "");
        return void response.writeHead(401, { "www-authenticate": "Bearer" }).end();
      }
      if (request.method === "GET" && this.#era === "legacy") return this.#open(token, response, undefined);
      if (body === "") return void response.writeHead(405).end();
      const { id, method } = JSON.parse(body) as { id?: number; method: string };
      if (id === undefined) return void response.writeHead(202).end();
      if (method === "subscriptions/listen" && this.#era === "modern") return this.#open(token, response, id);
      const result = this.#results()[method];
      const answer = result === undefined ? { error: { code: -32601, message: "Method not found" } } : { result };
      const session = this.#era === "legacy" ? { "mcp-session-id": "one" } : {};
      // As the modern era has it: a method that is not known is not found.
      const status = result === undefined && this.#era === "modern" ? 404 : 200;
      response.writeHead(status, { "content-type": "application/json", ...session });
      response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
    });
    onTestFinished(() => closeHttp(server));
    return `http://127.0.0.1:${await listenOnLoopback(server)}/mcp`;
  }

  #results(): Record<string, object> {
    const tools = this.tools.map((name) => ({ name, inputSchema: { type: "object" } }));
    const content = [{ type: "text", text: "called" }];
    if (this.#era === "legacy") {
      const initialize = { protocolVersion: "2025-11-25", capabilities: CAPABILITIES, serverInfo: INFO };
      return { initialize, "tools/list": { tools }, "tools/call": { content } };
    }
    const kept = { ttlMs: 600_000, cacheScope: "private", resultType: "complete" };
    const _meta = { "io.modelcontextprotocol/serverInfo": INFO };
    return {
      "server/discover": { supportedVersions: ["2026-07-28"], capabilities: CAPABILITIES, ...kept, _meta },
      "tools/list": { tools, ...kept, _meta },
      "tools/call": { content, resultType: "complete", _meta },
    };
  }

  #open(token: string, response: ServerResponse, id: number | undefined): void {
    const stream: Stream = { token, response, id, isOpen: true };
    response.writeHead(200, { "content-type": "text/event-stream" }).write(": here\n\n");
    response.once("close", () => {
      stream.isOpen = false;
    });
    this.streams.push(stream);
    if (id !== undefined) this.#say(stream, "notifications/subscriptions/acknowledged", { toolsListChanged: true });
  }

  #say({ response, id }: Stream, method: string, notifications?: object): void {
    const meta = id === undefined ? {} : { _meta: { "io.modelcontextprotocol/subscriptionId": id } };
    const params = { ...meta, ...(notifications === undefined ? {} : { notifications }) };
    response.write(`data: ${JSON.stringify({ jsonrpc: "2.0", method, params })}\n\n`);
  }

  tellOfChange(): void {
    for (const stream of this.streams) if (stream.isOpen) this.#say(stream, "notifications/tools/list_changed");
  }

  isHeardWith(token: string): boolean {
    return this.streams.some((stream) => stream.isOpen && stream.token === token);
  }
}

async function scene(era: Era) {
  const path = join(await temporaryDirectory(), "token");
  await writeFile(path, "first");
  const server = new Streaming(era);
  const url = await server.listen();
  const gateway = await startGateway({ mcpServers: { remote: { url, auth: { bearer: { file: path } } } } });
  const agent = await connect(era, gateway);
  if (agent.era === "modern") await agent.listen({ lists: true });
  await agent.waitFor("echo");
  await until("the first stream", () => server.isHeardWith("first"));
  /** What is said on the stream that is open now reaches the agent, without a look at the list. */
  const expectHeard = async () => {
    const isTold = ({ method }: { method: string }) => method === "notifications/tools/list_changed";
    // What the change of the credential itself makes known is past by then.
    await until("the lists to be read", async () => (await agent.text("echo")) === "called");
    const before = agent.notified.filter(isTold).length;
    server.tools = [...server.tools, "later"];
    server.tellOfChange();
    await until("the agent to be told", () => agent.notified.filter(isTold).length > before);
    expect(await agent.names()).toContain("later");
  };
  return { path, server, agent, expectHeard };
}

describe.each(["legacy", "modern"] as const)("a listening stream of a %s server", (era) => {
  it("that ends with its token is open again with the next one, and what is said there reaches the agent [token-unseen]", async () => {
    const { path, server, expectHeard } = await scene(era);
    server.good = "second";
    await writeFile(path, "second");
    for (const { response } of server.streams) response.end();
    await until("a stream with the next token", () => server.isHeardWith("second"), REOPENED_MS);
    await expectHeard();
  });

  it("that ends with its token while there is no other is open again when there is one [token-unseen]", async () => {
    const { path, server, expectHeard } = await scene(era);
    server.good = "second";
    const before = server.refused.length;
    for (const { response } of server.streams) response.end();
    await until("the stream to be refused", () => server.refused.length > before, REOPENED_MS);
    await writeFile(path, "second");
    await until("a stream with the next token", () => server.isHeardWith("second"), REOPENED_MS);
    await expectHeard();
  });

  it("that the server leaves open is renewed when the credential is another: it was for whoever had the one before [token-unseen]", async () => {
    const { path, server, expectHeard } = await scene(era);
    server.good = "second";
    await writeFile(path, "second");
    await until("a stream with the next token", () => server.isHeardWith("second"), REOPENED_MS);
    expect(server.isHeardWith("first")).toBe(false);
    await expectHeard();
  });
});
