// One POST: its body is read within its bounds, becomes a message or a batch, and is given to its receiver. All paths
// that take POSTs read by this; what the messages mean is the receiver's to say.

import type { IncomingMessage, ServerResponse } from "node:http";
import type { Principal } from "../../contracts/caller.js";
import { weightOf } from "../../protocol/bytes/weight.js";
import { Fault, LIMIT, toRpcError } from "../../protocol/errors.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { Message } from "../../protocol/message.js";
import { NOWHERE } from "../../runtime/containers/table.js";
import { type HeldBytes, type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { KIB } from "../../runtime/sizes.js";
import type { RequestTurn } from "../../runtime/turns/request-turns.js";
import { idText } from "../session/call.js";
import type { EndpointLimits } from "../session/limits.js";
import {
  BODY,
  costOf,
  decodeLong,
  hasRequest,
  heldBy,
  LONG_BYTES,
  readLongMessage,
  readMessage,
  SHORT_BYTES,
  SMALL_BYTES,
  TextCheck,
  tooLargeToHold,
  type Unreadable,
} from "../session/read-message.js";
import type { Accepts } from "./checks.js";
import type { OpenBodies, OpenBody } from "./open-bodies.js";
import { refuse } from "./write-reply.js";

/** A POST of an agent to /mcp, whose sender is known and whose body has been read. Both eras answer it by this. */
export interface AgentPost {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly principal: Principal;
  /** The server of `/mcp/<server>`. Undefined at `/mcp`, which has them all. */
  readonly scope: string | undefined;
  readonly accepts: Accepts;
  /** Another gateway passed it on: it stays here. */
  readonly isPassed: boolean;
}

/** Answers it with a JSON-RPC error. `id` is the JSON text of the request's id, where there is one. */
export function refusePost({ res }: AgentPost, code: number, message: string, status = 400, id?: string): void {
  refuse(res, status, code, message, [], id);
}

/** Whom a POST is for. What it throws is answered: a Fault as a bad request, anything else as an error of ours. */
export interface PostReceiver {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** Who sends it, and whose memory it takes. */
  readonly principal: Principal;
  onMessage(message: Message): void;
  /** The batch is never empty. */
  onBatch(messages: readonly Message[]): void;
}

/** What the POSTs of one endpoint share while their bodies are read. */
export interface BodyReading {
  readonly limits: EndpointLimits;
  readonly held: HeldBytes;
  readonly open: OpenBodies;
  /** Tells the operator that something inside went wrong. */
  readonly failed: (error: unknown) => void;
  /** False where the sender's token has ended while the body came; then it has been refused. */
  readonly isStillAllowed: (res: ServerResponse, principal: Principal) => boolean;
}

const READER = Symbol("reader");
type WithReader = IncomingMessage & { [READER]: PostReader };

/** A body that is this many times over the limit is not even read to its end: the connection is closed. */
const MAX_DRAINED = 4;

/** A body that comes in pieces shorter than this is copied together: the object of a piece is larger than the piece. */
const SHORT_PIECE_BYTES = 4 * KIB;
const BLOCK_BYTES = 64 * KIB;

/** When whoever found no room should come back: by then, readers that stand still are cut. */
const RETRY_AFTER: readonly string[] = ["Retry-After", "10"];
const CLOSE_AND_RETRY: readonly string[] = [...RETRY_AFTER, "Connection", "close"];

/** Reads a POST for its receiver. */
export function readPost(receiver: PostReceiver, reading: BodyReading): void {
  new PostReader(receiver, reading).read();
}

/** What those are answered who found no room. */
interface Refusal {
  readonly headers: readonly string[];
  readonly id: string | undefined;
}

class PostReader implements OpenBody, RequestTurn {
  readonly #to: PostReceiver;
  readonly #reading: BodyReading;
  #first: Buffer | undefined;
  #rest: Buffer[] | undefined;
  /** Short pieces are copied here, from `#filled` on; what is full of it stands in `#rest`. */
  #block: Buffer | undefined;
  #filled = 0;
  #size = 0;
  #ended = false;
  /** It found no room, and is or will be told so; what still comes of it is thrown away. */
  #refusal: Refusal | undefined;
  /** Made when the body has come, or has not come whole with its first piece. */
  #holder: Holder | undefined;
  #declared = 0;
  /** What its values take of the memory. Known at its end. */
  #weight = 0;
  #checked: TextCheck | undefined;
  place = NOWHERE;
  windowFrom: number | undefined = undefined;
  windowSize = 0;
  isDrained = false;

  constructor(to: PostReceiver, reading: BodyReading) {
    this.#to = to;
    this.#reading = reading;
  }

  get size(): number {
    return this.#size;
  }

  get by(): string {
    return this.#to.principal.id;
  }

  get isGone(): boolean {
    return this.#to.req.destroyed;
  }

  read(): void {
    const { bodyBytes } = this.#reading.limits;
    const req = this.#to.req as WithReader;
    const declared = Number(req.headers["content-length"] ?? 0);
    if (declared > bodyBytes) {
      this.#tooLarge(declared > bodyBytes * MAX_DRAINED);
      return;
    }
    if (declared > this.#reading.held.largestBody) {
      this.#neverFits(declared, costOf(declared, 0));
      req.resume();
      return;
    }
    this.#declared = declared;
    req[READER] = this;
    req.on("data", onData);
    req.on("end", onEnd);
    this.#reading.open.add(this);
  }

  /** Unread bytes are thrown away, so that a client which writes first and reads then gets the answer. */
  #tooLarge(close: boolean): void {
    const { bodyBytes } = this.#reading.limits;
    const { req, res } = this.#to;
    const headers = close ? ["Connection", "close"] : [];
    refuse(res, 413, LIMIT, `The body has more than ${bodyBytes} bytes, which is the limit.`, headers);
    if (!close) req.resume();
  }

  /** A connection costs memory too: while there is none, whoever is refused is not kept. */
  #noRoom(id?: string): void {
    this.#letGo();
    const cost = costOf(this.#size, this.#weight);
    if (cost > this.#reading.held.most) {
      this.#neverFits(this.#size, cost, id);
      return;
    }
    const headers = !this.#ended && this.#reading.open.drain(this) ? RETRY_AFTER : CLOSE_AND_RETRY;
    this.#refusal = { headers, id };
    this.#reading.open.turns.do(this);
  }

  /** To come back later would not help. */
  #neverFits(bytes: number, cost: number, id?: string): void {
    refuse(this.#to.res, 413, LIMIT, tooLargeToHold("body", bytes, cost, this.#reading.held), [], id);
  }

  endSlow(bytes: number, ms: number): void {
    const { res } = this.#to;
    this.#letGo();
    // What was refused and is only drained has had its answer.
    if (res.headersSent) this.#to.req.destroy();
    const why = `The body comes too slowly: ${bytes} bytes in ${Math.round(ms / 1000)} s. Send it again, faster.`;
    refuse(res, 408, LIMIT, why, ["Connection", "close"]);
  }

  data(chunk: Buffer): void {
    const { bodyBytes } = this.#reading.limits;
    this.#size += chunk.length;
    if (this.#size > bodyBytes) {
      const { req, res } = this.#to;
      if (!res.headersSent) this.#tooLarge(false);
      this.#letGo();
      if (this.#size > bodyBytes * MAX_DRAINED) req.destroy();
    } else if (!this.#mayTake(chunk)) {
      // Refused before or just now: the rest is thrown away as it comes.
    } else if (this.#first === undefined) this.#first = chunk;
    else this.#push(chunk);
  }

  /** What is whole with its first piece is counted at its end, which comes at once: most bodies are. */
  #mayTake(chunk: Buffer): boolean {
    if (this.#refusal !== undefined || this.#to.res.headersSent) return false;
    if (this.#size !== this.#declared && !this.#hold(this.#size)) return false;
    return this.#size < SMALL_BYTES || this.#check(chunk);
  }

  #push(chunk: Buffer): void {
    this.#rest ??= [this.#first as Buffer];
    if (chunk.length >= SHORT_PIECE_BYTES) {
      this.#endBlock();
      this.#rest.push(chunk);
      return;
    }
    if (this.#block !== undefined && this.#filled + chunk.length > this.#block.length) this.#endBlock();
    // A block is no larger than what has come: a body that stands still after a few bytes must not cost a large one.
    this.#block ??= Buffer.allocUnsafeSlow(Math.min(BLOCK_BYTES, Math.max(SHORT_PIECE_BYTES, this.#size)));
    this.#filled += chunk.copy(this.#block, this.#filled);
  }

  #endBlock(): void {
    if (this.#block === undefined) return;
    this.#rest?.push(this.#block.subarray(0, this.#filled));
    this.#block = undefined;
    this.#filled = 0;
  }

  /** False where there is no room, and the body has been refused. */
  #hold(bytes: number): boolean {
    if (this.#holder === undefined) {
      this.#holder = this.#reading.held.holder(this.#to.principal.id);
      this.#to.req.once("close", onClose);
    }
    if (this.#holder.hold(bytes)) return true;
    this.#noRoom();
    return false;
  }

  /** The same for what becomes of the body. */
  #holdMessage(id?: string): boolean {
    this.#holder ??= this.#reading.held.holder(this.#to.principal.id);
    if (this.#holder.hold(costOf(this.#size, this.#weight))) return true;
    this.#noRoom(id);
    return false;
  }

  /** False where there is too much to it, and it has been refused. */
  #check(chunk: Buffer): boolean {
    let unreadable: Unreadable | undefined;
    if (this.#checked === undefined) {
      this.#checked = new TextCheck(this.#reading.limits, BODY);
      this.#endBlock();
      for (const before of this.#rest ?? (this.#first === undefined ? [] : [this.#first]))
        unreadable ??= this.#checked.push(before);
    }
    unreadable ??= this.#checked.push(chunk);
    if (unreadable === undefined) return true;
    this.#letGo();
    refuse(this.#to.res, 400, unreadable.code, unreadable.why);
    return false;
  }

  #letGo(): void {
    this.#first = undefined;
    this.#rest = undefined;
    this.#block = undefined;
    this.#filled = 0;
    this.#holder?.release();
  }

  /** The request is over; a body that did not end has gone with it. */
  close(): void {
    if (!this.#ended) this.#letGo();
  }

  end(): void {
    const { res } = this.#to;
    this.#ended = true;
    this.#reading.open.delete(this);
    if (this.#refusal !== undefined || res.headersSent) return;
    this.#weigh();
    // What waits for its turn is counted while it does.
    if (this.#size < SHORT_BYTES || this.#holdMessage()) this.#reading.open.turns.do(this);
  }

  #weigh(): void {
    this.#endBlock();
    if (this.#checked !== undefined) this.#weight = this.#checked.weight;
    else if (this.#rest !== undefined) for (const piece of this.#rest) this.#weight += weightOf(piece);
    else if (this.#first !== undefined) this.#weight = weightOf(this.#first);
  }

  turn(): void {
    if (this.#refusal === undefined) this.#finish();
    else {
      const { headers, id } = this.#refusal;
      refuse(this.#to.res, 503, LIMIT, `The body was not taken: ${NO_ROOM}`, headers, id);
    }
  }

  /** All of it has come. */
  #finish(): void {
    if (!this.#reading.isStillAllowed(this.#to.res, this.#to.principal)) {
      this.#letGo();
      return;
    }
    if (this.#rest !== undefined && this.#size >= LONG_BYTES) {
      void this.#takeLong(this.#rest);
      return;
    }
    const body = this.#rest === undefined ? this.#first : Buffer.concat(this.#rest, this.#size);
    this.#first = undefined;
    this.#rest = undefined;
    try {
      this.#take(readMessage(body === undefined ? "" : body.toString(), this.#reading.limits, BODY));
    } catch (error) {
      this.#fail(error);
    }
    this.#holder?.releaseUnclaimed();
  }

  /** The same for a long body, with a turn of the loop for each step: nobody else waits for all of them, nor for several at once. */
  async #takeLong(pieces: Buffer[]): Promise<void> {
    const { limits, open } = this.#reading;
    const nextTurn = () => open.turns.step(this.by);
    this.#rest = undefined;
    this.#first = undefined;
    try {
      const read = await readLongMessage(await decodeLong(pieces, nextTurn), limits, BODY, nextTurn);
      await nextTurn();
      this.#take(read);
    } catch (error) {
      this.#fail(error);
    }
    this.#holder?.releaseUnclaimed();
  }

  #fail(error: unknown): void {
    const { res } = this.#to;
    if (error instanceof Fault) refuse(res, 400, ErrorCode.invalidRequest, error.message);
    else {
      this.#reading.failed(error);
      refuse(res, 500, ErrorCode.internal, toRpcError(error).message);
    }
  }

  #take(read: ReturnType<typeof readMessage>): void {
    const to = this.#to;
    // Nobody keeps what is no request.
    if (hasRequest(read)) {
      if (!this.#holdMessage("id" in read ? idText(read) : undefined)) return;
      heldBy(read, this.#holder as Holder);
    }
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

function onClose(this: IncomingMessage): void {
  (this as WithReader)[READER].close();
}
