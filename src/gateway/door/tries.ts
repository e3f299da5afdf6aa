// Calls that a person makes on the page: each is the operator's own, made as `toolway call` makes one, over a pair of streams
// in memory. What comes of it is told in lines: progress, questions, and its end. Questions are answered by the page; one
// that has gone takes its call back.

import { Duplex } from "node:stream";
import type { TryLine } from "../../contracts/control/tries.js";
import { ControlError, type ControlRoutes, jsonLines } from "../../control/server.js";
import { LineSplitter } from "../../runtime/line-splitter.js";

/** So many calls of pages are under way at once: a person makes one, and has some tabs. */
const MAX_TRIES = 16;
/** What is not read yet of one: progress that nobody reads is left out before its end is. */
const MAX_UNREAD = 256;
/** A result is at most as long as the gateway holds; a line of it is not longer. */
const MAX_LINE_BYTES = 80 * 1024 * 1024;
/** How a legacy session begins: questions of servers are for the person at the page. */
const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: { elicitation: {} },
  clientInfo: { name: "toolway-dashboard", version: "1" },
};

/** Speaks MCP to the operator over the streams, until they end. */
export type ServeOperator = (input: Duplex, output: Duplex, server: string) => Promise<void>;

/** `POST /try` with `{server, tool, arguments}`: lines. `POST /try/answer` with `{id, question, action, content?}`. */
export function tryRoutes(serve: ServeOperator): ControlRoutes {
  const open = new Map<number, Try>();
  let made = 0;
  return {
    "POST /try": ({ body, signal }) => {
      const { server, tool, arguments: given = {} } = (body ?? {}) as Readonly<Record<string, unknown>>;
      if (typeof server !== "string" || typeof tool !== "string") {
        throw new ControlError("invalid", '"server" and "tool" are strings.');
      }
      if (typeof given !== "object" || given === null || Array.isArray(given)) {
        throw new ControlError("invalid", '"arguments" is an object.');
      }
      if (open.size >= MAX_TRIES) {
        throw new ControlError("limit", `${MAX_TRIES} calls of pages are under way, and no more may be.`);
      }
      const id = ++made;
      const one = new Try(id, { name: tool, arguments: given });
      open.set(id, one);
      void serve(one.wire, one.wire, server).finally(() => one.lost());
      return jsonLines(one.lines(signal, () => open.delete(id)));
    },
    "POST /try/answer": ({ body }) => {
      const { id, question, action, content } = (body ?? {}) as Readonly<Record<string, unknown>>;
      const one = open.get(Number(id));
      if (one === undefined) throw new ControlError("not-found", "That call has ended.");
      if (action !== "accept" && action !== "decline" && action !== "cancel") {
        throw new ControlError("invalid", '"action" is accept, decline or cancel.');
      }
      one.answer(question, { action, ...(action === "accept" ? { content: content ?? {} } : {}) });
      return {};
    },
  };
}

class Try {
  /** Our end of the talk: what is written to it by the gateway is read here. */
  readonly wire: Duplex;
  readonly #call: object;
  readonly #unread: TryLine[];
  readonly #questions = new Set<unknown>();
  #wake: (() => void) | undefined;
  #isOver = false;

  constructor(id: number, call: { readonly name: string; readonly arguments: object }) {
    this.#call = call;
    this.#unread = [{ id }];
    const splitter = new LineSplitter(
      { onLine: (line) => this.#read(line.toString()), onOversize: () => this.lost() },
      MAX_LINE_BYTES,
    );
    this.wire = new Duplex({
      read() {},
      write(chunk: Buffer, _encoding, done) {
        splitter.push(chunk);
        done();
      },
    });
    this.#say({ id: 1, method: "initialize", params: HELLO });
  }

  /** Ends with the result or the error; whoever stops to read takes the call back. */
  async *lines(signal: AbortSignal, onEnd: () => void): AsyncIterableIterator<TryLine> {
    const wake = () => this.#wake?.();
    signal.addEventListener("abort", wake, { once: true });
    try {
      for (;;) {
        const line = this.#unread.shift();
        if (line !== undefined) yield line;
        else if (this.#isOver || signal.aborted) return;
        else {
          await new Promise<void>((done) => {
            this.#wake = done;
          });
        }
      }
    } finally {
      signal.removeEventListener("abort", wake);
      if (!this.#isOver) this.#say({ method: "notifications/cancelled", params: { requestId: 2 } });
      this.#isOver = true;
      this.wire.push(null);
      onEnd();
    }
  }

  answer(question: unknown, result: object): void {
    if (!this.#questions.delete(question))
      throw new ControlError("not-found", "Nobody waits for that answer any more.");
    this.#say({ id: question, result });
  }

  /** The gateway has ended the talk. */
  lost(): void {
    if (!this.#isOver) this.#end({ error: { code: -32603, message: "The gateway ended the call." } });
  }

  #say(message: object): void {
    if (!this.#isOver) this.wire.push(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  }

  #read(text: string): void {
    if (this.#isOver) return;
    const message = JSON.parse(text) as {
      readonly id?: string | number;
      readonly method?: string;
      readonly params?: Readonly<Record<string, unknown>>;
      readonly result?: unknown;
      readonly error?: { readonly code: number; readonly message: string };
    };
    const { id, method, params = {}, result, error } = message;
    if (method === "notifications/progress") this.#tell({ progress: progressOf(params) });
    else if (method === "elicitation/create" && id !== undefined) {
      this.#questions.add(id);
      this.#tell({ question: { id, message: String(params["message"] ?? ""), schema: params["requestedSchema"] } });
    } else if (method !== undefined && id !== undefined) {
      this.#say(
        method === "ping" ? { id, result: {} } : { id, error: { code: -32601, message: "Nobody answers this." } },
      );
    } else if (id === 1) {
      if (error !== undefined) this.#end({ error });
      this.#say({ method: "notifications/initialized" });
      this.#say({ id: 2, method: "tools/call", params: { ...this.#call, _meta: { progressToken: 1 } } });
    } else if (id === 2) {
      this.#end(error === undefined ? { result } : { error: { code: error.code, message: error.message } });
    }
  }

  #tell(line: TryLine): void {
    // A page that does not read gets the newest.
    if (this.#unread.length >= MAX_UNREAD) this.#unread.shift();
    this.#unread.push(line);
    this.#wake?.();
  }

  #end(line: TryLine): void {
    this.#tell(line);
    this.#isOver = true;
    this.#wake?.();
  }
}

function progressOf({ progress, total, message }: Readonly<Record<string, unknown>>) {
  return {
    progress: Number(progress),
    ...(typeof total === "number" ? { total } : {}),
    ...(typeof message === "string" ? { message } : {}),
  };
}
