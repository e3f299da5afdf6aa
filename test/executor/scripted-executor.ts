// An executor that says what a test makes it say: a real WebSocket server, one client after another.

import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import type { HttpHeader, InitializeParams } from "../../src/executor/wire/protocol.js";
import type { ExecutorRequest } from "../../src/executor/wire/types.js";

export interface Message {
  readonly id?: string | number;
  readonly method?: string;
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into whatever came.
  readonly params?: any;
  readonly result?: unknown;
  readonly error?: unknown;
}

export interface Scripted {
  readonly url: string;
  /** The next client's connection, its handshake not begun. */
  accept(): Promise<Peer>;
  /** The next client, after a handshake as a plain exec-server has it. */
  plain(): Promise<Peer>;
  /** The same with our extensions. */
  extended(agreement?: Partial<Record<string, unknown>>): Promise<Peer>;
  close(): Promise<void>;
}

/** Long enough for a busy machine: only what hangs takes it. */
const PATIENCE_MS = 30_000;

export async function startScripted(): Promise<Scripted> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1", perMessageDeflate: false });
  await new Promise((resolve) => server.once("listening", resolve));
  const connections = new Line<Peer>();
  server.on("connection", (ws) => connections.put(new Peer(ws)));
  const accept = () => connections.next("a client");
  const greetedPeer = async (toolway?: Record<string, unknown>): Promise<Peer> => {
    const peer = await accept();
    await peer.greet(toolway);
    return peer;
  };
  return {
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}`,
    accept,
    plain: () => greetedPeer(),
    extended: (agreement = {}) =>
      greetedPeer({ version: 1, window: 65_536, retentionMs: 60_000, resumed: false, received: 0, ...agreement }),
    close: () =>
      new Promise((resolve) => {
        for (const client of server.clients) client.terminate();
        server.close(() => resolve());
      }),
  };
}

export class Peer {
  readonly ws: WebSocket;
  readonly #messages = new Line<Message>();
  /** Resolves with the code of the client's goodbye, 1006 without one. */
  readonly closed: Promise<number>;
  initialize: InitializeParams | undefined;
  sessionId = "session-1";

  constructor(ws: WebSocket) {
    this.ws = ws;
    ws.on("message", (data) => this.#messages.put(JSON.parse(String(data)) as Message));
    this.closed = new Promise((resolve) => ws.on("close", resolve));
  }

  next(what = "a message"): Promise<Message> {
    return this.#messages.next(what);
  }

  /** What has come and was not looked at. */
  get unread(): number {
    return this.#messages.size;
  }

  async greet(toolway?: Record<string, unknown>): Promise<void> {
    const message = await this.request("initialize");
    this.initialize = message.params;
    this.write({ id: message.id, result: { sessionId: this.sessionId, ...(toolway && { toolway }) } });
    const initialized = await this.next("initialized");
    if (initialized.method !== "initialized") throw new Error(`initialized expected, got ${initialized.method}`);
  }

  async request(method = "http/request"): Promise<Message & { id: string | number }> {
    const message = await this.next(method);
    if (message.method !== method || message.id === undefined) {
      throw new Error(`${method} expected, got ${JSON.stringify(message)}`);
    }
    return message as Message & { id: string | number };
  }

  async notification(method: string): Promise<Message> {
    const message = await this.next(method);
    if (message.method !== method || message.id !== undefined) {
      throw new Error(`${method} expected, got ${JSON.stringify(message)}`);
    }
    return message;
  }

  write(message: unknown): void {
    this.ws.send(JSON.stringify(message));
  }

  head(id: string | number, status = 200, headers: HttpHeader[] = [], bodyBase64 = ""): void {
    this.write({ id, result: { status, headers, bodyBase64 } });
  }

  delta(requestId: string, seq: number, text: string | Buffer, done = false, error?: string): void {
    const deltaBase64 = Buffer.from(text).toString("base64");
    this.write({
      method: "http/request/bodyDelta",
      params: { requestId, seq, deltaBase64, done, ...(error !== undefined && { error }) },
    });
  }

  /** Everything that was written before is read by then, where the client answers requests. */
  async flushed(): Promise<void> {
    this.write({ id: "probe", method: "no/such" });
    for (;;) {
      const message = await this.next("the answer to a probe");
      if (message.id === "probe") return;
    }
  }
}

/** What came, for those who wait for it. */
class Line<T> {
  readonly #items: T[] = [];
  #waiting: ((item: T) => void) | undefined;

  get size(): number {
    return this.#items.length;
  }

  put(item: T): void {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting === undefined) this.#items.push(item);
    else waiting(item);
  }

  next(what: string): Promise<T> {
    const item = this.#items.shift();
    if (item !== undefined) return Promise.resolve(item);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`waited for ${what} in vain`)), PATIENCE_MS);
      this.#waiting = (came) => {
        clearTimeout(timer);
        resolve(came);
      };
    });
  }
}

/** A request without a body, as a user of the client makes it. */
export function get(url: string, more: Partial<ExecutorRequest> = {}): ExecutorRequest {
  return { method: "GET", url, headers: [], ...more };
}
