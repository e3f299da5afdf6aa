// A request that asks for another protocol which we do not speak is served as if it had not asked, as HTTP wants it:
// some clients offer HTTP/2 with every first request. Node does so by itself, until somebody listens for upgrades.

import type { IncomingMessage, Server } from "node:http";
import { Server as TlsServer } from "node:https";
import type { Duplex } from "node:stream";

/** Tokens of `Connection` that belong to the offer. */
const OFFER = new Set(["upgrade", "http2-settings"]);

export function offersWebSocket(req: IncomingMessage): boolean {
  return req.headers.upgrade?.toLowerCase() === "websocket";
}

/** Gives the connection back to the server, with the request before it that it had read, less its offer. */
export function ignoreUpgrade(server: Server, req: IncomingMessage, socket: Duplex, head: Buffer): void {
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`];
  for (let i = 0; i + 1 < req.rawHeaders.length; i += 2) {
    const name = req.rawHeaders[i] as string;
    const value = withoutOffer(name.toLowerCase(), req.rawHeaders[i + 1] as string);
    if (value !== undefined) lines.push(`${name}: ${value}`);
  }
  socket.unshift(Buffer.concat([Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1"), head]));
  server.emit(server instanceof TlsServer ? "secureConnection" : "connection", socket);
}

function withoutOffer(name: string, value: string): string | undefined {
  if (name === "upgrade") return undefined;
  if (name !== "connection") return value;
  const kept = value.split(",").filter((token) => !OFFER.has(token.trim().toLowerCase()));
  return kept.length === 0 ? undefined : kept.join(",").trim();
}
