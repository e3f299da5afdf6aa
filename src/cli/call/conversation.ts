// One tool call as a session of MCP with a gateway: the handshake, the call, what the server says and asks meanwhile,
// and taking it back. How anything is shown or answered is its users'.

import type { Duplex } from "node:stream";
import { ErrorCode, isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { LineSplitter } from "../../runtime/line-splitter.js";
import { packageVersion } from "../../runtime/version.js";

/** A result that is read whole, as base64 in JSON: pictures and files stay far below. */
const MAX_LINE_BYTES = 256 * 1024 * 1024;

/** A gateway passes a cancellation on at once; one that is stuck keeps nobody from leaving. */
const CANCEL_MS = 1_000;

const VERSION = "2025-11-25";
const INITIALIZE = 0;
const SET_LEVEL = 1;
const CALL = 2;
const CANCELLED = 3;

export interface ToolCall {
  readonly tool: string;
  readonly arguments: JsonObject;
  readonly wantsProgress: boolean;
  /** From which on log messages are wanted; undefined for none. */
  readonly logLevel: string | undefined;
}

export interface CallEvents {
  readonly onProgress: (params: JsonObject) => void;
  readonly onLog: (params: JsonObject) => void;
  /** The result of an elicitation. `takenBack` fires when nobody wants it any more. What it rejects with ends the call. */
  readonly onElicit: (params: JsonObject, takenBack: AbortSignal) => Promise<JsonObject>;
}

/** The session with the gateway came to no answer. */
class SessionError extends ExpectedError {
  override readonly name = "SessionError";
  override readonly kind = "failed";
}

export type CallAnswer = { readonly result: JsonObject } | { readonly error: JsonObject };

/** Resolves with the one answer. Rejects with the signal's reason, or what a question was ended by: the tool is told. */
export function callInSession(
  socket: Duplex,
  call: ToolCall,
  events: CallEvents,
  signal: AbortSignal,
): Promise<CallAnswer> {
  return new Conversation(socket, call, events).run(signal);
}

class Conversation {
  readonly #socket: Duplex;
  readonly #call: ToolCall;
  readonly #events: CallEvents;
  /** Questions that are open, by the JSON text of their id. The gateway bounds how many there are. */
  readonly #asked = new Map<string, AbortController>();
  #settle: (answer: CallAnswer) => void = () => {};
  #fail: (error: unknown) => void = () => {};
  #onCancelled: () => void = () => {};
  /** Nobody reads any more what is said here. */
  #isOver = false;

  constructor(socket: Duplex, call: ToolCall, events: CallEvents) {
    this.#socket = socket;
    this.#call = call;
    this.#events = events;
  }

  async run(signal: AbortSignal): Promise<CallAnswer> {
    const answered = new Promise<CallAnswer>((resolve, reject) => {
      this.#settle = resolve;
      this.#fail = reject;
    });
    const lines = new LineSplitter(
      { onLine: (line) => this.#line(line), onOversize: () => this.#fail(tooLong()) },
      MAX_LINE_BYTES,
    );
    const stop = () => this.#fail(signal.reason);
    const gone = () => {
      this.#isOver = true;
      this.#fail(lost());
    };
    signal.addEventListener("abort", stop, { once: true });
    this.#socket
      .on("data", (chunk: Buffer) => lines.push(chunk))
      .on("error", gone)
      .once("end", gone)
      .once("close", gone);
    if (signal.aborted) stop();
    else this.#begin();
    try {
      return await answered;
    } catch (error) {
      await this.#takeBack();
      throw error;
    } finally {
      this.#isOver = true;
      signal.removeEventListener("abort", stop);
      for (const asked of this.#asked.values()) asked.abort();
      this.#socket.destroy();
    }
  }

  #begin(): void {
    const clientInfo = { name: "toolway", title: "toolway call", version: packageVersion() };
    // A person can fill a form and open an address; there is no model here, and no folder that is offered.
    const capabilities = { elicitation: { form: {}, url: {} } };
    this.#request(INITIALIZE, "initialize", { protocolVersion: VERSION, capabilities, clientInfo });
    this.#send({ method: "notifications/initialized" });
    const { logLevel } = this.#call;
    if (logLevel === undefined) this.#sendCall();
    else this.#request(SET_LEVEL, "logging/setLevel", { level: logLevel });
  }

  #sendCall(): void {
    const { tool, arguments: args, wantsProgress } = this.#call;
    const meta = wantsProgress ? { _meta: { progressToken: CALL } } : {};
    this.#request(CALL, "tools/call", { name: tool, arguments: args, ...meta });
  }

  /** The gateway answers what follows a cancellation once it has passed that on. */
  async #takeBack(): Promise<void> {
    if (this.#isOver) return;
    const passedOn = new Promise<void>((done) => {
      this.#onCancelled = done;
      this.#socket.once("close", done);
      setTimeout(done, CANCEL_MS).unref();
    });
    const params = { requestId: CALL, reason: "The person who called it stopped it." };
    this.#send({ method: "notifications/cancelled", params });
    this.#request(CANCELLED, "ping", {});
    await passedOn;
  }

  #line(line: Buffer): void {
    let message: unknown;
    try {
      message = JSON.parse(line.toString());
    } catch {
      message = undefined;
    }
    if (!isObject(message)) this.#fail(new SessionError("The gateway's answer cannot be read."));
    else if (typeof message["method"] === "string") this.#heard(message["method"], message);
    else this.#replied(message);
  }

  #replied(message: JsonObject): void {
    const { id, result, error } = message;
    if (id === CANCELLED) this.#onCancelled();
    // A server without logging has no level to set.
    else if (id === SET_LEVEL) this.#sendCall();
    else if (isObject(error)) this.#settle({ error });
    else if (id === CALL) this.#settle({ result: isObject(result) ? result : {} });
  }

  #heard(method: string, message: JsonObject): void {
    const { id, params: given } = message;
    const params = isObject(given) ? given : {};
    if (id !== undefined) void this.#asks(method, id, params);
    else if (method === "notifications/progress") this.#events.onProgress(params);
    else if (method === "notifications/message") this.#events.onLog(params);
    else if (method === "notifications/cancelled") this.#asked.get(JSON.stringify(params["requestId"]))?.abort();
  }

  async #asks(method: string, id: unknown, params: JsonObject): Promise<void> {
    if (method === "ping") return this.#send({ id, result: {} });
    if (method !== "elicitation/create") {
      const message = `${method} is declined: a person called this tool from a command line, without a model or folders.`;
      return this.#send({ id, error: { code: ErrorCode.methodNotFound, message } });
    }
    const key = JSON.stringify(id);
    const takenBack = new AbortController();
    this.#asked.set(key, takenBack);
    try {
      this.#send({ id, result: await this.#events.onElicit(params, takenBack.signal) });
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#asked.delete(key);
    }
  }

  #request(id: number, method: string, params: JsonObject): void {
    this.#send({ id, method, params });
  }

  #send(message: JsonObject): void {
    if (!this.#isOver) this.#socket.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }
}

function lost(): SessionError {
  return new SessionError("The gateway went away before it answered. Whether the call took effect is unknown.");
}

function tooLong(): SessionError {
  return new SessionError(
    `The result has more than ${MAX_LINE_BYTES / 1048576} MiB. The call has taken effect; ask for less of it.`,
  );
}
