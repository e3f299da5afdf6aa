// Sends HTTP requests over our own network, by undici.

import type { LookupFunction, Socket } from "node:net";
import type { Dispatcher, Pool } from "undici";
import type { HttpTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { blockReading } from "../../runtime/memory/read-blocks.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  MAX_CALLS_IN_FLIGHT,
  type OpenWire,
  type PoolName,
  Redirects,
  type RequestOptions,
  type ResponseHeaders,
  type Wire,
} from "./wire.js";

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
  readonly #wire: PoolWire;
  readonly #options: RequestOptions;
  #handler: ExchangeHandler | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** The path that a redirect of this origin names, once it has been seen. */
  #redirect: { status: number; path: string } | undefined;
  readonly #redirected: boolean;
  #answered: boolean = false;
  #unstoppable: boolean = false;
  /** The exchange that follows the redirect; from then on it is the one to steer. */
  #next: HttpExchange | undefined;

  constructor(wire: PoolWire, options: RequestOptions, handler: ExchangeHandler, redirected: boolean) {
    this.#wire = wire;
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
    this.#wire.paused.add(this);
    this.#controller?.pause();
  }

  /** All that the connection holds is told now, whoever asks for a pause. Never from inside undici's parser. */
  flush(): void {
    this.#unstoppable = true;
    this.#wake();
    this.#unstoppable = false;
  }

  #wake(): void {
    this.#wire.paused.delete(this);
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
    this.#wire.paused.delete(this);
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
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: ResponseHeaders): void {
    if (this.#handler === undefined || status < 200) return;
    this.#answered = true;
    const location = headers["location"];
    if (status < 300 || status > 399 || typeof location !== "string") {
      this.#handler.onHead(status, headers);
      return;
    }
    const { redirects } = this.#wire;
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
      this.#wire.paused.delete(this);
      handler.onEnd();
      return;
    }
    const { status, path } = this.#redirect;
    this.#wire.redirects.moved(status, this.#options.path, path);
    this.#next = this.#wire.dispatch({ ...this.#options, path }, handler, true);
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const handler = this.#handler;
    this.#handler = undefined;
    this.#wire.paused.delete(this);
    unmaskReset(error);
    // A body that stops in the middle is for the parser an error of grammar; what was HTTP so far was cut.
    const cut = this.#answered && error.name === "HTTPParserError";
    handler?.onError(cut ? new Error("the body broke off", { cause: error }) : error, this.#controller !== undefined);
  }
}

class PoolWire implements Wire {
  readonly redirects: Redirects;
  /** Exchanges whose readers are slow: a few at most. */
  readonly paused = new Set<PoolExchange>();
  readonly #pools: Record<PoolName, Pool>;
  #destroyed: boolean = false;

  constructor(base: URL, makePool: (connections: number, watch: (socket: Socket) => void) => Pool) {
    this.redirects = new Redirects(base);
    const watch = (socket: Socket) => watchEnd(socket, this.paused);
    this.#pools = { calls: makePool(MAX_CALLS_IN_FLIGHT, watch), asides: makePool(MAX_ASIDE_CONNECTIONS, watch) };
  }

  dispatch(options: RequestOptions, handler: ExchangeHandler, redirected = false): HttpExchange {
    const exchange = new PoolExchange(this, options, handler, redirected);
    const { method, headers, body } = options;
    const path = this.redirects.current(options.path);
    try {
      if (this.#destroyed) throw new Error("The link is closed.");
      this.#pools[options.pool].dispatch({ path, method, headers, body: body ?? null, idempotent: false }, exchange);
    } catch (error) {
      // The handler is never called from within: callers register the exchange after this returns.
      queueMicrotask(() => exchange.onResponseError(undefined, error as Error));
    }
    return exchange;
  }

  async destroy(): Promise<void> {
    this.#destroyed = true;
    const closed = new Fault("closing", "The link is closed.");
    await Promise.allSettled([this.#pools.calls.destroy(closed), this.#pools.asides.destroy(closed)]);
  }
}

/** Opens a wire over our own network. */
export const openPoolWire: OpenWire = (target, base) => openPool(target, base, undefined);

/** The same, where names lead only to addresses that `lookup` gives. */
export const poolWiresBy =
  (lookup: LookupFunction): OpenWire =>
  (target, base) =>
    openPool(target, base, lookup);

async function openPool({ socketPath }: HttpTarget, base: URL, lookup: LookupFunction | undefined): Promise<Wire> {
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
  const pool = (connections: number, watch: (socket: Socket) => void) =>
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
        connect(options, (...[error, socket]) => {
          if (error !== null) {
            callback(error, null);
            return;
          }
          watch(socket);
          callback(null, socket);
        }),
    });
  return new PoolWire(base, pool);
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
