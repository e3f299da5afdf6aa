// A server over HTTP that keeps one session: whoever opens another one ends it. Over real HTTP, with agents that can be asked
// different things.

import { randomUUID } from "node:crypto";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, expect, it } from "vitest";
import { createGateway } from "../index.js";
import type { JsonObject } from "../protocol/jsonrpc.js";

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

class OneSession {
  /** How often it was asked for a session. */
  opened = 0;
  readonly #server: Server;
  #session: string | undefined;

  constructor() {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        if (request.method !== "POST") return void response.writeHead(405).end();
        const message = JSON.parse(Buffer.concat(chunks).toString()) as JsonObject;
        if (message["method"] === "initialize") {
          this.opened++;
          this.#session = randomUUID();
        } else if (request.headers["mcp-session-id"] === undefined || this.#session === undefined) {
          return void response.writeHead(400).end();
        } else if (request.headers["mcp-session-id"] !== this.#session) return void response.writeHead(404).end();
        if (message["id"] === undefined) response.writeHead(202).end();
        else this.#answer(response, message);
      });
    });
  }

  #answer(response: ServerResponse, { id, method }: JsonObject): void {
    const tools = [{ name: "ping", inputSchema: { type: "object" } }];
    const results: Readonly<Record<string, unknown>> = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "one", version: "1" },
      },
      "tools/list": { tools },
      "tools/call": { content: [{ type: "text", text: "pong" }] },
    };
    const headers = { "content-type": "application/json", "mcp-session-id": this.#session };
    const result = results[String(method)] ?? {};
    response.writeHead(200, headers).end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }

  async listen(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/mcp`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

async function connect(url: string, capabilities: JsonObject): Promise<Client> {
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client["connect"]>[0]);
  cleanUp.push(() => client.close());
  return client;
}

it("agents of different kinds whose sessions put each other out at a server that keeps one share one, and the log and the status say so [one-bad-server] [told-truly]", async () => {
  const server = new OneSession();
  const url = await server.listen();
  cleanUp.push(() => server.close());
  const logged: string[] = [];
  const note = (text: string) => void logged.push(text);
  const log = { debug: note, info: note, warn: note, error: note };
  const gateway = await createGateway({ mcpServers: { one: { type: "http", url } } } as never, { noAuth: true, log });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  const endpoint = await gateway.listen({ port: 0 });
  const clients = [
    await connect(endpoint.url, {}),
    await connect(endpoint.url, { sampling: {} }),
    await connect(endpoint.url, { roots: {} }),
  ];
  const call = (at: number) => clients[at % clients.length]?.callTool({ name: "one__ping", arguments: {} });
  const problems = () => gateway.status().servers.find(({ name }) => name === "one")?.problems ?? [];
  // The first of them may fail: their session is gone each time.
  for (let n = 0; problems().length === 0 && n < 200; n++) await call(n)?.catch(() => undefined);
  expect(problems().join()).toMatch(/keeps one session/);
  expect(logged.filter((text) => text.includes("keeps one session"))).toHaveLength(1);
  // What was under way in the sessions beside has ended by then.
  for (let n = 0; n < 6; n++) await call(n);
  const { opened } = server;
  for (let n = 0; n < 30; n++) expect(await call(n)).toMatchObject({ content: [{ text: "pong" }] });
  expect(server.opened).toBe(opened);
}, 300_000);
