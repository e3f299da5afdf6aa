// The client of the control socket: how the CLI's verbs and `toolway stdio` talk to a running gateway.

import { type ClientRequest, request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { ControlError, ERROR_TRAILER } from "./server.js";
import { findSocketPath } from "./socket-path.js";

/** An answer that is read whole; the largest are the results of tool calls. */
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;
/** One line of a stream: a value of the store (16 MiB), escaped. */
const MAX_LINE_CHARS = 64 * 1024 * 1024;

/** Of a gateway that is asked whether it answers: one that is busy does within a second, and whoever waits is told soon. */
const PATIENCE_MS = 10_000;
/** No socket, that of a dead gateway, no state directory; or one that ended as it was asked. */
const GONE: ReadonlySet<string> = new Set(["ENOENT", "ECONNREFUSED", "ENOTDIR", "ECONNRESET", "EPIPE"]);

interface ControlCallOptions {
  readonly signal?: AbortSignal;
}

/** Rejects with a ControlError: what the gateway answered, or `unavailable` when it is not there any more. */
export interface ControlClient {
  readonly path: string;
  get<T = unknown>(path: string, options?: ControlCallOptions): Promise<T>;
  post<T = unknown>(path: string, body: unknown, options?: ControlCallOptions): Promise<T>;
  delete<T = unknown>(path: string, options?: ControlCallOptions): Promise<T>;
  /** A stream of JSON lines. Ends early by leaving the loop. */
  lines<T = unknown>(path: string, options?: ControlCallOptions): AsyncIterableIterator<T>;
  /** A connection of its own for something else than HTTP. */
  upgrade(name: string, query?: Readonly<Record<string, string>>, options?: ControlCallOptions): Promise<Duplex>;
}

/** The running gateway of a state directory; undefined when none runs. Rejects where one is there and says nothing for so long. */
export async function findGateway(stateDir: string, patienceMs = PATIENCE_MS): Promise<ControlClient | undefined> {
  const path = findSocketPath(stateDir);
  if (path === undefined) return undefined;
  return (await look(path, patienceMs)) ? connectControl(path) : undefined;
}

/** Whether a gateway has the socket of a state directory. Whether it answers is not asked. */
export async function isGatewayThere(stateDir: string): Promise<boolean> {
  const path = findSocketPath(stateDir);
  return path !== undefined && (await look(path, undefined));
}

/** `patienceMs`: for any answer. Undefined where a connection is enough: the system takes those of a process that hangs too. */
function look(path: string, patienceMs: number | undefined): Promise<boolean> {
  return new Promise((done, fail) => {
    const socket = connect(path);
    const end = (isThere: boolean) => {
      socket.destroy();
      done(isThere);
    };
    socket.once("connect", () => {
      if (patienceMs === undefined) end(true);
      else socket.write("HEAD /alive HTTP/1.1\r\nHost: toolway\r\nConnection: close\r\n\r\n");
    });
    socket.once("data", () => end(true));
    socket.once("close", () => done(false));
    socket.setTimeout(patienceMs ?? 0, () => {
      socket.destroy();
      const seconds = (patienceMs ?? 0) / 1000;
      const text =
        `The gateway at ${path} is there, and has said nothing for ${seconds} s: its process hangs, or is stopped. ` +
        "`toolway ps` names it: continue it with `kill -CONT`, or end it with `kill -KILL`.";
      fail(new ControlError("unavailable", text));
    });
    socket.once("error", (error: NodeJS.ErrnoException) => {
      if (GONE.has(error.code ?? "")) done(false);
      else fail(new ControlError("unavailable", `The control socket ${path} cannot be opened: ${error.message}.`));
    });
  });
}

export function connectControl(path: string): ControlClient {
  const json = async (method: string, target: string, body: unknown, options?: ControlCallOptions) => {
    const response = await exchange(path, method, target, body, options);
    return parse(path, await readAll(path, response));
  };
  return {
    path,
    get: <T>(target: string, options?: ControlCallOptions) => json("GET", target, undefined, options) as Promise<T>,
    post: <T>(target: string, body: unknown, options?: ControlCallOptions) =>
      json("POST", target, body, options) as Promise<T>,
    delete: <T>(target: string, options?: ControlCallOptions) =>
      json("DELETE", target, undefined, options) as Promise<T>,
    lines: <T>(target: string, options?: ControlCallOptions) => lines<T>(path, target, options),
    upgrade: (name, query, options) => upgrade(path, name, query, options),
  };
}

function gone(path: string, cause: unknown): ControlError {
  if ((cause as { name?: unknown } | null)?.name === "AbortError") {
    return new ControlError("cancelled", "The request was taken back.", { cause });
  }
  return new ControlError("unavailable", `The gateway at ${path} does not answer; it may have stopped.`, { cause });
}

function open(path: string, method: string, target: string, options?: ControlCallOptions & { headers?: object }) {
  return httpRequest({
    socketPath: path,
    // A connection for each request: they are few, and none is left open to keep a command from ending.
    agent: false,
    method,
    path: target,
    headers: { ...options?.headers },
    ...(options?.signal === undefined ? {} : { signal: options.signal }),
  });
}

/** Sends the request; resolves with the head of a good answer, rejects with what a bad one says. */
async function exchange(
  path: string,
  method: string,
  target: string,
  body: unknown,
  options?: ControlCallOptions,
): Promise<IncomingMessage> {
  const text = body === undefined ? undefined : JSON.stringify(body);
  const headers =
    text === undefined ? {} : { "Content-Type": "application/json", "Content-Length": String(Buffer.byteLength(text)) };
  const request = open(path, method, target, { ...options, headers });
  const response = await head(path, request, () => request.end(text));
  if ((response.statusCode ?? 500) >= 400) throw refusal(path, await readAll(path, response));
  return response;
}

function head(path: string, request: ClientRequest, start: () => void): Promise<IncomingMessage> {
  return new Promise((done, fail) => {
    request.once("response", done);
    // Stays: an error after the head is told by the answer's own stream.
    request.on("error", (error) => fail(gone(path, error)));
    start();
  });
}

function refusal(path: string, text: string): ControlError {
  const error = (parse(path, text) as { error?: { code?: unknown; message?: unknown } } | undefined)?.error;
  return new ControlError(String(error?.code ?? "internal"), String(error?.message ?? "The gateway refused."));
}

function parse(path: string, text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ControlError("internal", `The gateway at ${path} did not answer with JSON.`, { cause });
  }
}

async function readAll(path: string, response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) {
        throw new ControlError("too-large", `The answer has more than ${MAX_ANSWER_BYTES / 1048576} MiB.`);
      }
      chunks.push(chunk);
    }
  } catch (error) {
    throw error instanceof ControlError ? error : gone(path, error);
  }
  return Buffer.concat(chunks).toString("utf8");
}

async function* lines<T>(path: string, target: string, options?: ControlCallOptions): AsyncIterableIterator<T> {
  const response = await exchange(path, "GET", target, undefined, options);
  const decoder = new StringDecoder("utf8");
  let rest = "";
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      const text = decoder.write(chunk);
      // Looked at only where there is an end of line: a long line is not split again with every chunk.
      if (!text.includes("\n")) {
        rest += text;
        if (rest.length > MAX_LINE_CHARS) throw new ControlError("too-large", "A line of the answer is too long.");
        continue;
      }
      const whole = (rest + text).split("\n");
      rest = whole.pop() ?? "";
      for (const line of whole) if (line !== "") yield parse(path, line) as T;
    }
  } catch (error) {
    throw error instanceof ControlError ? error : gone(path, error);
  } finally {
    response.destroy();
  }
  const failed = response.trailers[ERROR_TRAILER];
  if (failed !== undefined) throw refusal(path, `{"error":${decodeURIComponent(failed)}}`);
}

async function upgrade(
  path: string,
  name: string,
  query: Readonly<Record<string, string>> = {},
  options?: ControlCallOptions,
): Promise<Duplex> {
  const search = new URLSearchParams(query).toString();
  const headers = { Connection: "Upgrade", Upgrade: name };
  const request = open(path, "GET", search === "" ? "/" : `/?${search}`, { ...options, headers });
  const taken = new Promise<Duplex>((done) => {
    request.once("upgrade", (_response, socket: Duplex, first: Buffer) => {
      if (first.length > 0) socket.unshift(first);
      done(socket);
    });
  });
  const refused = head(path, request, () => request.end()).then(async (response) => {
    throw refusal(path, await readAll(path, response));
  });
  return await Promise.race([taken, refused]);
}
