// An agent on stdio that uses a gateway in another process: carries its lines there and back, and outlives that
// gateway. When it goes away, calls in flight are answered with "outcome unknown"; the session is begun anew, unseen,
// with the next gateway.

import type { Duplex, Readable, Writable } from "node:stream";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { LineSplitter } from "../../runtime/line-splitter.js";

/** As long as a reply may be that the gateway holds; what is longer is answered with an error. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Lines of the agent that wait while there is no gateway. */
const MAX_WAITING_BYTES = 16 * 1024 * 1024;

/** The id of the initialize that is ours. No agent's id begins like this. */
const REJOIN_ID = "toolway-rejoin";

/** Most replies begin like this; the others are parsed. */
const REPLY_HEAD = /^\{"jsonrpc":"2\.0","id":("(?:[^"\\]|\\.)*"|-?\d+),"(?:result|error)":/;
/** Others have their id last. */
const REPLY_TAIL = /,"id":("(?:[^"\\]|\\.)*"|-?\d+)\}\s*$/;

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
    const { input, output, signal } = this.#options;
    const tooLong = () => this.#fail("null", new Fault("limit", `A line has more than ${MAX_LINE_BYTES} bytes.`));
    const lines = new LineSplitter({ onLine: (line) => this.#fromAgent(line), onOversize: tooLong }, MAX_LINE_BYTES);
    // Whoever does not read is not written to: what waits is bounded by what the other side lets wait.
    output.on("drain", () => this.#socket?.resume());
    input
      .on("data", (chunk: Buffer) => lines.push(chunk))
      .once("end", () => this.#end(false))
      .once("error", () => this.#end(false));
    signal.addEventListener("abort", () => this.#end(true), { once: true });
    while (!this.#over) {
      const socket = await this.#options.connect();
      socket.on("error", () => {});
      socket.on("drain", () => input.resume());
      if (this.#initialize === undefined || !this.#initialized) this.#attach(socket);
      else await this.#rejoin(socket);
      await closed(socket);
      this.#socket = undefined;
      input.resume();
      if (!this.#over) this.#loseInFlight();
    }
  }

  /**
   * The replies to what was sent still come, and the gateway closes when it has given them; unless there is no time.
   */
  #end(atOnce: boolean): void {
    this.#over = true;
    if (atOnce) this.#socket?.destroy();
    else this.#socket?.end();
  }

  #attach(socket: Duplex): void {
    this.#socket = socket;
    const lines = new LineSplitter(
      { onLine: (line) => this.#fromGateway(line), onOversize: (head, tail) => this.#tooLong(head, tail) },
      MAX_LINE_BYTES,
    );
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
    if (this.#waitingBytes + line.length > MAX_WAITING_BYTES) {
      const fault = new Fault("limit", "There is no gateway at the moment, and too much waits for the next already.");
      for (const id of requestIds(line)) this.#fail(id, fault);
      return;
    }
    this.#waitingBytes += line.length;
    this.#waiting.push(line);
  }

  /** What has to be known of the agent's lines: the handshake, and which replies it waits for. */
  #note(line: Buffer): void {
    for (const message of messagesOf(line)) {
      const { method, params } = message;
      if (method === "notifications/initialized") this.#initialized = true;
      if (method === "initialize") this.#initialize = message;
      // What was taken back has no reply.
      if (method === "notifications/cancelled" && isObject(params)) {
        this.#inFlight.delete(JSON.stringify(params["requestId"]));
      }
      if (isRequest(message)) this.#inFlight.add(JSON.stringify(message["id"]));
    }
  }

  #fromGateway(line: Buffer): void {
    const head = REPLY_HEAD.exec(line.toString("latin1", 0, 256))?.[1];
    if (head !== undefined && !head.startsWith('"')) this.#inFlight.delete(head);
    else {
      for (const { id, method } of messagesOf(line)) {
        if (method === undefined) this.#inFlight.delete(JSON.stringify(id));
      }
    }
    this.#toAgent(line);
  }

  /** A reply that cannot be held, and so not be passed on. */
  #tooLong(head: Buffer, tail: Buffer): void {
    const id = REPLY_HEAD.exec(head.toString())?.[1] ?? REPLY_TAIL.exec(tail.toString())?.[1];
    if (id === undefined || !this.#inFlight.has(id)) return;
    const message = `The reply has more than ${MAX_LINE_BYTES} bytes. The call has taken effect.`;
    this.#fail(id, new Fault("limit", message));
  }

  #send(line: Buffer): void {
    this.#socket?.write(line);
    if (this.#socket?.write("\n") === false) this.#options.input.pause();
  }

  #toAgent(line: Buffer | string): void {
    this.#options.output.write(line);
    if (!this.#options.output.write("\n")) this.#socket?.pause();
  }

  #fail(id: string, fault: Fault): void {
    this.#inFlight.delete(id);
    this.#toAgent(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(toRpcError(fault))}}`);
  }

  #loseInFlight(): void {
    const waiting = new Set(this.#waiting.flatMap(requestIds));
    const message = "The gateway went away before it answered. Whether the call took effect is unknown.";
    const fault = new Fault("outcome-unknown", message);
    for (const id of this.#inFlight) if (!waiting.has(id)) this.#fail(id, fault);
  }
}

function closed(socket: Duplex): Promise<void> {
  return new Promise((done) => {
    if (socket.destroyed) done();
    else socket.once("close", () => done());
  });
}

/** One, or those of a batch; none where it is not JSON. */
function messagesOf(line: Buffer): JsonObject[] {
  try {
    const value: unknown = JSON.parse(line.toString());
    return (Array.isArray(value) ? value : [value]).filter(isObject);
  } catch {
    return [];
  }
}

/** JSON texts of the ids of what wants a reply. */
function requestIds(line: Buffer): string[] {
  return messagesOf(line)
    .filter(isRequest)
    .map(({ id }) => JSON.stringify(id));
}

function isRequest({ id, method }: JsonObject): boolean {
  return typeof method === "string" && id !== undefined;
}
