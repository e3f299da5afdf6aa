// One request at an executor, from the first byte sent to the last one heard, redirects included. On Node's own HTTP:
// what it tells of a body that breaks off can be relied on, and a reader may pause it at any time (undici ends the
// process when a server closes a connection that is paused, and takes a reset for the end of a body without a length).

import { type ClientRequest, type Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { LookupFunction, Socket } from "node:net";
import { Readable } from "node:stream";
import { NOWHERE, type Placed } from "../../runtime/containers/table.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_REDIRECTS, MAX_STREAMED_BODY_BYTES } from "../wire/limits.js";
import type { HttpHeader } from "../wire/protocol.js";
import { type Hop, redirected } from "../wire/redirect.js";
import type { RequestHandle } from "../wire/types.js";
import { failure, failureOf, type RequestFailure } from "./failure.js";
import type { CheckedRequest } from "./request-check.js";

/**
 * Hears of an answer: head, data, then exactly one of end and failure. A failure may come at any time before the end.
 */
export interface ResponseHandler {
  onHead(status: number, headers: HttpHeader[]): void;
  onData(chunk: Buffer): void;
  onEnd(): void;
  onFailure(failure: RequestFailure): void;
}

/** What all requests of an executor share. */
export interface RequestContext {
  readonly connectMs: number;
  readonly idleMs: number;
  agentFor(url: URL): HttpAgent;
  /** Throws where the place is refused; a name's addresses are judged when it connects. */
  lookupFor(url: URL): LookupFunction;
  /** It has ended, however. */
  left(request: HttpRequest): void;
}

/** May be made a second time where an idle connection was closed by the server just as they were written to it. */
const REPEATABLE = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);
/** Have no length of their own where there is no body. */
const BODILESS = new Set(["GET", "HEAD", "OPTIONS", "DELETE"]);

/** The handle may be used from within the handler, and after the end, where it does nothing. */
export class HttpRequest implements RequestHandle, Placed {
  place = NOWHERE;
  readonly #context: RequestContext;
  readonly #followsRedirects: boolean;
  readonly #timeoutMs: number | undefined;
  #handler: ResponseHandler | undefined;
  #hop: Hop;
  #body: Buffer | Readable | undefined;
  #hops = 0;
  #request: ClientRequest | undefined;
  #response: IncomingMessage | undefined;
  #deadline: NodeJS.Timeout | undefined;
  #connecting: NodeJS.Timeout | undefined;
  #paused: boolean = false;
  #repeated: boolean = false;
  /** Something of it may have reached a server. */
  #written: boolean = false;
  #received = 0;
  /** Something has happened since the last look at it. */
  #wasActive: boolean = true;
  #quietSince = 0;

  constructor(context: RequestContext, request: CheckedRequest, handler: ResponseHandler) {
    this.#context = context;
    this.#handler = handler;
    this.#hop = request;
    this.#body = request.body;
    this.#followsRedirects = request.redirect === "follow";
    this.#timeoutMs = request.timeoutMs;
  }

  /** The handler hears nothing before this returns. */
  begin(): void {
    const timeoutMs = this.#timeoutMs;
    if (timeoutMs !== undefined) {
      this.#deadline = setTimeout(() => this.#timeOut(timeoutMs), timeoutMs);
      if (timeoutMs === 0) return;
    }
    this.#send();
  }

  /** No data is handed out until resume(); the server is slowed down. */
  pause(): void {
    this.#paused = true;
    this.#wasActive = true;
    this.#response?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#wasActive = true;
    // Of one that has ended there is nothing to read that anybody hears.
    if (this.#handler !== undefined) this.#response?.resume();
  }

  /** The connection is closed, a streamed body is destroyed; the handler hears nothing more. */
  abort(): void {
    if (this.#leave() !== undefined) this.#request?.destroy();
  }

  /** It will not go on, and its handler is told why. */
  fail(why: RequestFailure): void {
    const handler = this.#leave();
    if (handler === undefined) return;
    this.#request?.destroy();
    handler.onFailure(why);
  }

  /** Called now and then, so that silence costs no timer of its own. */
  checkIdle(nowMs: number): void {
    if (this.#wasActive) {
      this.#wasActive = false;
      this.#quietSince = nowMs;
    } else if (nowMs - this.#quietSince >= this.#context.idleMs) {
      const silence = `for ${Math.round(this.#context.idleMs / 1000)} s`;
      const where = safeUrl(this.#hop.url);
      // A server that is held back has nothing to answer for.
      const what = this.#paused ? `nobody read the answer of ${where} ${silence}` : `${where} was silent ${silence}`;
      this.fail(failure("timeout", what, this.#written));
    }
  }

  #send(): void {
    const { url, method } = this.#hop;
    const body = this.#body;
    let request: ClientRequest;
    try {
      const lookup = this.#context.lookupFor(url);
      const isTls = url.protocol === "https:";
      request = (isTls ? httpsRequest : httpRequest)({
        agent: this.#context.agentFor(url),
        method,
        host: url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname,
        port: url.port === "" ? (isTls ? 443 : 80) : Number(url.port),
        path: url.pathname + url.search,
        headers: wireHeaders(this.#hop, body),
        maxHeaderSize: MAX_HEADER_BYTES,
        lookup,
      });
    } catch (error) {
      queueMicrotask(() => this.fail(this.#failureOf(error)));
      return;
    }
    this.#request = request;
    // Node drops what is beyond it without a word; one more than is allowed is enough to notice.
    request.maxHeadersCount = MAX_HEADERS + 1;
    request.on("socket", (socket) => this.#onSocket(request, socket));
    request.on("response", (response) => this.#onResponse(request, response));
    request.on("error", (error: NodeJS.ErrnoException) => this.#onError(request, error));
    request.on("close", () => {
      // Of an answer that has begun, the answer tells.
      if (this.#response === undefined) this.#onClose(request);
    });
    // Nobody asked for another protocol, and Node would leave the request hanging.
    request.on("upgrade", (_response, socket) => {
      socket.destroy();
      this.#onError(request, new Error("the server wants to speak another protocol"));
    });
    if (body instanceof Readable) this.#upload(request, body);
    else request.end(body);
  }

  #onSocket(request: ClientRequest, socket: Socket): void {
    if (request !== this.#request || this.#handler === undefined) return;
    const isTls = this.#hop.url.protocol === "https:";
    const isReady = !socket.connecting && !(socket as { secureConnecting?: boolean }).secureConnecting;
    if (isReady) {
      this.#written = true;
      return;
    }
    const { connectMs } = this.#context;
    clearTimeout(this.#connecting);
    this.#connecting = setTimeout(() => {
      const { host } = this.#hop.url;
      this.fail(failure("timeout", `${host} accepted no connection within ${connectMs} ms`, this.#written));
    }, connectMs);
    socket.once(isTls ? "secureConnect" : "connect", () => {
      if (request !== this.#request) return;
      clearTimeout(this.#connecting);
      this.#written = true;
    });
  }

  #onResponse(request: ClientRequest, response: IncomingMessage): void {
    if (request !== this.#request || this.#handler === undefined) {
      response.destroy();
      return;
    }
    const { rawHeaders } = response;
    const status = response.statusCode ?? 0;
    this.#wasActive = true;
    if (this.#followsRedirects && this.#followed(request, response, status)) return;
    if (rawHeaders.length / 2 > MAX_HEADERS) {
      this.fail(failure("limit", `${safeUrl(this.#hop.url)} sent more than ${MAX_HEADERS} headers`, true));
      return;
    }
    this.#response = response;
    response.on("error", (error) => this.#onError(request, error));
    response.on("end", () => this.#onEnd(request, response));
    response.on("close", () => this.#onClose(request));
    this.#handler.onHead(status, headersOf(rawHeaders));
    response.on("data", (chunk: Buffer) => this.#onData(chunk));
    if (this.#paused) response.pause();
  }

  #onData(chunk: Buffer): void {
    this.#wasActive = true;
    this.#received += chunk.length;
    if (this.#received > MAX_STREAMED_BODY_BYTES) {
      this.fail(failure("limit", `the body of ${safeUrl(this.#hop.url)} is too large`, true));
      return;
    }
    this.#handler?.onData(chunk);
  }

  #onEnd(request: ClientRequest, response: IncomingMessage): void {
    if (!response.complete) {
      this.#onError(request, new Error("it is not complete"));
      return;
    }
    const handler = this.#leave();
    // The server has said everything: what is still to be uploaded has no reader.
    if (!request.writableEnded) request.destroy();
    handler?.onEnd();
  }

  /** The end or an error came before; where neither did, this is one. */
  #onClose(request: ClientRequest): void {
    if (this.#handler !== undefined) this.#onError(request, new Error("the connection was closed"));
  }

  #onError(request: ClientRequest, error: NodeJS.ErrnoException): void {
    if (request !== this.#request || this.#handler === undefined) return;
    const response = this.#response;
    // All of it has arrived, and some waits to be read: what happens to the connection now changes nothing.
    if (response?.complete && !response.destroyed) return;
    if (response === undefined && this.#mayRepeat(request, error)) {
      this.#repeated = true;
      this.#send();
      return;
    }
    this.fail(this.#failureOf(error));
  }

  #mayRepeat(request: ClientRequest, { code }: NodeJS.ErrnoException): boolean {
    const isStale = request.reusedSocket && (code === "ECONNRESET" || code === "EPIPE");
    return isStale && !this.#repeated && REPEATABLE.has(this.#hop.method) && !(this.#body instanceof Readable);
  }

  /** True where it was a redirect, whatever came of it. */
  #followed(request: ClientRequest, response: IncomingMessage, status: number): boolean {
    const next = redirected(this.#hop, status, response.headers.location);
    if (next === undefined) return false;
    const isStream = this.#body instanceof Readable;
    const to = `HTTP ${status} to ${safeUrl(next.url)}`;
    if (this.#hops === MAX_REDIRECTS) {
      this.fail(failure("limit", `too many redirects: more than ${MAX_REDIRECTS}, the last was ${to}`, true));
    } else if (isStream && next.keepsBody) {
      const why = `${to} asks for the body again, which was streamed: send the request there`;
      this.fail(failure("redirect", why, true));
    } else {
      this.#hops++;
      if (!next.keepsBody) this.#dropBody();
      this.#hop = next;
      this.#request = undefined;
      // With nothing more to come, and nothing more to send, the connection can be used again.
      if (response.headers["content-length"] === "0" && request.writableEnded) response.resume();
      else request.destroy();
      this.#send();
    }
    return true;
  }

  #upload(request: ClientRequest, body: Readable): void {
    let sent = 0;
    const brokeOff = (error?: Error) => {
      if (request !== this.#request) return;
      const why = error === undefined ? "it was closed" : error.message;
      this.fail(failure("cancelled", `the upload broke off: ${why}`, this.#written));
    };
    if (body.destroyed) {
      queueMicrotask(brokeOff);
      return;
    }
    body.on("error", brokeOff);
    body.once("close", () => {
      if (!body.readableEnded) brokeOff();
    });
    body.once("end", () => request.end());
    request.on("drain", () => body.resume());
    // The server hears of the request before the first piece is there.
    request.flushHeaders();
    body.on("data", (chunk: Buffer) => {
      if (request !== this.#request || this.#handler === undefined) return;
      this.#wasActive = true;
      sent += chunk.length;
      if (sent > MAX_STREAMED_BODY_BYTES) {
        this.fail(failure("limit", `the body for ${safeUrl(this.#hop.url)} is too large`, this.#written));
      } else if (!request.write(chunk)) {
        body.pause();
      }
    });
  }

  #timeOut(timeoutMs: number): void {
    const late = this.#response === undefined ? "gave no answer" : "did not end its answer";
    this.fail(failure("timeout", `${safeUrl(this.#hop.url)} ${late} within ${timeoutMs} ms`, this.#written));
  }

  #failureOf(error: unknown): RequestFailure {
    const why = failureOf(error, this.#hop.url, this.#response !== undefined, this.#written);
    if (this.#hops === 0) return why;
    return { ...why, message: `${why.message} (after ${this.#hops} redirect${this.#hops === 1 ? "" : "s"})` };
  }

  /** Takes the handler away, so that exactly one of the ends is told. */
  #leave(): ResponseHandler | undefined {
    const handler = this.#handler;
    if (handler === undefined) return undefined;
    this.#handler = undefined;
    clearTimeout(this.#deadline);
    clearTimeout(this.#connecting);
    this.#dropBody();
    this.#context.left(this);
    return handler;
  }

  #dropBody(): void {
    const body = this.#body;
    this.#body = undefined;
    if (body instanceof Readable && !body.destroyed) body.destroy();
  }
}

/** Names and values in turn, with what the executor adds: as the exec-server does, and the length. */
function wireHeaders(hop: Hop, body: Buffer | Readable | undefined): string[] {
  const flat = ["host", hop.url.host];
  let accepts = false;
  for (const { name, value } of hop.headers) {
    if (name === "accept") accepts = true;
    flat.push(name, value);
  }
  if (!accepts) flat.push("accept", "*/*");
  if (body instanceof Readable) flat.push("transfer-encoding", "chunked");
  else if (body !== undefined) flat.push("content-length", String(body.length));
  else if (!BODILESS.has(hop.method)) flat.push("content-length", "0");
  return flat;
}

function headersOf(raw: readonly string[]): HttpHeader[] {
  const headers: HttpHeader[] = [];
  for (let i = 0; i < raw.length; i += 2) {
    headers.push({ name: (raw[i] as string).toLowerCase(), value: raw[i + 1] as string });
  }
  return headers;
}
