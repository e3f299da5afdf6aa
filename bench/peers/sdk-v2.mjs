// A proxy as one would write it on SDK v2, in either era: streamable HTTP in front (sessions, or none in the modern era),
// one client of one server behind. node sdk-v2.mjs --era legacy|modern (--url URL | -- command args…)
// Prints its port as one line of JSON, and ends when its stdin does.

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { behind } from "./sdk-arguments.mjs";

const info = { name: "sdk-v2-proxy", version: "1.0.0" };
const { url, stdio, era } = behind();
const versionNegotiation = { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" };
const client = new Client(info, { capabilities: {}, versionNegotiation });
await client.connect(url === undefined ? new StdioClientTransport(stdio) : new StreamableHTTPClientTransport(url));

function makeServer() {
  const server = new Server(info, { capabilities: { tools: {} } });
  // The params alone: what belongs to a hop (`_meta` of the modern era) is each side's own.
  server.setRequestHandler("tools/list", ({ params }) => client.request({ method: "tools/list", params: own(params) }));
  server.setRequestHandler("tools/call", ({ params }) => client.request({ method: "tools/call", params: own(params) }));
  return server;
}

function own(params) {
  if (params?._meta === undefined) return params;
  const { _meta, ...rest } = params;
  return rest;
}

const transports = new Map();

async function openSession() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: () => randomUUID(),
    // Cheaper than an event stream for each answer.
    enableJsonResponse: true,
    onsessioninitialized: (id) => void transports.set(id, transport),
    onsessionclosed: (id) => void transports.delete(id),
  });
  await makeServer().connect(transport);
  return transport;
}

async function serveLegacy(req, res) {
  const id = req.headers["mcp-session-id"];
  const transport = id === undefined ? await openSession() : transports.get(id);
  if (transport === undefined) return void res.writeHead(404).end();
  await transport.handleRequest(req, res);
}

const serveModern = toNodeHandler(createMcpHandler(makeServer, { legacy: "reject", responseMode: "json" }));
const http = createServer(era === "modern" ? serveModern : serveLegacy);
http.listen(0, "127.0.0.1", () => process.stdout.write(`${JSON.stringify({ port: http.address().port })}\n`));
process.stdin.on("end", () => process.exit(0)).resume();
