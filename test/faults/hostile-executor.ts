// An executor that carries an MCP server as it should, and does to some calls what it is told: the worst it can.

import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";

export interface Asked {
  readonly id: string;
  /** Of the JSON-RPC message in the request's body. */
  readonly rpcId: unknown;
  readonly ws: WebSocket;
  write(message: unknown): void;
  head(status?: unknown, headers?: unknown, bodyBase64?: unknown): void;
  delta(seq: number, text: string | Buffer, done?: boolean, more?: object): void;
  /** A whole answer that is as it should be. */
  answer(text: string): void;
}

export interface HostileExecutor {
  readonly url: string;
  /** What a call of the tool with this name meets. */
  readonly deeds: Map<string, (asked: Asked) => void>;
  close(): void;
}

const JSON_TYPE = { name: "content-type", value: "application/json" };

export const jsonHeaders = (...more: { name: string; value: string }[]) => [JSON_TYPE, ...more];

export function resultText(rpcId: unknown, text: string): string {
  return JSON.stringify({ jsonrpc: "2.0", id: rpcId, result: { content: [{ type: "text", text }] } });
}

export async function startHostile(tools: readonly string[]): Promise<HostileExecutor> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await new Promise((resolve) => server.once("listening", resolve));
  const deeds = new Map<string, (asked: Asked) => void>();
  let sessions = 0;
  server.on("connection", (ws) => {
    ws.on("error", () => {});
    ws.on("message", (data) => {
      const { id, method, params } = JSON.parse(String(data));
      if (method === "initialize") {
        const toolway = { version: 1, window: 65_536, retentionMs: 60_000, resumed: false, received: 0 };
        ws.send(JSON.stringify({ id, result: { sessionId: `hostile-${sessions++}`, toolway } }));
      } else if (method === "http/request") {
        serve(askedOf(ws, id, params), params);
      }
    });
  });

  const serve = (asked: Asked, params: { method: string; bodyBase64?: string }): void => {
    if (params.method !== "POST") {
      asked.head(405);
      asked.delta(1, "", true);
      return;
    }
    const rpc = JSON.parse(Buffer.from(params.bodyBase64 ?? "", "base64").toString());
    const result = (value: unknown) => JSON.stringify({ jsonrpc: "2.0", id: rpc.id, result: value });
    if (rpc.method === "tools/call") {
      const deed = deeds.get(rpc.params.name);
      if (deed === undefined) asked.answer(resultText(rpc.id, "fine"));
      else deed(asked);
    } else if (rpc.method === "initialize") {
      const { protocolVersion } = rpc.params;
      const serverInfo = { name: "hostile", version: "1" };
      asked.answer(result({ protocolVersion, capabilities: { tools: {} }, serverInfo }));
    } else if (rpc.method === "tools/list") {
      asked.answer(result({ tools: tools.map((name) => ({ name, inputSchema: { type: "object" } })) }));
    } else if (rpc.id === undefined) {
      asked.head(202);
      asked.delta(1, "", true);
    } else {
      asked.answer(JSON.stringify({ jsonrpc: "2.0", id: rpc.id, error: { code: -32601, message: "unknown" } }));
    }
  };

  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    deeds,
    close() {
      for (const client of server.clients) client.terminate();
      server.close();
    },
  };
}

function askedOf(ws: WebSocket, id: string, params: { bodyBase64?: string }): Asked {
  const write = (message: unknown): void => ws.send(JSON.stringify(message));
  const delta: Asked["delta"] = (seq, text, done = false, more = {}) =>
    write({
      method: "http/request/bodyDelta",
      params: { requestId: id, seq, deltaBase64: Buffer.from(text).toString("base64"), done, ...more },
    });
  const head: Asked["head"] = (status = 200, headers = jsonHeaders(), bodyBase64 = "") =>
    write({ id, result: { status, headers, bodyBase64 } });
  return {
    id,
    ws,
    get rpcId() {
      return JSON.parse(Buffer.from(params.bodyBase64 ?? "", "base64").toString()).id;
    },
    write,
    head,
    delta,
    answer(text) {
      head();
      delta(1, text);
      delta(2, "", true);
    },
  };
}
