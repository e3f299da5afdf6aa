// An MCP server on a bare socket that ends its connections as it is told, in the middle of a large answer or behind it.

import { createServer, type Socket } from "node:net";
import { listenOnLoopback } from "../fixtures/loopback.js";

export type Framing = "length" | "chunks" | "none";
/** `end`: all is said and the connection closed; `half`: the same, and it goes on listening; `reset`: it is torn down. */
export type Ending = "end" | "half" | "reset";

export interface Fill {
  readonly framing: Framing;
  readonly ending: Ending;
  /** So much of the answer is left out. */
  readonly missing: number;
  readonly bytes: number;
}

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
/** A reset takes what the other end has not read; so it comes when that much is likely to be read. */
const BEFORE_RESET_MS = 200;

export async function startClosingServer(): Promise<{ url: string; close(): void }> {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    let text = "";
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    socket.on("end", () => socket.end());
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
      const head = text.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (text.length < head + 4 + length) return;
      const body = text.slice(head + 4, head + 4 + length);
      text = "";
      answer(socket, body);
    });
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function answer(socket: Socket, body: string): void {
  const rpc = body === "" ? {} : JSON.parse(body);
  const reply = (result: object) => {
    const text = JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result });
    socket.end(`${HEAD}content-length: ${text.length}\r\n\r\n${text}`);
  };
  if (rpc.method === "initialize") {
    const { protocolVersion } = rpc.params;
    reply({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "closing", version: "1" } });
  } else if (rpc.method === "tools/list") {
    reply({ tools: ["short", "fill"].map((name) => ({ name, inputSchema: { type: "object" } })) });
  } else if (rpc.method === "tools/call") {
    if (rpc.params.name === "short") reply({ content: [{ type: "text", text: "short" }] });
    else fill(socket, rpc.id, rpc.params.arguments);
  } else {
    const status =
      rpc.method === undefined ? "405 Method Not Allowed" : rpc.id === undefined ? "202 Accepted" : "400 Bad";
    socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  }
}

function fill(socket: Socket, id: number, { framing, ending, missing, bytes }: Fill): void {
  const text = "x".repeat(bytes);
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } }));
  const said = body.subarray(0, body.length - missing);
  if (framing === "length") socket.write(`${HEAD}content-length: ${body.length}\r\n\r\n`);
  else socket.write(`${HEAD}${framing === "chunks" ? "transfer-encoding: chunked\r\n" : ""}\r\n`);
  if (framing !== "chunks") socket.write(said, over);
  else {
    for (let at = 0; at < said.length; at += 65_536) {
      const piece = said.subarray(at, at + 65_536);
      socket.write(`${piece.length.toString(16)}\r\n`);
      socket.write(piece);
      socket.write("\r\n");
    }
    socket.write(missing > 0 ? "" : "0\r\n\r\n", over);
  }

  function over(): void {
    if (ending === "reset") setTimeout(() => socket.resetAndDestroy(), BEFORE_RESET_MS);
    else if (ending === "half") socket.end();
    else socket.destroySoon();
  }
}
