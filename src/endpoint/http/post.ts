// One POST: its body is read, parsed once, and given to whom it belongs. Streamable HTTP and the old HTTP+SSE
// share the reading; what the messages mean on the first of them is legacy-post.ts.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Fault, LIMIT, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import { type Message, toMessage } from "../../protocol/message.js";
import { deeperThan, scanElements } from "../../protocol/scan.js";
import type { EndpointLimits } from "../session/limits.js";
import { refuse } from "./answers.js";
import { hasMoreMembers } from "./members.js";

const POST = Symbol("post");
type WithPost = IncomingMessage & { [POST]: Post };

/** A body that is this many times over the limit is not even read to its end: the connection is closed. */
const MAX_DRAINED = 4;

export abstract class Post {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly #limits: EndpointLimits;
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #size = 0;

  readonly #failed: (error: unknown) => void;

  constructor(req: IncomingMessage, res: ServerResponse, limits: EndpointLimits, failed: (error: unknown) => void) {
    this.#failed = failed;
    this.req = req;
    this.res = res;
    this.#limits = limits;
  }

  read(): void {
    const { bodyBytes } = this.#limits;
    const declared = Number(this.req.headers["content-length"] ?? 0);
    if (declared > bodyBytes) {
      this.#tooLarge(declared > bodyBytes * MAX_DRAINED);
      return;
    }
    const req = this.req as WithPost;
    req[POST] = this;
    req.on("data", onData);
    req.on("end", onEnd);
  }

  /** Unread bytes are thrown away, so that a client which writes first and reads then gets the answer. */
  #tooLarge(close: boolean): void {
    const { bodyBytes } = this.#limits;
    const headers = close ? ["Connection", "close"] : [];
    refuse(this.res, 413, LIMIT, `The body has more than ${bodyBytes} bytes, which is the limit.`, headers);
    if (!close) this.req.resume();
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limits.bodyBytes) {
      if (!this.res.headersSent) this.#tooLarge(false);
      this.#first = undefined;
      this.#rest = undefined;
      if (this.#size > this.#limits.bodyBytes * MAX_DRAINED) this.req.destroy();
    } else if (this.#first === undefined) this.#first = chunk;
    else if (this.#rest === undefined) this.#rest = [this.#first, chunk];
    else this.#rest.push(chunk);
  }

  end(): void {
    if (this.res.headersSent) return;
    const body = this.#rest === undefined ? this.#first : Buffer.concat(this.#rest, this.#size);
    this.#first = undefined;
    this.#rest = undefined;
    this.#parse(body === undefined ? "" : body.toString());
  }

  #parse(text: string): void {
    const { depth, members, batchMessages } = this.#limits;
    // What nests so deep has a bracket that opens and one that closes for each level; JSON.parse refuses the rest.
    if (text.length > 2 * depth && deeperThan(text, depth)) {
      this.refuse(ErrorCode.invalidRequest, `The body is nested deeper than ${depth} levels, which is the limit.`);
      return;
    }
    if (hasMoreMembers(text, members)) {
      this.refuse(ErrorCode.invalidRequest, `The body has more than ${members} members, which is the limit.`);
      return;
    }
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      this.refuse(ErrorCode.parse, "The body is not JSON.");
      return;
    }
    try {
      if (!Array.isArray(value)) this.onMessage(toMessage(text, value));
      else if (value.length > batchMessages) {
        this.refuse(ErrorCode.invalidRequest, `The batch has more than ${batchMessages} messages, which is the limit.`);
      } else if (value.length === 0) this.refuse(ErrorCode.invalidRequest, "The batch is empty.");
      else this.onBatch(splitBatch(text, value));
    } catch (error) {
      if (error instanceof Fault) this.refuse(ErrorCode.invalidRequest, error.message);
      else {
        this.#failed(error);
        this.refuse(ErrorCode.internal, toRpcError(error).message, 500);
      }
    }
  }

  refuse(code: number, message: string, status = 400, id?: string): void {
    refuse(this.res, status, code, message, [], id);
  }

  protected abstract onMessage(message: Message): void;
  protected abstract onBatch(messages: readonly Message[]): void;
}

/** Throws a Fault `invalid` for the first element that is no message. */
export function splitBatch(text: string, values: readonly unknown[]): Message[] {
  const spans = scanElements(text, 0);
  return spans.map(({ start, end }, index) => toMessage(text.slice(start, end), values[index]));
}

// Shared by all requests, so that reading a body makes no closures.
function onData(this: IncomingMessage, chunk: Buffer): void {
  (this as WithPost)[POST].data(chunk);
}

function onEnd(this: IncomingMessage): void {
  (this as WithPost)[POST].end();
}
