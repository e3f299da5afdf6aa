// Opens a WebSocket to the other end, and says in plain words why there is none. What is said on it is not known here.

import type { IncomingMessage } from "node:http";
import { isLoopback } from "../runtime/addresses.js";
import { CodedError } from "../runtime/expected-error.js";
import { certificateFault } from "../runtime/network/certificates.js";
import { safeAddress } from "../runtime/redact/safe-url.js";
import { HANDSHAKE_MS } from "./limits.js";
import { SOCKET_OPTIONS, Socket } from "./socket.js";

export interface DialOptions {
  /** Sent as `Authorization: Bearer`. */
  readonly token?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly signal?: AbortSignal | undefined;
  /** To the end of the upgrade. Default: HANDSHAKE_MS. */
  readonly timeoutMs?: number | undefined;
  /** What should be there, in the words of whoever is told that it is not. Default: "an executor". */
  readonly peer?: string | undefined;
}

/** Why there is no socket. */
export class DialError extends CodedError<"unavailable" | "cancelled"> {
  override readonly name = "DialError";
  /** What the network said, as Node names it: `ECONNREFUSED`. */
  readonly networkCode: string | undefined;
  /** The HTTP status that the other end answered in place of a WebSocket. */
  readonly status: number | undefined;

  constructor(
    code: DialError["code"],
    message: string,
    why: { networkCode?: string | undefined; status?: number } = {},
  ) {
    super(code, message);
    this.networkCode = why.networkCode;
    this.status = why.status;
  }
}

/** An open socket, of which nothing is read yet. `http` and `https` URLs are taken as `ws` and `wss`. */
export async function dialSocket(url: string | URL, options: DialOptions = {}): Promise<Socket> {
  const target = socketUrl(url);
  const { WebSocket } = await import("ws");
  const { signal } = options;
  if (signal?.aborted === true) throw cancelled();
  const ws = new WebSocket(target, {
    ...SOCKET_OPTIONS,
    handshakeTimeout: options.timeoutMs ?? HANDSHAKE_MS,
    headers: {
      ...options.headers,
      ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
    },
  });
  return new Promise<Socket>((resolve, reject) => {
    const fail = (error: DialError): void => {
      signal?.removeEventListener("abort", abort);
      reject(error);
      ws.terminate();
    };
    const abort = (): void => fail(cancelled());
    signal?.addEventListener("abort", abort, { once: true });
    // It stays attached, as terminate() emits an error too.
    ws.on("error", (error) => fail(unreachable(target, error)));
    ws.once("unexpected-response", (_request, response: IncomingMessage) =>
      fail(refused(target, response, options.peer ?? "an executor")),
    );
    ws.once("upgrade", ({ socket: wire }: IncomingMessage) => {
      ws.once("open", () => {
        signal?.removeEventListener("abort", abort);
        ws.removeAllListeners("error");
        resolve(new Socket(ws, wire, isBetween(target) ? "random" : "zeros"));
      });
    });
  });
}

/** Whether others on the way can read what is said. */
function isBetween({ protocol, hostname }: URL): boolean {
  return protocol !== "wss:" && !isLoopback(hostname);
}

/** Throws a DialError that says what to do where it is no URL of a WebSocket. */
export function socketUrl(url: string | URL): URL {
  let target: URL;
  try {
    target = new URL(url);
  } catch {
    throw unavailable(`not a URL: expected something like ws://127.0.0.1:4100 or wss://host/path`);
  }
  if (target.protocol === "http:") target.protocol = "ws:";
  if (target.protocol === "https:") target.protocol = "wss:";
  if (target.protocol !== "ws:" && target.protocol !== "wss:") {
    throw unavailable(`${target.protocol}// is not for WebSockets: expected ws://, wss://, http:// or https://`);
  }
  // A fragment means nothing here, and the library refuses it.
  target.hash = "";
  return target;
}

function refused(target: URL, response: IncomingMessage, peer: string): DialError {
  const status = response.statusCode ?? 0;
  return new DialError("unavailable", whyRefused(target, status, peer), { status });
}

function whyRefused(target: URL, status: number, peer: string): string {
  const there = safeAddress(target);
  if (status === 401) return `${there} refused the token (401): give the token that was set there`;
  if (status === 403) return `${there} forbids the connection (403): ask who runs it what it allows`;
  if (status === 503 || status === 429) {
    return `${there} has no room for another connection (${status}): try again later`;
  }
  if (status >= 300 && status < 400) {
    return `${there} redirects (${status}): give the URL that it leads to`;
  }
  return `${there} answered ${status} instead of a WebSocket: the URL is not that of ${peer}`;
}

/** Node's codes, and what each means here. */
const NETWORK_HINTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there (ECONNREFUSED): is it running, and is the port right?",
  ENOTFOUND: "the name is not known (ENOTFOUND): is it spelt right?",
  EAI_AGAIN: "the name could not be looked up (EAI_AGAIN): does DNS work here?",
  ECONNRESET: "the connection was cut (ECONNRESET): does it speak WebSocket, and is it ws:// or wss://?",
  ETIMEDOUT: "no answer (ETIMEDOUT): is a firewall between?",
  EHOSTUNREACH: "no way there (EHOSTUNREACH): is the network up?",
  ENETUNREACH: "no way there (ENETUNREACH): is the network up?",
  EPROTO: "no TLS there (EPROTO): should it be ws:// in place of wss://?",
};

function unreachable(target: URL, error: Error & { code?: string }): DialError {
  // Of several addresses, each with an error of its own, the first tells enough.
  const first = error instanceof AggregateError ? (error.errors[0] as Error & { code?: string }) : error;
  const code = error.code ?? first.code;
  const certificate = code === undefined ? undefined : certificateFault(code, first);
  const hint = certificate === undefined ? NETWORK_HINTS[code ?? ""] : `${certificate.what}. ${certificate.remedy}`;
  const why = hint ?? (first.message === "" ? (code ?? "it failed") : first.message);
  return unavailable(`cannot connect to ${safeAddress(target)}: ${why}`, code);
}

function cancelled(): DialError {
  return new DialError("cancelled", "the connection was not waited for");
}

function unavailable(message: string, networkCode?: string): DialError {
  return new DialError("unavailable", message, { networkCode });
}
