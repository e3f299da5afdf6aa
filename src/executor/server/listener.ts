// The door of an executor that is dialled: WebSocket upgrades with the right token, and a sign of life for probes.
// Browsers are kept out. What is said on a socket is the executor's business.

import { hash, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import { isLoopback } from "../../runtime/addresses.js";
import { HANDSHAKE_MS, MAX_CONNECTIONS } from "../../sockets/limits.js";
import { Close, SOCKET_OPTIONS, Socket } from "../../sockets/socket.js";
import type { ExecutorLog } from "../wire/types.js";
import type { Executor } from "./executor.js";

export interface ListenOptions {
  /** A name or an address; `[::1]` and `::1` are the same. */
  readonly host: string;
  /** 0 stands for any port that is free. */
  readonly port: number;
  /** What clients must show. Undefined where they need none, which is refused beyond loopback. */
  readonly token: string | undefined;
  readonly log?: ExecutorLog | undefined;
}

export interface Listener {
  /** `ws://host:port` with the port that it is. */
  readonly url: string;
  /** Takes nobody any more, and ends the sockets that came in here. */
  close(): Promise<void>;
}

/** Connections that are no WebSocket, or none yet: probes, and upgrades under way. */
const SPARE_CONNECTIONS = 64;

/** Paths that answer probes, as at the exec-server. */
const SIGNS_OF_LIFE = new Set(["/healthz", "/readyz"]);

/** Rejects where the address cannot be listened at; throws where it would be open to everybody. */
export async function listenForClients(executor: Pick<Executor, "serve">, options: ListenOptions): Promise<Listener> {
  const host = options.host.replace(/^\[(.*)\]$/, "$1");
  if (options.token === undefined && !isLoopback(host)) throw needsToken(host);
  if (options.token === "") throw new Error("an empty token would let everybody in");
  const { WebSocketServer } = await import("ws");
  const upgrader = new WebSocketServer({
    ...SOCKET_OPTIONS,
    noServer: true,
    // They are counted here, so that clients that are gone leave nothing behind.
    clientTracking: false,
    // A protocol that a client offers is passed over, as the exec-server does.
    handleProtocols: () => false,
  });
  const open = new Map<WebSocket, Socket>();
  const digest = options.token === undefined ? undefined : digestOf(options.token);

  const server = createServer(
    { headersTimeout: HANDSHAKE_MS, requestTimeout: HANDSHAKE_MS, connectionsCheckingInterval: HANDSHAKE_MS / 2 },
    answerPlain,
  );
  server.maxConnections = MAX_CONNECTIONS + SPARE_CONNECTIONS;
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A socket may break while it is being answered.
    socket.on("error", () => {});
    const refusal = judge(request, digest, open.size);
    if (refusal !== undefined) {
      options.log?.warn("executor: a connection was refused", { from: peerOf(request), why: refusal.why });
      refuse(socket, refusal);
      return;
    }
    upgrader.handleUpgrade(request, socket, head, (ws) => {
      const made = new Socket(ws, request.socket, "none");
      open.set(ws, made);
      ws.once("close", () => open.delete(ws));
      options.log?.info("executor: a client connected", { from: peerOf(request) });
      executor.serve(made);
    });
  });

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(options.port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
  const { address, port } = server.address() as AddressInfo;

  const close = async (): Promise<void> => {
    const closed = new Promise<void>((resolve) => server.close(() => resolve()));
    for (const socket of open.values()) socket.close(Close.goingAway, "the executor stops");
    server.closeAllConnections();
    await closed;
  };
  // The name may lead elsewhere: the hosts file says where.
  if (options.token === undefined && !isLoopback(address)) {
    await close();
    throw needsToken(address);
  }
  return { url: `ws://${isIP(host) === 6 ? `[${host}]` : host}:${port}`, close };
}

function needsToken(host: string): Error {
  return new Error(`without a token an executor listens on a loopback address only, not on ${host}`);
}

interface Refusal {
  readonly status: number;
  readonly why: string;
}

/** Undefined where the client is let in. The reasons are the exec-server's words where it has some. */
function judge(request: IncomingMessage, digest: Buffer | undefined, open: number): Refusal | undefined {
  // Only browsers send it, and no page may use what is reachable from its reader's machine.
  if (request.headers.origin !== undefined) return { status: 403, why: "browsers are not let in" };
  const wrongToken = digest === undefined ? undefined : judgeToken(request.headers.authorization, digest);
  if (wrongToken !== undefined) return { status: 401, why: wrongToken };
  if (open >= MAX_CONNECTIONS) return { status: 503, why: `${MAX_CONNECTIONS} connections are open already` };
  return undefined;
}

function judgeToken(authorization: string | undefined, digest: Buffer): string | undefined {
  if (authorization === undefined) return "missing websocket bearer token";
  const [, token] = /^bearer +(\S+) *$/i.exec(authorization) ?? [];
  if (token === undefined) return "invalid authorization header";
  return timingSafeEqual(digestOf(token), digest) ? undefined : "invalid websocket bearer token";
}

/** All digests have one length, so that the comparison tells nothing of the token's. */
function digestOf(token: string): Buffer {
  return hash("sha256", token, "buffer");
}

/** The connection ends with it, also where the peer keeps its side open: nobody else watches it any more. */
function refuse(socket: Duplex, { status, why }: Refusal): void {
  const challenge = status === 401 ? "www-authenticate: Bearer\r\n" : "";
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\n${challenge}`;
  socket.once("finish", () => socket.destroy());
  socket.end(`${head}content-type: text/plain\r\ncontent-length: ${Buffer.byteLength(why)}\r\n\r\n${why}`);
}

function answerPlain(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url?.split("?", 1)[0] ?? "";
  const isProbe = (request.method === "GET" || request.method === "HEAD") && SIGNS_OF_LIFE.has(path);
  response.writeHead(isProbe ? 200 : 400, { "content-type": "text/plain", connection: "close" });
  response.end(isProbe ? "ok\n" : "An executor: it speaks WebSocket, and HTTP at /healthz and /readyz only.\n");
}

function peerOf(request: IncomingMessage): string {
  return request.socket.remoteAddress ?? "an address that is gone";
}
