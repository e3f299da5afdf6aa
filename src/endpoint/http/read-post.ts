// One POST: its body is read within its bounds, becomes a message or a batch, and is given to its receiver. All paths
// that take POSTs read by this; what the messages mean is the receiver's to say.

import type { IncomingMessage, ServerResponse } from "node:http";
import { Fault, LIMIT, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message } from "../../protocol/message.js";
import type { EndpointLimits } from "../session/limits.js";
import { BODY, readMessage } from "../session/read-message.js";
import { refuse } from "./write-reply.js";

/** Whom a POST is for. What it throws is answered: a Fault as a bad request, anything else as an error of ours. */
export interface PostReceiver {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  onMessage(message: Message): void;
  /** The batch is never empty. */
  onBatch(messages: readonly Message[]): void;
}

const READER = Symbol("reader");
type WithReader = IncomingMessage & { [READER]: PostReader };

/** A body that is this many times over the limit is not even read to its end: the connection is closed. */
const MAX_DRAINED = 4;

/** Reads a POST for its receiver. `failed` tells the operator that something inside went wrong. */
export function readPost(receiver: PostReceiver, limits: EndpointLimits, failed: (error: unknown) => void): void {
  new PostReader(receiver, limits, failed).read();
}

class PostReader {
  readonly #to: PostReceiver;
  readonly #limits: EndpointLimits;
  readonly #failed: (error: unknown) => void;
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  #size = 0;

  constructor(to: PostReceiver, limits: EndpointLimits, failed: (error: unknown) => void) {
    this.#to = to;
    this.#limits = limits;
    this.#failed = failed;
  }

  read(): void {
    const { bodyBytes } = this.#limits;
    const req = this.#to.req as WithReader;
    const declared = Number(req.headers["content-length"] ?? 0);
    if (declared > bodyBytes) {
      this.#tooLarge(declared > bodyBytes * MAX_DRAINED);
      return;
    }
    req[READER] = this;
    req.on("data", onData);
    req.on("end", onEnd);
  }

  /** Unread bytes are thrown away, so that a client which writes first and reads then gets the answer. */
  #tooLarge(close: boolean): void {
    const { bodyBytes } = this.#limits;
    const { req, res } = this.#to;
    const headers = close ? ["Connection", "close"] : [];
    refuse(res, 413, LIMIT, `The body has more than ${bodyBytes} bytes, which is the limit.`, headers);
    if (!close) req.resume();
  }

  data(chunk: Buffer): void {
    this.#size += chunk.length;
    if (this.#size > this.#limits.bodyBytes) {
      const { req, res } = this.#to;
      if (!res.headersSent) this.#tooLarge(false);
      this.#first = undefined;
      this.#rest = undefined;
      if (this.#size > this.#limits.bodyBytes * MAX_DRAINED) req.destroy();
    } else if (this.#first === undefined) this.#first = chunk;
    else if (this.#rest === undefined) this.#rest = [this.#first, chunk];
    else this.#rest.push(chunk);
  }

  end(): void {
    const { res } = this.#to;
    if (res.headersSent) return;
    const body = this.#rest === undefined ? this.#first : Buffer.concat(this.#rest, this.#size);
    this.#first = undefined;
    this.#rest = undefined;
    try {
      this.#take(body === undefined ? "" : body.toString());
    } catch (error) {
      if (error instanceof Fault) refuse(res, 400, ErrorCode.invalidRequest, error.message);
      else {
        this.#failed(error);
        refuse(res, 500, ErrorCode.internal, toRpcError(error).message);
      }
    }
  }

  #take(text: string): void {
    const to = this.#to;
    const read = readMessage(text, this.#limits, BODY);
    if (Array.isArray(read)) {
      if (read.length === 0) refuse(to.res, 400, ErrorCode.invalidRequest, "The batch is empty.");
      else to.onBatch(read);
    } else if (read.kind === "unreadable") refuse(to.res, 400, read.code, read.why);
    else to.onMessage(read);
  }
}

// Shared by all requests, so that reading a body makes no closures.
function onData(this: IncomingMessage, chunk: Buffer): void {
  (this as WithReader)[READER].data(chunk);
}

function onEnd(this: IncomingMessage): void {
  (this as WithReader)[READER].end();
}
