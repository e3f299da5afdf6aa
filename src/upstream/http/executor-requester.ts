// Sends HTTP requests through an executor: it is the same requester as over our own network, so that links cannot tell.
// executor/ knows what an executor is, and which one makes a request.

import type { HttpHeader } from "../../executor/wire/protocol.js";
import type { AnswerHandler, ExecutorError, ExecutorRequest, RequestHandle } from "../../executor/wire/types.js";
import { Fault, OUTCOME_UNKNOWN } from "../../protocol/errors.js";
import { IndexedSet, NOWHERE } from "../../runtime/containers/table.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import { executorFault } from "./faults.js";
import { openPoolRequester } from "./pool-requester.js";
import {
  type ExchangeHandler,
  type HttpExchange,
  MAX_CALLS_IN_FLIGHT,
  type OpenRequester,
  Redirects,
  type Requester,
  type RequestOptions,
  type ResponseHeaders,
} from "./requester.js";

/** What a requester needs of the executors of one name. */
export interface ExecutorWay {
  readonly name: string;
  /** Never throws, and the handler is called after it has returned. */
  start(request: ExecutorRequest, handler: AnswerHandler): RequestHandle;
  /** Resolves when a request can be made; rejects with an ExecutorError that says why none can. */
  ready(signal: AbortSignal): Promise<void>;
}

/** Opens requesters through the executor that the target names; where it names none, over our own network. */
export function requestersBy(way: (name: string) => ExecutorWay | undefined): OpenRequester {
  return async (target, url, signal) => {
    const { via } = target;
    if (via === undefined) return openPoolRequester(target, url, signal);
    const executor = way(via);
    if (executor === undefined) throw new Fault("invalid", `There is no executor "${via}" in the config.`);
    try {
      await executor.ready(signal);
    } catch (error) {
      const { reason } = signal;
      if (reason instanceof Fault && reason.code === "closing") throw reason;
      throw executorFault(error as ExecutorError, safeUrl(url), via).fault;
    }
    return new ExecutorRequester(executor, url);
  };
}

export class ExecutorRequester implements Requester {
  readonly redirects: Redirects;
  readonly shown: string;
  readonly way: ExecutorWay;
  readonly #origin: string;
  readonly #open = new IndexedSet<WiredExchange>();
  #calls = 0;
  /** Calls beyond the bound wait in turn. As over our own network, one server cannot take all of the room. */
  readonly #waiting: WiredExchange[] = [];
  #destroyed: boolean = false;

  constructor(way: ExecutorWay, base: URL) {
    this.way = way;
    this.redirects = new Redirects(base);
    this.shown = safeUrl(base);
    this.#origin = base.origin;
  }

  dispatch(options: RequestOptions, handler: ExchangeHandler): HttpExchange {
    const exchange = new WiredExchange(this, options, handler);
    if (this.#destroyed) {
      queueMicrotask(() => exchange.close(new Fault("closing", "The link is closed."), false));
      return exchange;
    }
    this.#open.add(exchange);
    if (options.pool === "asides") exchange.start(this.urlOf(options.path));
    else if (this.#calls >= MAX_CALLS_IN_FLIGHT) this.#waiting.push(exchange);
    else {
      this.#calls++;
      exchange.start(this.urlOf(options.path));
    }
    return exchange;
  }

  urlOf(path: string): string {
    return this.#origin + this.redirects.current(path);
  }

  /** Nothing more comes of it. */
  ended(exchange: WiredExchange): void {
    if (exchange.place === NOWHERE) return;
    this.#open.delete(exchange);
    if (exchange.options.pool === "asides") return;
    if (!exchange.isStarted) {
      this.#waiting.splice(this.#waiting.indexOf(exchange), 1);
      return;
    }
    this.#calls--;
    // Those that wait end with the rest, unsent.
    if (this.#destroyed) return;
    const next = this.#waiting.shift();
    if (next === undefined) return;
    this.#calls++;
    next.start(this.urlOf(next.options.path));
  }

  async destroy(): Promise<void> {
    this.#destroyed = true;
    const closed = new Fault("closing", "The link is closed.");
    for (const exchange of this.#open.all()) exchange.close(closed, exchange.isStarted);
  }
}

class WiredExchange implements HttpExchange, AnswerHandler {
  readonly options: RequestOptions;
  readonly #requester: ExecutorRequester;
  #handler: ExchangeHandler | undefined;
  #exchange: RequestHandle | undefined;
  /** The path that a redirect of this origin names, once it has been seen. */
  #redirect: { readonly status: number; readonly path: string } | undefined;
  #redirected: boolean = false;
  #paused: boolean = false;
  /** What the answer's head says that its body has; the agent is told the same. */
  #length: number | undefined;
  #received = 0;
  place = NOWHERE;

  constructor(requester: ExecutorRequester, options: RequestOptions, handler: ExchangeHandler) {
    this.#requester = requester;
    this.options = options;
    this.#handler = handler;
  }

  get isStarted(): boolean {
    return this.#exchange !== undefined;
  }

  start(url: string): void {
    const { method, headers, body } = this.options;
    this.#exchange = this.#requester.way.start(
      { method, url, headers: headerList(headers), body, redirect: "stop" },
      this,
    );
    if (this.#paused) this.#exchange.pause();
  }

  pause(): void {
    this.#paused = true;
    this.#exchange?.pause();
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    // Data may come at once; a reader that is just asking must not be given it from within.
    queueMicrotask(() => {
      if (!this.#paused && this.#handler !== undefined) this.#exchange?.resume();
    });
  }

  abort(): void {
    if (this.#handler === undefined) return;
    this.#handler = undefined;
    this.#exchange?.abort();
    this.#requester.ended(this);
  }

  /** Ends it from our side, and says so. */
  close(error: Error, written: boolean): void {
    const handler = this.#handler;
    this.abort();
    handler?.onError(error, written);
  }

  onHead(status: number, list: readonly HttpHeader[]): void {
    if (this.#handler === undefined) return;
    const headers = headersOf(list);
    const location = headers["location"];
    if (status < 300 || status > 399 || typeof location !== "string") {
      const length = headers["content-length"];
      if (length !== undefined && !isLength(length)) {
        this.close(this.#broken("a length that is none"), true);
        return;
      }
      if (status >= 200 && status !== 204 && status < 300 && length !== undefined) this.#length = Number(length);
      this.#handler.onHead(status, headers);
      return;
    }
    const { redirects } = this.#requester;
    const { path } = this.options;
    const followed = this.#redirected ? undefined : redirects.followed(status, location, path);
    if (followed === undefined) this.close(redirects.refused(status, location, path), true);
    else this.#redirect = { status, path: followed };
  }

  onData(chunk: Buffer): void {
    if (this.#redirect !== undefined) return;
    this.#received += chunk.length;
    if (this.#length !== undefined && this.#received > this.#length) {
      this.close(this.#broken("more than the answer's length"), true);
      return;
    }
    this.#handler?.onData(chunk);
  }

  onEnd(): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    const redirect = this.#redirect;
    if (redirect === undefined) {
      this.#handler = undefined;
      this.#requester.ended(this);
      if (this.#length === undefined || this.#received === this.#length) handler.onEnd();
      else handler.onError(this.#broken("less than the answer's length"), true);
      return;
    }
    this.#requester.redirects.moved(redirect.status, this.options.path, redirect.path);
    this.#redirect = undefined;
    this.#redirected = true;
    this.start(this.#requester.urlOf(redirect.path));
  }

  /** Over our own network HTTP itself sees to it that a body is as long as it was said to be. */
  #broken(what: string): Fault {
    const message = `Executor "${this.#requester.way.name}" sent ${what}.`;
    return new Fault("outcome-unknown", message, { outcome: OUTCOME_UNKNOWN });
  }

  onError(error: ExecutorError): void {
    const handler = this.#handler;
    if (handler === undefined) return;
    this.#handler = undefined;
    this.#requester.ended(this);
    const { fault, sent } = executorFault(error, this.#requester.shown, this.#requester.way.name);
    handler.onError(fault, sent);
  }
}

function isLength(value: string | string[]): value is string {
  return typeof value === "string" && /^\d{1,15}$/.test(value);
}

/** Reads names and values that stand in turn. */
function headerList(flat: readonly string[]): HttpHeader[] {
  const list: HttpHeader[] = [];
  for (let i = 0; i + 1 < flat.length; i += 2) list.push({ name: flat[i] as string, value: flat[i + 1] as string });
  return list;
}

/** Headers by name in lower case; one that came more than once has a list. */
function headersOf(list: readonly HttpHeader[]): ResponseHeaders {
  const headers: Record<string, string | string[]> = Object.create(null);
  for (const { name, value } of list) {
    const key = name.toLowerCase();
    const before = headers[key];
    if (before === undefined) headers[key] = value;
    else if (typeof before === "string") headers[key] = [before, value];
    else before.push(value);
  }
  return headers;
}
