// A proxy as one would write it on SDK v1: streamable HTTP with sessions in front, one client of one server behind.
// node sdk-v1.mjs (--url URL | -- command args…)      Prints its port as one line of JSON, and ends when its stdin does.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import {
  CallToolRequestSchema,
  CallToolResultSchema,
  ListToolsRequestSchema,
  ListToolsResultSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { behind } from "./sdk-arguments.mjs";

const info = { name: "sdk-v1-proxy", version: "1.0.0" };
const { url, stdio } = behind();
const client = new Client(info, { capabilities: {} });
await client.connect(url === undefined ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(url));

const transports = new Map();

function openSession() {
  const server = new Server(info, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, (request) => client.request(request, ListToolsResultSchema));
  server.setRequestHandler(CallToolRequestSchema, (request) => client.request(request, CallToolResultSchema));
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    // Cheaper than an event stream for each answer.
    enableJsonResponse: true,
    onsessioninitialized: (id) => void transports.set(id, transport),
    onsessionclosed: (id) => void transports.delete(id),
  });
  return server.connect(transport).then(() => transport);
}

const http = createServer(async (req, res) => {
  const id = req.headers["mcp-session-id"];
  const transport = id === undefined ? await openSession() : transports.get(id);
  if (transport === undefined) return void res.writeHead(404).end();
  await transport.handleRequest(req, res);
});
http.listen(0, "127.0.0.1", () => process.stdout.write(`${JSON.stringify({ port: http.address().port })}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
