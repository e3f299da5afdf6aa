// Where executors dial in: WebSocket upgrades at /executors/<name>, checked as agents are and by a role of their own.
// What an executor then does is not known here.

import { type IncomingMessage, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { WebSocketServer } from "ws";
import type { Principal } from "../../contracts/caller.js";
import type { Visitor } from "../../contracts/executors.js";
import { DENIED, LIMIT, UNAUTHORIZED } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { MAX_CONNECTIONS } from "../../sockets/limits.js";
import { MACHINE_HEADER, SESSION_HEADER } from "../../sockets/protocol.js";
import { SOCKET_OPTIONS, Socket } from "../../sockets/socket.js";
import type { EndpointEvent } from "../session/endpoint-event.js";
import { bearer, type HostCheck, hasTokenInQuery } from "./checks.js";

/** The role of a token that lets an executor in, and nobody else. */
export const EXECUTOR_ROLE = "executor";

/** Longer than any id of a conversation. */
const MAX_SESSION_CHARS = 256;

/** As host names are; what else is said there is shown to nobody. */
const MACHINE_NAME = /^[\p{L}\p{N}][\p{L}\p{N}._-]{0,252}$/u;

/** Who takes executors in. */
export interface ExecutorHall {
  has(name: string): boolean;
  adopt(name: string, socket: Socket, visitor: Visitor): void;
}

export interface ExecutorDoorOptions {
  readonly hall: ExecutorHall;
  readonly hosts: HostCheck;
  /** Whose token this is. Undefined for one that is nobody's. */
  readonly authenticate: (token: string) => Principal | undefined;
  /** Who everybody is where nobody is asked for a token. */
  readonly everybody: Principal | undefined;
  readonly log?: ((event: EndpointEvent) => void) | undefined;
}

interface Refusal {
  readonly status: 401 | 403 | 404 | 503;
  readonly code: number;
  readonly why: string;
}

export class ExecutorDoor {
  readonly #options: ExecutorDoorOptions;
  #server: Promise<WebSocketServer> | undefined;
  /** Connections that are executors' by now. */
  readonly count: { open: number };

  /** `count`: of the door before it, whose executors stay. */
  constructor(options: ExecutorDoorOptions, count = { open: 0 }) {
    this.#options = options;
    this.count = count;
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    const url = req.url ?? "/";
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const found = this.#check(req, path, mark < 0 ? "" : url.slice(mark + 1));
    if ("why" in found) {
      const { status, why } = found;
      // With a token that is right, also a name that is wrong.
      if (status === 401 || status === 403 || nameOf(path) !== undefined)
        this.#options.log?.({ kind: "refused", status, path, why });
      refuseUpgrade(socket, found);
      return;
    }
    const { name, principal } = found;
    const { count } = this;
    count.open++;
    socket.once("close", () => count.open--);
    // Nobody else listens until it is a WebSocket.
    socket.on("error", () => {});
    // What it needs may be gone: installed anew while it runs.
    this.#admit(req, socket, head, name, principal).catch(() => socket.destroy());
  }

  async #admit(req: IncomingMessage, socket: Duplex, head: Buffer, name: string, principal: Principal): Promise<void> {
    const server = await this.#webSockets();
    const session = req.headers[SESSION_HEADER];
    const sessionId = typeof session === "string" && session.length <= MAX_SESSION_CHARS ? session : undefined;
    const machine = machineOf(req.headers[MACHINE_HEADER]);
    const { remoteAddress = "unknown", remotePort } = req.socket;
    const address = `${remoteAddress.replace(/^::ffff:/, "")}:${remotePort}`;
    server.handleUpgrade(req, socket, head, (ws) => {
      this.#options.hall.adopt(name, new Socket(ws, req.socket), {
        sessionId,
        address,
        machine,
        principal: principal.id,
      });
    });
  }

  #webSockets(): Promise<WebSocketServer> {
    // Loaded with the first executor that comes.
    this.#server ??= import("ws").then(
      (ws) => new ws.WebSocketServer({ ...SOCKET_OPTIONS, noServer: true, clientTracking: false }),
    );
    return this.#server;
  }

  #check(req: IncomingMessage, path: string, query: string): Refusal | { name: string; principal: Principal } {
    const { hosts, hall, authenticate, everybody } = this.#options;
    const { headers } = req;
    const foreign = hosts.refusal(headers.host, undefined, req.socket.localAddress);
    if (foreign !== undefined) return refused(403, DENIED, foreign);
    if (headers.origin !== undefined) return refused(403, DENIED, "Executors are no web pages: an Origin is refused.");
    const name = nameOf(path);
    if (name === undefined) {
      return refused(
        404,
        ErrorCode.invalidRequest,
        "Nothing is here for WebSockets. Executors dial in at /executors/<name>.",
      );
    }
    if (hasTokenInQuery(query)) {
      return refused(401, UNAUTHORIZED, "Tokens are not accepted in URLs, where logs would keep them.");
    }
    const token = bearer(headers.authorization);
    const principal = everybody ?? (token === undefined ? undefined : authenticate(token));
    if (principal === undefined) {
      const why = token === undefined ? "A token is needed." : "The token is unknown, expired or revoked.";
      return refused(401, UNAUTHORIZED, `${why} ${howToGetIn(name)}`);
    }
    if (principal !== everybody && principal.role !== EXECUTOR_ROLE) {
      return refused(
        403,
        DENIED,
        `This token is for agents (its role is ${JSON.stringify(principal.role)}). ${howToGetIn(name)}`,
      );
    }
    if (!hall.has(name)) {
      const key = JSON.stringify(name);
      return refused(
        404,
        ErrorCode.invalidRequest,
        `There is no executor ${key} in the config ("executors": { ${key}: {} }).`,
      );
    }
    if (this.count.open >= MAX_CONNECTIONS)
      return refused(503, LIMIT, `There are ${MAX_CONNECTIONS} executors here already.`);
    return { name, principal };
  }
}

/** An answer to an upgrade that is none: the connection ends with it. */
function refuseUpgrade(socket: Duplex, { status, code, why }: Refusal): void {
  const body = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code, message: why } });
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}`,
    "Content-Type: application/json",
    `Content-Length: ${Buffer.byteLength(body)}`,
    "Connection: close",
    ...(status === 401 ? ['WWW-Authenticate: Bearer realm="toolway"'] : []),
  ];
  socket.on("error", () => socket.destroy());
  socket.once("finish", () => socket.destroy());
  socket.end(`${lines.join("\r\n")}\r\n\r\n${body}`);
}

function refused(status: Refusal["status"], code: number, why: string): Refusal {
  return { status, code, why };
}

function howToGetIn(name: string): string {
  const id = /^[\w.-]+$/.test(name) ? name : "office";
  return `Make one with "toolway token create --id ${id} --role ${EXECUTOR_ROLE}", and give it to the executor as TOOLWAY_TOKEN.`;
}

function machineOf(header: string | string[] | undefined): string | undefined {
  try {
    const name = typeof header === "string" ? decodeURIComponent(header) : "";
    return MACHINE_NAME.test(name) ? name : undefined;
  } catch {
    return undefined;
  }
}

function nameOf(path: string): string | undefined {
  const match = /^\/executors\/([^/]+)\/?$/.exec(path);
  if (match?.[1] === undefined) return undefined;
  try {
    return decodeURIComponent(match[1]);
  } catch {
    return undefined;
  }
}
