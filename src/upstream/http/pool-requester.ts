// Sends HTTP requests over our own network: by undici, and POSTs to servers that answer plainly by plain-posts.ts.

import type { LookupFunction, Socket } from "node:net";
import type { buildConnector, Dispatcher, Pool } from "undici";
import type { HttpTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { blockReading } from "../../runtime/memory/read-blocks.js";
import { withoutWriting } from "./plain/without-writing.js";
import type { PlainPost, PlainPosts } from "./plain-posts.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  MAX_CALLS_IN_FLIGHT,
  type OpenRequester,
  type PoolName,
  Redirects,
  type Requester,
  type RequestOptions,
  type ResponseHeaders,
} from "./requester.js";

/**
 * Connections for what must get through while all calls wait: answers to a server's questions, cancellations,
 * the GET stream. Without connections of their own, 256 calls that wait for an answer would wait for ever.
 */
const MAX_ASIDE_CONNECTIONS = 16;
/** A connect that takes longer is given up; the deadline of the connection as a whole is the supervisor's. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Idle sockets: below the 5 s after which common servers close theirs, so that we seldom write to a closed one. */
const IDLE_SOCKET_MS = 4_000;
/** TCP keep-alive, so that a peer that vanished under a silent stream is noticed in minutes. */
const TCP_KEEPALIVE_MS = 15_000;
/** Response headers beyond this are no MCP server's. */
const MAX_HEADER_BYTES = 64 * 1024;

class PoolExchange implements HttpExchange, Dispatcher.DispatchHandler {
  readonly #requester: PoolRequester;
  readonly #options: RequestOptions;
  #handler: ExchangeHandler | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** The path that a redirect of this origin names, once it has been seen. */
  #redirect: { status: number; path: string } | undefined;
  readonly #redirected: boolean;
  /** Something of it may have reached the server. */
  #written: boolean;
  #answered: boolean = false;
  #unstoppable: boolean = false;
  /** The exchange that follows the redirect; from then on it is the one to steer. */
  #next: HttpExchange | undefined;

  constructor(
    requester: PoolRequester,
    options: RequestOptions,
    handler: ExchangeHandler,
    redirected: boolean,
    written: boolean = false,
  ) {
    this.#requester = requester;
    this.#written = written;
    this.#options = options;
    this.#handler = handler;
    this.#redirected = redirected;
  }

  pause(): void {
    if (this.#next !== undefined) {
      this.#next.pause();
      return;
    }
    if (this.#unstoppable) return;
    this.#requester.paused.add(this);
    this.#controller?.pause();
  }

  /** All that the connection holds is told now, whoever asks for a pause. Never from inside undici's parser. */
  flush(): void {
    this.#unstoppable = true;
    this.#wake();
    this.#unstoppable = false;
  }

  #wake(): void {
    this.#requester.paused.delete(this);
    if (this.#handler !== undefined) this.#controller?.resume();
  }

  resume(): void {
    if (this.#next !== undefined) {
      this.#next.resume();
      return;
    }
    // undici's parser is one for the process and must not be entered from inside itself; a reader that wakes
    // up in the callback of another exchange would do that.
    queueMicrotask(() => this.#wake());
  }

  /** The socket is lost. */
  abort(): void {
    this.#handler = undefined;
    this.#requester.paused.delete(this);
    this.#next?.abort();
    // Within the parser's callbacks the socket must not vanish under it.
    queueMicrotask(() => this.#controller?.abort(new Error("abandoned")));
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#handler === undefined) {
      controller.abort(new Error("abandoned"));
      return;
    }
    if (this.#controller !== undefined && this.#options.method === "POST") {
      // It would be written a second time, after it may have been acted on.
      controller.abort(new Error("the connection was lost"));
      return;
    }
    this.#controller = controller;
    this.#written = true;
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (this.#handler === undefined || status < 200) return;
    this.#answered = true;
    const location = headers["location"];
    if (status < 300 || status > 399 || typeof location !== "string") {
      this.#handler.onHead(status, headers);
      return;
    }
    const { redirects } = this.#requester;
    const followed = this.#redirected ? undefined : redirects.followed(status, location, this.#options.path);
    if (followed !== undefined) {
      this.#redirect = { status, path: followed };
      return;
    }
    const handler = this.#handler;
    this.abort();
    handler.onError(redirects.refused(status, location, this.#options.path), true);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#redirect === undefined) this.#handler?.onData(chunk);
  }

  onResponseEnd(): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    if (this.#redirect === undefined) {
      this.#handler = undefined;
      this.#requester.paused.delete(this);
      handler.onEnd();
      return;
    }
    const { status, path } = this.#redirect;
    this.#requester.redirects.moved(status, this.#options.path, path);
    this.#next = this.#requester.dispatch({ ...this.#options, path }, handler, true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#requester.paused.delete(this);
    unmaskReset(error);
    // A body that stops in the middle is for the parser an error of grammar; what was HTTP so far was cut.
    const cut = this.#answered && error.name === "HTTPParserError";
    handler?.onError(cut ? new Error("the body broke off", { cause: error }) : error, this.#written);
  }
}

class PoolRequester implements Requester {
  readonly redirects: Redirects;
  /** Exchanges whose readers are slow: a few at most. */
  readonly paused = new Set<PoolExchange>();
  readonly #makePool: MakePool;
  readonly #pools: Record<PoolName, Pool>;
  readonly #watch = (socket: Socket): void => watchEnd(socket, this.paused);
  /** Undefined where bytes come encrypted: those are not read where they lie. */
  readonly #plain: PlainPosts | undefined;
  /** Each has one connection, whose answer was not plain, and ends with it. */
  readonly #takenOver = new Set<Pool>();
  #destroyed: boolean = false;

  constructor(base: URL, makePool: MakePool, plain?: { posts: typeof PlainPosts; connect: Connect }) {
    this.redirects = new Redirects(base);
    this.#makePool = makePool;
    this.#pools = {
      calls: makePool(MAX_CALLS_IN_FLIGHT, this.#watch),
      asides: makePool(MAX_ASIDE_CONNECTIONS, this.#watch),
    };
    if (plain === undefined) return;
    this.#plain = new plain.posts({
      host: base.host,
      maxConnections: MAX_CALLS_IN_FLIGHT,
      idleMs: IDLE_SOCKET_MS,
      connect: plain.connect,
      sendOtherwise: (post, handler) => this.#dispatch(this.#pools.calls, post, handler, false, false),
      readOtherwise: (socket, seen, post, handler) => this.#takeOver(socket, seen, post, handler),
    });
  }

  dispatch(options: RequestOptions, handler: ExchangeHandler, redirected = false): HttpExchange {
    const { method, pool, body } = options;
    if (method === "POST" && pool === "calls" && body && this.#plain?.isPlain && !redirected && !this.#destroyed) {
      const exchange = this.#plain.dispatch(options as PlainPost, this.redirects.current(options.path), handler);
      if (exchange !== undefined) return exchange;
    }
    return this.#dispatch(this.#pools[pool], options, handler, redirected, false);
  }

  #dispatch(
    pool: Pool,
    options: RequestOptions,
    handler: ExchangeHandler,
    redirected: boolean,
    written: boolean,
  ): PoolExchange {
    const exchange = new PoolExchange(this, options, handler, redirected, written);
    const { method, headers, body } = options;
    const path = this.redirects.current(options.path);
    try {
      if (this.#destroyed) throw new Error("The link is closed.");
      pool.dispatch({ path, method, headers, body: body ?? null, idempotent: false }, exchange);
    } catch (error) {
      // The handler is never called from within: callers register the exchange after this returns.
      queueMicrotask(() => exchange.onResponseError(undefined, error as Error));
    }
    return exchange;
  }

  /** undici reads the answer to a request that was written by ours: it writes its own into nothing. */
  #takeOver(socket: Socket, seen: Buffer, post: PlainPost, handler: ExchangeHandler): HttpExchange {
    let left: Socket | undefined = socket;
    const pool = this.#makePool(1, this.#watch, (_options, callback) => {
      const given = left;
      left = undefined;
      // It is not heard from within.
      queueMicrotask(() =>
        given === undefined ? callback(new Error("other side closed"), null) : callback(null, given),
      );
    });
    withoutWriting(socket, () => socket.push(seen));
    const exchange = this.#dispatch(pool, post, handler, false, true);
    this.#takenOver.add(pool);
    // Once the answer is read.
    void pool
      .close()
      .catch(() => {})
      .finally(() => this.#takenOver.delete(pool));
    return exchange;
  }

  async destroy(): Promise<void> {
    this.#destroyed = true;
    const closed = new Fault("closing", "The link is closed.");
    this.#plain?.destroy(closed);
    const pools = [this.#pools.calls, this.#pools.asides, ...this.#takenOver];
    await Promise.allSettled(pools.map((pool) => pool.destroy(closed)));
  }
}

type Connect = (callback: (error: Error | null, socket?: Socket | null) => void) => void;
type Connector = buildConnector.connector;
type MakePool = (connections: number, watch: (socket: Socket) => void, connector?: Connector) => Pool;

/** Opens a requester over our own network. */
export const openPoolRequester: OpenRequester = (target, base) => openPool(target, base, undefined);

/** The same, where names lead only to addresses that `lookup` gives. */
export const poolRequestersBy =
  (lookup: LookupFunction): OpenRequester =>
  (target, base) =>
    openPool(target, base, lookup);

async function openPool({ socketPath }: HttpTarget, base: URL, lookup: LookupFunction | undefined): Promise<Requester> {
  // undici is loaded with the first HTTP server: it costs tens of milliseconds, which a start without one should not
  // pay.
  const undici = await import("undici");
  const connect = undici.buildConnector({
    // Bytes that come encrypted are decrypted into buffers that are not ours.
    ...(base.protocol === "http:" ? { onread: blockReading() } : {}),
    timeout: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelay: TCP_KEEPALIVE_MS,
    ...(socketPath === undefined ? {} : { socketPath }),
    ...(lookup === undefined ? {} : { lookup }),
  });
  const pool: MakePool = (connections, watch, connector = connect) =>
    new undici.Pool(base.origin, {
      connections,
      pipelining: 1,
      keepAliveTimeout: IDLE_SOCKET_MS,
      keepAliveMaxTimeout: IDLE_SOCKET_MS,
      // How long an answer may take is known to whoever asked, who forgets the ticket.
      headersTimeout: 0,
      bodyTimeout: 0,
      maxHeaderSize: MAX_HEADER_BYTES,
      connect: (options, callback) =>
        connector(options, (...[error, socket]) => {
          if (error !== null) {
            callback(error, null);
            return;
          }
          watch(socket);
          callback(null, socket);
        }),
    });
  if (base.protocol !== "http:") return new PoolRequester(base, pool);
  const { PlainPosts: posts } = await import("./plain-posts.js");
  const { protocol, host, port } = base;
  // As undici itself asks for one: an IPv6 address without its brackets.
  const hostname = base.hostname.replace(/^\[(.*)\]$/, "$1");
  const connectPlain: Connect = (callback) =>
    connect({ protocol, host, hostname, port }, (...[error, socket]) => callback(error, socket));
  return new PoolRequester(base, pool, { posts, connect: connectPlain });
}

/**
 * undici 7 ends the process when a connection ends under a paused response (nodejs/undici#5360; 8, which is mended,
 * does not run on Node 20), and takes a reset for the end of a body without a length. So before it hears of an end,
 * paused responses go on (a connection holds a piece or two), and a reset bears a name that it does not know.
 */
function watchEnd(socket: Socket, paused: ReadonlySet<PoolExchange>): void {
  socket.on("end", () => {
    // Which of them is this connection's cannot be told; the others pause again with their next piece.
    for (const exchange of [...paused]) exchange.flush();
  });
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") error.code = MASKED_RESET;
  });
}

const MASKED_RESET = "ERR_RESET";

function unmaskReset(error: NodeJS.ErrnoException): void {
  if (error.code === MASKED_RESET) error.code = "ECONNRESET";
}
