// The HTTP server at the far end of an executor: answers of every kind, and a memory of what it was asked.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { gzipSync } from "node:zlib";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";

export interface Seen {
  readonly method: string;
  readonly path: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

export interface Origin {
  readonly url: string;
  readonly seen: Seen[];
  /** Requests under way whose socket has closed, by path. */
  readonly dropped: string[];
  /** Lets the requests to `/wait` go on. */
  release(): void;
  close(): Promise<void>;
}

/** `/bytes?n=…`: the bytes that it answers with, so that order and loss can be seen. */
export function patterned(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let i = 0; i < length; i++) bytes[i] = (i * 31 + (i >> 8)) & 0xff;
  return bytes;
}

export async function startOrigin(): Promise<Origin> {
  const seen: Seen[] = [];
  const dropped: string[] = [];
  let waiting: ServerResponse[] = [];
  const server = createServer(async (request, response) => {
    const path = (request.url ?? "").split("?")[0] as string;
    response.on("close", () => {
      if (!response.writableFinished) dropped.push(path);
    });
    const parts: Buffer[] = [];
    try {
      for await (const part of request) parts.push(part as Buffer);
    } catch {
      return;
    }
    seen.push({ method: request.method ?? "", path, headers: request.rawHeaders, body: Buffer.concat(parts) });
    if (path === "/wait") waiting.push(response);
    else answer(path, request, response);
  });
  const port = await listenOnLoopback(server);
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    dropped,
    release() {
      for (const response of waiting) response.end("released");
      waiting = [];
    },
    close: () => closeHttp(server),
  };
}

function answer(path: string, request: IncomingMessage, response: ServerResponse): void {
  const query = new URL(request.url ?? "", "http://x").searchParams;
  switch (path) {
    case "/bytes":
      response.end(patterned(Number(query.get("n"))));
      break;
    case "/status":
      response.writeHead(Number(query.get("code"))).end("as asked");
      break;
    case "/empty":
      response.writeHead(204).end();
      break;
    case "/headers":
      response.setHeader("X-Upper", "Kept");
      response.setHeader("Set-Cookie", ["a=1", "b=2"]);
      response.end("headers");
      break;
    case "/gzip":
      response.setHeader("content-encoding", "gzip");
      response.end(gzipSync("packed"));
      break;
    case "/redirect":
      response.writeHead(Number(query.get("code") ?? 302), { location: query.get("to") ?? "/" }).end("moved");
      break;
    case "/circle":
      response.writeHead(302, { location: "/circle" }).end();
      break;
    case "/cut":
      response.write("first");
      // After it has left: both arrive, the piece and the cut.
      setTimeout(() => request.socket.destroy(), 50);
      break;
    case "/short":
      response.writeHead(200, { "content-length": "100" });
      response.write("first");
      setTimeout(() => request.socket.destroy(), 50);
      break;
    case "/reset":
      request.socket.destroy();
      break;
    case "/open":
      response.write("first");
      break;
    case "/never":
      break;
    default:
      response.end("fine");
  }
}
