// The server of the control socket: HTTP on a Unix socket, JSON in and JSON out, for the operator. Owns the socket,
// routing and errors; what the routes do is given by the caller. Whoever can open the socket is the operator: there is
// no token here.

import { chmodSync, lstatSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { CodedError, messageOf } from "../runtime/expected-error.js";
import { TURN_BYTES, turns } from "../runtime/turns/turns.js";

/** Arguments of a tool call are the largest that come in. */
const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** How long answers under way may take when the server closes. */
const CLOSE_GRACE_MS = 1_000;
/** A connection for each of 1,000 runs; besides, the operator and a dashboard: more is a program that does not close its own. */
const MAX_CONNECTIONS = 1_000 + 256;

/** What the codes of errors, ours and those of stores, tokens and faults, are in HTTP. All others are 500. */
const STATUS: Readonly<Record<string, number>> = {
  invalid: 400,
  weak: 400,
  "session-ended": 401,
  denied: 403,
  "not-found": 404,
  // Not the user's mistake: the program and the gateway are of different versions.
  "no-route": 404,
  "wrong-method": 405,
  exists: 409,
  "too-large": 413,
  limit: 429,
  cancelled: 499,
  unavailable: 503,
  closing: 503,
  busy: 503,
  timeout: 504,
  full: 507,
  "disk-full": 507,
};

export class ControlError extends CodedError<string> {
  override readonly name = "ControlError";
}

export interface ControlRequest {
  /** What stood in the place of `:name` in the route. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  /** The parsed JSON body; undefined when there is none. */
  readonly body: unknown;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
}

/** Returns what is answered as JSON (undefined: 204), or `jsonLines(…)`. Throws errors with a code and a message. */
export type ControlHandler = (request: ControlRequest) => unknown;

/** Keys are a method and a path: `GET /status`, `DELETE /tokens/:id`. */
export type ControlRoutes = Readonly<Record<string, ControlHandler>>;

/** Takes over the connection after `Upgrade: <name>`. */
type ControlUpgrade = (socket: Duplex, query: URLSearchParams) => void;

export interface ControlOptions {
  /** From claimSocketPath(). A file of a gateway that died is replaced: the lock of the state directory is ours. */
  readonly path: string;
  readonly routes: ControlRoutes;
  readonly upgrades?: Readonly<Record<string, ControlUpgrade>>;
}

export interface ControlServer extends AsyncDisposable {
  readonly path: string;
  close(): Promise<void>;
}

class JsonLines {
  readonly source: AsyncIterable<unknown>;
  constructor(source: AsyncIterable<unknown>) {
    this.source = source;
  }
}

/** An answer as a stream of JSON lines, one for each value. What fails on the way comes as the trailer of an error. */
export function jsonLines(source: AsyncIterable<unknown>): unknown {
  return new JsonLines(source);
}

/** The trailer that ends a stream of lines which could not be completed. */
export const ERROR_TRAILER = "toolway-error";

interface Route {
  readonly method: string;
  readonly parts: readonly string[];
  readonly handler: ControlHandler;
}

/** Answers requests by routes. Never rejects: what a route throws is answered. `path` has a query, where one was given. */
export type RouteAnswerer = (path: string, request: IncomingMessage, response: ServerResponse) => Promise<void>;

export function answererOf(given: ControlRoutes, maxBodyBytes = MAX_BODY_BYTES): RouteAnswerer {
  const routes = Object.entries(given).map(([key, handler]): Route => {
    const [method = "", pattern = ""] = key.split(" ");
    return { method, parts: pattern.split("/").slice(1), handler };
  });
  return (path, request, response) => answer({ routes, maxBodyBytes }, path, request, response);
}

export async function serveControl(options: ControlOptions): Promise<ControlServer> {
  const { path, upgrades = {} } = options;
  const answerer = answererOf(options.routes);
  const upgraded = new Set<Duplex>();
  const server = createServer((request, response) => void answerer(request.url ?? "/", request, response));
  server.maxConnections = MAX_CONNECTIONS;
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on("error", () => socket.destroy());
    const name = request.headers.upgrade ?? "";
    const take = Object.hasOwn(upgrades, name) ? upgrades[name] : undefined;
    if (take === undefined) {
      const body = JSON.stringify(errorBody(new ControlError("no-route", `There is no "${name}" to upgrade to.`)));
      const type = `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}`;
      socket.end(`HTTP/1.1 404 Not Found\r\nConnection: close\r\n${type}\r\n\r\n${body}`);
      return;
    }
    upgraded.add(socket);
    socket.once("close", () => upgraded.delete(socket));
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${name}\r\n\r\n`);
    if (head.length > 0) socket.unshift(head);
    take(socket, new URL(request.url ?? "/", "http://control").searchParams);
  });
  removeStale(path);
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(path, () => {
      server.off("error", fail);
      done();
    });
  });
  // The directory around it is 0700, so nobody gets in before this.
  chmodSync(path, 0o600);
  let closing: Promise<void> | undefined;
  const close = () => {
    closing ??= new Promise<void>((done) => {
      const late = setTimeout(() => server.closeAllConnections(), CLOSE_GRACE_MS);
      server.close(() => {
        clearTimeout(late);
        done();
      });
      server.closeIdleConnections();
      for (const socket of upgraded) socket.destroy();
    });
    return closing;
  };
  return { path, close, [Symbol.asyncDispose]: close };
}

function removeStale(path: string): void {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return;
  if (!stat.isSocket()) throw new ControlError("exists", `${path} is in the way of the control socket: not a socket.`);
  rmSync(path);
}

interface Answering {
  readonly routes: readonly Route[];
  readonly maxBodyBytes: number;
}

async function answer(
  { routes, maxBodyBytes }: Answering,
  path: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController();
  response.once("close", () => gone.abort());
  try {
    // As it was sent: a URL would take `//x/status` and `/x/../status` for `/status`, which whoever looked at the path
    // before did not see in it.
    const [, pathname = "/", search = ""] = /^([^?#]*)(?:\?([^#]*))?/.exec(path) ?? [];
    const { handler, params } = route(routes, request.method ?? "GET", pathname);
    const body = await readBody(request, maxBodyBytes);
    // A page asks for a dozen things at once, and some are large: what answers makes one in a turn, and writes one in a turn.
    await turns.wait(TURN_BYTES);
    const result = await handler({ params, query: new URLSearchParams(search), body, signal: gone.signal });
    if (result instanceof JsonLines) return await sendLines(response, result.source, gone.signal);
    if (result !== undefined) await turns.wait(TURN_BYTES);
    send(response, result === undefined ? 204 : 200, result);
  } catch (error) {
    // A body that is not read to its end must not be taken for the next request.
    if (!request.complete) response.setHeader("Connection", "close");
    if (response.headersSent) response.destroy();
    else send(response, statusOf(error), errorBody(error));
  }
}

function route(
  routes: readonly Route[],
  method: string,
  path: string,
): { handler: ControlHandler; params: Record<string, string> } {
  const parts = path.split("/").slice(1);
  let other = false;
  for (const candidate of routes) {
    const params = match(candidate.parts, parts);
    if (params === undefined) continue;
    if (candidate.method === method) return { handler: candidate.handler, params };
    other = true;
  }
  if (other) throw new ControlError("wrong-method", `${method} does nothing at ${path}.`);
  throw new ControlError("no-route", `There is nothing at ${path}.`);
}

function match(pattern: readonly string[], parts: readonly string[]): Record<string, string> | undefined {
  if (pattern.length !== parts.length) return undefined;
  const params: Record<string, string> = Object.create(null);
  for (const [i, want] of pattern.entries()) {
    const part = parts[i] ?? "";
    if (!want.startsWith(":")) {
      if (want !== part) return undefined;
      continue;
    }
    try {
      params[want.slice(1)] = decodeURIComponent(part);
    } catch {
      return undefined;
    }
  }
  return params;
}

async function readBody(request: IncomingMessage, maxBytes: number): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  const tooLarge = () => new ControlError("too-large", `A request may have ${maxBytes / 1024} KiB.`);
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge();
  // Not destroyed when we stop early: the connection is needed for the answer.
  for await (const chunk of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > maxBytes) throw tooLarge();
    chunks.push(chunk);
  }
  if (size === 0) return undefined;
  try {
    return JSON.parse(Buffer.concat(chunks).toString("utf8"));
  } catch (error) {
    throw new ControlError("invalid", "The body of the request is not JSON.", { cause: error });
  }
}

function send(response: ServerResponse, status: number, value: unknown): void {
  if (response.destroyed) return;
  if (value === undefined) {
    response.writeHead(status).end();
    return;
  }
  const text = JSON.stringify(value);
  response.writeHead(status, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
  response.end(text);
}

async function sendLines(response: ServerResponse, source: AsyncIterable<unknown>, gone: AbortSignal): Promise<void> {
  const iterator = source[Symbol.asyncIterator]();
  // What fails before the first line is an ordinary error: the head is sent only after it.
  let next = await iterator.next();
  response.writeHead(200, { "Content-Type": "application/x-ndjson", Trailer: ERROR_TRAILER });
  try {
    while (next.done !== true && !gone.aborted) {
      if (!response.write(`${JSON.stringify(next.value)}\n`)) await drained(response, gone);
      next = await iterator.next();
    }
    if (next.done !== true) await iterator.return?.();
  } catch (error) {
    // Encoded, since headers take ASCII only.
    response.addTrailers({ [ERROR_TRAILER]: encodeURIComponent(JSON.stringify(errorBody(error).error)) });
  }
  response.end();
}

function drained(response: ServerResponse, gone: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (gone.aborted) return done();
    const go = () => {
      response.off("drain", go);
      gone.removeEventListener("abort", go);
      done();
    };
    response.once("drain", go);
    gone.addEventListener("abort", go, { once: true });
  });
}

function codeOf(error: unknown): string {
  const code = (error as { code?: unknown } | null)?.code;
  // Ours are small words; those of the system (ENOENT) and of Node (ERR_…) say nothing to the client.
  return typeof code === "string" && /^[a-z][a-z-]*$/.test(code) ? code : "internal";
}

function statusOf(error: unknown): number {
  const code = codeOf(error);
  return (Object.hasOwn(STATUS, code) ? STATUS[code] : undefined) ?? 500;
}

export function errorBody(error: unknown): { error: { code: string; message: string } } {
  return { error: { code: codeOf(error), message: messageOf(error) } };
}
