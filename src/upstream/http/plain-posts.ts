// POSTs to a server that answers plainly, over connections of our own: a small call would spend more time in a general
// HTTP client than in all of the gateway. Only heads that leave no question are read here (plain/head.ts). With the first
// other one its connection goes to a general client, with all that was read of it, and so does every later request.

import type { Socket } from "node:net";
import { type BlockReader, copyOf, readBlocksBy } from "../../runtime/memory/read-blocks.js";
import { BAD_HEADER_VALUE, HEADER_NAME } from "../../runtime/network/headers.js";
import { ChunkedBody } from "./plain/chunks.js";
import { PlainHeads } from "./plain/head.js";
import type { ExchangeHandler, HttpExchange, RequestOptions } from "./requester.js";

/** A POST that can be sent from here. */
export interface PlainPost extends RequestOptions {
  readonly method: "POST";
  readonly body: string;
}

interface PlainPostsOptions {
  readonly host: string;
  readonly maxConnections: number;
  /** For how long a connection is kept that nobody uses. */
  readonly idleMs: number;
  /** Opens a connection; what it reads can be had by `readBlocksBy`. */
  readonly connect: (callback: (error: Error | null, socket?: Socket | null) => void) => void;
  /** A general client sends it. */
  readonly sendOtherwise: (post: PlainPost, handler: ExchangeHandler) => HttpExchange;
  /** A general client reads the answer, of which `seen` has come; the request was written. */
  readonly readOtherwise: (socket: Socket, seen: Buffer, post: PlainPost, handler: ExchangeHandler) => HttpExchange;
}

/** Idle connections are looked at so often. */
const SWEEP_MS = 500;
/** Servers say for how long they keep a connection; by then we no longer want to write to it. */
const KEEP_ALIVE_MARGIN_MS = 2_000;
/** A longer body is written as it is, and not made one string with its head. */
const LONG_CHARS = 64 * 1024;

const PATH = /^\/[\x21-\x7e]*$/;
/** A general client knows what they mean for it, or refuses them. */
const NOT_OURS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "expect",
  "host",
  "keep-alive",
  "transfer-encoding",
  "upgrade",
]);

class PlainExchange implements HttpExchange {
  readonly post: PlainPost;
  readonly head: string;
  /** Undefined once nobody wants to hear more. */
  handler: ExchangeHandler | undefined;
  connection: PlainConnection | undefined = undefined;
  isWritten = false;
  /** From then on it is the one to steer. */
  #other: HttpExchange | undefined = undefined;

  constructor(post: PlainPost, head: string, handler: ExchangeHandler) {
    this.post = post;
    this.head = head;
    this.handler = handler;
  }

  pause(): void {
    if (this.#other !== undefined) this.#other.pause();
    else this.connection?.pause();
  }

  resume(): void {
    if (this.#other !== undefined) this.#other.resume();
    else this.connection?.resume();
  }

  abort(): void {
    this.handler = undefined;
    this.#other?.abort();
    // What was not written needs no connection's end: its turn finds that nobody wants it.
    if (this.isWritten) this.connection?.abandon();
  }

  passedOn(to: (handler: ExchangeHandler) => HttpExchange): void {
    const { handler } = this;
    this.connection = undefined;
    if (handler !== undefined) this.#other = to(handler);
  }

  ended(): void {
    const { handler } = this;
    this.handler = undefined;
    this.connection = undefined;
    handler?.onEnd();
  }

  failed(error: Error): void {
    const { handler } = this;
    this.handler = undefined;
    this.connection = undefined;
    handler?.onError(error, this.isWritten);
  }
}

/** One connection: it has one exchange at a time, or none. */
class PlainConnection implements BlockReader {
  readonly #posts: PlainPosts;
  readonly #socket: Socket;
  #exchange: PlainExchange | undefined;
  /** How the answer's body is read: the bytes that are still to come, or chunks. Undefined before its head has come. */
  #body: { left: number } | ChunkedBody | undefined;
  #isPaused = false;
  #isUnref = false;
  /** It is not to be used again. */
  #isOver = false;
  #error: Error | undefined;
  keepAliveMs: number | undefined;
  /** The sweep since which nobody uses it. */
  idleSince = 0;

  constructor(posts: PlainPosts, socket: Socket) {
    this.#posts = posts;
    this.#socket = socket;
    readBlocksBy(socket, this);
    socket.on("error", this.#onError);
    socket.on("end", this.#onEnd);
    socket.on("close", this.#onClose);
  }

  readonly #onError = (error: Error): void => {
    this.#error ??= error;
  };
  readonly #onEnd = (): void => this.#lost();
  readonly #onClose = (): void => this.#lost();

  get isOver(): boolean {
    return this.#isOver;
  }

  /** It is for this exchange, which is written with the next turn, or now. */
  take(exchange: PlainExchange): void {
    this.#exchange = exchange;
    exchange.connection = this;
    if (!this.#isUnref) return;
    this.#isUnref = false;
    this.#socket.ref();
  }

  /** It keeps no process alive until it is used again. */
  unref(): void {
    if (this.#isUnref) return;
    this.#isUnref = true;
    this.#socket.unref();
  }

  /** Writes what it has, unless nobody wants it any more. */
  write(): void {
    const exchange = this.#exchange;
    if (exchange === undefined || this.#isOver) return;
    if (exchange.handler === undefined) {
      exchange.connection = undefined;
      this.#exchange = undefined;
      if (this.#isPaused) this.resume();
      this.#posts.rest(this);
      return;
    }
    const { head, post } = exchange;
    const { body } = post;
    exchange.isWritten = true;
    const chars = body.length;
    // As many bytes as characters: it is ASCII, and goes with its head as one string.
    if (chars < LONG_CHARS && Buffer.byteLength(body) === chars) {
      this.#socket.write(`${head}${chars}\r\n\r\n${body}`, "latin1");
      return;
    }
    const bytes = Buffer.from(body);
    this.#socket.cork();
    this.#socket.write(`${head}${bytes.length}\r\n\r\n`, "latin1");
    this.#socket.write(bytes);
    this.#socket.uncork();
  }

  /** What a reader throws ends its own exchange, as with a general client, and not the process. */
  read(block: Buffer, length: number, isLent: boolean): boolean {
    try {
      return this.#read(block, length, isLent);
    } catch (error) {
      this.destroy(error as Error);
      return true;
    }
  }

  #read(block: Buffer, length: number, isLent: boolean): boolean {
    const exchange = this.#exchange;
    if (exchange === undefined || !exchange.isWritten) {
      // It says something that nobody asked for: whose answer the next would be cannot be known.
      this.#lost();
      return true;
    }
    let at = 0;
    if (this.#body === undefined) {
      const head = this.#posts.heads.read(block, length);
      if (head === undefined) {
        this.#passOn(exchange, copyOf(block, 0, length));
        return false;
      }
      at = head.end;
      this.#body = head.length === undefined ? new ChunkedBody() : { left: head.length };
      this.keepAliveMs = head.keepAliveMs;
      exchange.handler?.onHead(head.status, head.headers);
      if (this.#isOver) return true;
    }
    const end =
      this.#body instanceof ChunkedBody
        ? this.#readChunks(exchange, this.#body, block, at, length, isLent)
        : this.#readLength(exchange, this.#body, block, at, length, isLent);
    if (this.#isOver) return true;
    if (end === undefined) return !this.#isPaused;
    this.#exchange = undefined;
    this.#body = undefined;
    if (this.#isPaused) this.resume();
    // Answered before all of the request was written, or with more than an answer: nobody knows what comes next.
    if (end === length && this.#socket.writableLength === 0) this.#posts.rest(this);
    else this.#lost();
    exchange.ended();
    return true;
  }

  /** Where the body ends; undefined where it goes on. */
  #readLength(
    exchange: PlainExchange,
    body: { left: number },
    block: Buffer,
    from: number,
    length: number,
    isLent: boolean,
  ): number | undefined {
    const to = Math.min(length, from + body.left);
    body.left -= to - from;
    if (to > from) exchange.handler?.onData(isLent ? block.subarray(from, to) : copyOf(block, from, to));
    return body.left === 0 ? to : undefined;
  }

  #readChunks(
    exchange: PlainExchange,
    body: ChunkedBody,
    block: Buffer,
    from: number,
    length: number,
    isLent: boolean,
  ): number | undefined {
    for (let at = from; at < length; ) {
      at = body.step(block, at, length);
      if (body.to > body.from) {
        const { from, to } = body;
        exchange.handler?.onData(isLent ? block.subarray(from, to) : copyOf(block, from, to));
        if (this.#isOver) return undefined;
      }
      if (body.isDone) return at;
      if (body.isBroken) {
        this.destroy(new Error("the body broke off"));
        return undefined;
      }
    }
    return undefined;
  }

  #passOn(exchange: PlainExchange, seen: Buffer): void {
    const socket = this.#socket;
    this.#exchange = undefined;
    this.#isOver = true;
    readBlocksBy(socket, undefined);
    socket.off("error", this.#onError);
    socket.off("end", this.#onEnd);
    socket.off("close", this.#onClose);
    this.#posts.isNotPlain(this);
    const { readOtherwise } = this.#posts.options;
    exchange.passedOn((handler) => readOtherwise(socket, seen, exchange.post, handler));
  }

  pause(): void {
    this.#isPaused = true;
    this.#socket.pause();
  }

  resume(): void {
    this.#isPaused = false;
    this.#socket.resume();
  }

  /** Its exchange is not wanted any more, and what comes of it would be taken for the next one's. */
  abandon(): void {
    this.#exchange = undefined;
    this.#lost();
  }

  destroy(error: Error): void {
    this.#error = error;
    this.#lost();
  }

  #lost(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const exchange = this.#exchange;
    this.#exchange = undefined;
    this.#socket.destroy();
    this.#posts.gone(this);
    if (exchange !== undefined) this.#posts.again(exchange, this.#error ?? new Error("other side closed"));
  }
}

export class PlainPosts {
  readonly options: PlainPostsOptions;
  readonly heads = new PlainHeads();
  /** False from the first answer on that is not plain: the next will not be, either. */
  isPlain = true;
  readonly #all = new Set<PlainConnection>();
  /** Those for which a connection is being opened. */
  readonly #opening = new Set<PlainExchange>();
  /** The last one that was used is the first to be used again. */
  readonly #idle: PlainConnection[] = [];
  /** Those that have ended an exchange in this turn of the loop, and those that write in the next. */
  #resting: PlainConnection[] = [];
  #writing: PlainConnection[] = [];
  #isTurning = false;
  /** For those there is no connection yet. */
  readonly #waiting: PlainExchange[] = [];
  #sweeper: NodeJS.Timeout | undefined;
  #sweeps = 0;
  #closed: Error | undefined;
  /** The last head of a request that was checked, and of what it was made. */
  #head: { path: string; headers: readonly string[]; text: string } | undefined;

  constructor(options: PlainPostsOptions) {
    this.options = options;
  }

  /** `path`: where the post's own has moved to. Undefined where it cannot be sent from here. The handler is called after this has returned. */
  dispatch(post: PlainPost, path: string, handler: ExchangeHandler): HttpExchange | undefined {
    const head = this.#headOf(path, post.headers);
    if (head === undefined) return undefined;
    const exchange = new PlainExchange(post, head, handler);
    this.#send(exchange);
    return exchange;
  }

  #send(exchange: PlainExchange): void {
    if (!this.isPlain) {
      exchange.passedOn((handler) => this.options.sendOtherwise(exchange.post, handler));
      return;
    }
    const connection = this.#idle.pop();
    if (connection !== undefined) {
      // Not at once: what has come on it meanwhile, its end for one, is heard first.
      connection.take(exchange);
      this.#writing.push(connection);
      this.#nextTurn();
    } else if (this.#all.size + this.#opening.size < this.options.maxConnections) this.#open(exchange);
    else this.#waiting.push(exchange);
  }

  #open(exchange: PlainExchange): void {
    this.#opening.add(exchange);
    const done = (error: Error | null, socket?: Socket | null): void => {
      if (!this.#opening.delete(exchange)) {
        // The link was closed meanwhile.
        socket?.destroy();
        return;
      }
      // undici leaves it out where there is an error.
      if (!socket) {
        exchange.failed(error ?? new Error("no connection"));
        this.#sendWaiting();
        return;
      }
      const connection = new PlainConnection(this, socket);
      this.#all.add(connection);
      connection.take(exchange);
      connection.write();
    };
    try {
      this.options.connect(done);
    } catch (error) {
      queueMicrotask(() => done(error as Error, null));
    }
  }

  /** It has ended its exchange. A turn of the loop later it is used again, if the server has not closed it by then. */
  rest(connection: PlainConnection): void {
    this.#resting.push(connection);
    this.#nextTurn();
  }

  #nextTurn(): void {
    if (this.#isTurning) return;
    this.#isTurning = true;
    setImmediate(this.#turn);
  }

  readonly #turn = (): void => {
    this.#isTurning = false;
    const writing = this.#writing;
    const resting = this.#resting;
    this.#writing = [];
    this.#resting = [];
    for (const connection of writing) connection.write();
    for (const connection of resting) this.#rested(connection);
  };

  #rested(connection: PlainConnection): void {
    if (connection.isOver) return;
    const { keepAliveMs } = connection;
    const isKept = keepAliveMs === undefined || keepAliveMs > KEEP_ALIVE_MARGIN_MS;
    if (!this.isPlain || !isKept) {
      connection.abandon();
      return;
    }
    connection.idleSince = this.#sweeps;
    this.#idle.push(connection);
    this.#sweeper ??= setTimeout(this.#sweep, SWEEP_MS).unref();
    this.#sendWaiting();
  }

  readonly #sweep = (): void => {
    this.#sweeper = undefined;
    this.#sweeps++;
    for (const connection of [...this.#idle]) {
      if (this.#isOld(connection)) connection.abandon();
      else connection.unref();
    }
    if (this.#idle.length > 0) this.#sweeper = setTimeout(this.#sweep, SWEEP_MS).unref();
  };

  #isOld({ idleSince, keepAliveMs }: PlainConnection): boolean {
    const { idleMs } = this.options;
    const maxMs = keepAliveMs === undefined ? idleMs : Math.min(idleMs, keepAliveMs - KEEP_ALIVE_MARGIN_MS);
    return (this.#sweeps - idleSince) * SWEEP_MS >= maxMs;
  }

  #sendWaiting(): void {
    const exchange = this.#waiting.shift();
    if (exchange === undefined) return;
    if (exchange.handler === undefined) this.#sendWaiting();
    else this.#send(exchange);
  }

  /** The connection was lost. */
  gone(connection: PlainConnection): void {
    this.#all.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at >= 0) this.#idle.splice(at, 1);
    if (this.#waiting.length > 0) queueMicrotask(() => this.#sendWaiting());
  }

  /**
   * Its connection was lost. What was not written goes to a new one, for which the lost one has made room: a server that
   * ends one idle connection may have ended them all, and what is written to a new one is not asked for again.
   */
  again(exchange: PlainExchange, error: Error): void {
    exchange.connection = undefined;
    if (exchange.handler === undefined) return;
    if (exchange.isWritten || this.#closed !== undefined) exchange.failed(error);
    else if (this.isPlain) this.#open(exchange);
    else this.#send(exchange);
  }

  /** It is a general client's from now on, and so are all that follow. */
  isNotPlain(connection: PlainConnection): void {
    this.isPlain = false;
    this.gone(connection);
    for (const idle of [...this.#idle]) idle.abandon();
    while (this.#waiting.length > 0) this.#sendWaiting();
  }

  destroy(error: Error): void {
    this.#closed = error;
    clearTimeout(this.#sweeper);
    const unsent = [...this.#waiting.splice(0), ...this.#opening];
    this.#opening.clear();
    for (const exchange of unsent) exchange.failed(error);
    for (const connection of [...this.#all]) connection.destroy(error);
  }

  /** The request up to its length. Undefined where a general client has to say what becomes of it. */
  #headOf(path: string, headers: readonly string[]): string | undefined {
    const last = this.#head;
    if (last !== undefined && last.path === path && areEqual(last.headers, headers)) return last.text;
    if (!PATH.test(path)) return undefined;
    let text = `POST ${path} HTTP/1.1\r\nhost: ${this.options.host}\r\nconnection: keep-alive\r\n`;
    for (let i = 0; i < headers.length; i += 2) {
      const name = headers[i] as string;
      const value = headers[i + 1] as string;
      if (!HEADER_NAME.test(name) || BAD_HEADER_VALUE.test(value) || NOT_OURS.has(name.toLowerCase())) return undefined;
      text += `${name}: ${value}\r\n`;
    }
    text += "content-length: ";
    this.#head = { path, headers, text };
    return text;
  }
}

function areEqual(a: readonly string[], b: readonly string[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}
