// An agent on stdio that uses a gateway in another process: carries its lines there and back, and outlives that
// gateway. When it goes away, calls in flight are answered with "outcome unknown"; the session is begun anew, unseen,
// with the next gateway.

import type { Duplex, Readable, Writable } from "node:stream";
import { Fault, toRpcError } from "../protocol/errors.js";
import { isObject, type JsonObject } from "../protocol/jsonrpc.js";
import { LineSplitter } from "../upstream/lines.js";

/** As long as a line may be on the gateway's own stdio; what is longer the gateway would refuse. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Lines of the agent that wait while there is no gateway. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** The id of the initialize that is ours. No agent's id begins like this. */
const REJOIN_ID = "toolway-rejoin";

/** Most replies begin like this; the others are parsed. */
const REPLY_HEAD = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?\d+),"(?:result|error)":/;

export interface JoinOptions {
  readonly input: Readable;
  readonly output: Writable;
  readonly signal: AbortSignal;
  /** A connection to a gateway: the one that runs, or the next. Rejects when there is none to be had. */
  readonly connect: () => Promise<Duplex>;
}

/** Resolves when the agent's input ends; rejects when no gateway can be reached any more. */
export async function joinGateway(options: JoinOptions): Promise<void> {
  await new Join(options).run();
}

class Join {
  readonly #options: JoinOptions;
  /** JSON texts of the ids of requests that have no reply yet. */
  readonly #inFlight = new Set<string>();
  #initialize: JsonObject | undefined;
  #initialized = false;
  #socket: Duplex | undefined;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #over = false;

  constructor(options: JoinOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    const { input, signal } = this.#options;
    const lines = new LineSplitter({ onLine: (line) => this.#fromAgent(line), onOversize: () => {} }, MAX_LINE_BYTES);
    input
      .on("data", (chunk: Buffer) => lines.push(chunk))
      .once("end", () => this.#end(false))
      .once("error", () => this.#end(false));
    signal.addEventListener("abort", () => this.#end(true), { once: true });
    while (!this.#over) {
      const socket = await this.#options.connect();
      if (this.#initialize === undefined || !this.#initialized) this.#attach(socket);
      else await this.#rejoin(socket);
      await closed(socket);
      this.#socket = undefined;
      if (!this.#over) this.#loseInFlight();
    }
  }

  /** The replies to what was sent still come, and the gateway closes when it has given them; unless there is no time. */
  #end(atOnce: boolean): void {
    this.#over = true;
    if (atOnce) this.#socket?.destroy();
    else this.#socket?.end();
  }

  #attach(socket: Duplex): void {
    this.#socket = socket;
    const lines = new LineSplitter({ onLine: (line) => this.#fromGateway(line), onOversize: () => {} }, MAX_LINE_BYTES);
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    for (const line of this.#waiting) this.#send(line);
    this.#waiting = [];
    this.#waitingBytes = 0;
    if (this.#over) socket.end();
  }

  /** Begins the agent's session with another gateway, as the agent began it with the first. */
  async #rejoin(socket: Duplex): Promise<void> {
    let seen = () => {};
    const lines = new LineSplitter(
      { onLine: (line) => void (line.includes(REJOIN_ID) && seen()), onOversize: () => {} },
      MAX_LINE_BYTES,
    );
    const listen = (chunk: Buffer) => lines.push(chunk);
    const answered = new Promise<void>((done) => {
      seen = done;
      socket.on("data", listen).once("close", done);
    });
    socket.write(`${JSON.stringify({ ...this.#initialize, id: REJOIN_ID })}\n`);
    await answered;
    socket.off("data", listen);
    if (socket.destroyed) return;
    socket.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    this.#attach(socket);
  }

  #fromAgent(line: Buffer): void {
    this.#note(line);
    if (this.#socket !== undefined) {
      this.#send(line);
      return;
    }
    this.#waitingBytes += line.length;
    if (this.#waitingBytes <= MAX_WAITING_BYTES) this.#waiting.push(line);
  }

  /** What has to be known of the agent's lines: the handshake, and which replies it waits for. */
  #note(line: Buffer): void {
    const message = parse(line);
    if (message === undefined) return;
    if (message["method"] === "notifications/initialized") this.#initialized = true;
    if (typeof message["method"] !== "string" || message["id"] === undefined) return;
    if (message["method"] === "initialize") this.#initialize = message;
    this.#inFlight.add(JSON.stringify(message["id"]));
  }

  #fromGateway(line: Buffer): void {
    const head = REPLY_HEAD.exec(line.toString("latin1", 0, 256))?.[1];
    if (head !== undefined && !head.startsWith('"')) this.#inFlight.delete(head);
    else {
      const message = parse(line);
      if (message !== undefined && message["method"] === undefined) {
        this.#inFlight.delete(JSON.stringify(message["id"]));
      }
    }
    this.#toAgent(line);
  }

  #send(line: Buffer): void {
    this.#socket?.write(line);
    this.#socket?.write("\n");
  }

  #toAgent(line: Buffer | string): void {
    this.#options.output.write(line);
    this.#options.output.write("\n");
  }

  #loseInFlight(): void {
    const waiting = new Set(this.#waiting.map((line) => JSON.stringify(parse(line)?.["id"])));
    const message = "The gateway went away before it answered. Whether the call took effect is unknown.";
    const error = toRpcError(new Fault("outcome-unknown", message));
    for (const id of this.#inFlight) {
      if (waiting.has(id)) continue;
      this.#inFlight.delete(id);
      this.#toAgent(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(error)}}`);
    }
  }
}

function closed(socket: Duplex): Promise<void> {
  return new Promise((done) => {
    if (socket.destroyed) done();
    else socket.once("close", () => done());
    socket.on("error", () => {});
  });
}

function parse(line: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(line.toString());
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
