// fetch(), through an executor: real Requests in, real Responses out, errors as fetch has them. Redirects are followed
// here; the executor checks where each of them leads. Content encodings are taken off here: it hands a body on as it came.

import { pipeline, type Readable, Transform, type TransformCallback } from "node:stream";
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from "node:zlib";
import { MAX_REDIRECTS } from "../wire/limits.js";
import type { HttpHeader } from "../wire/protocol.js";
import { type Hop, redirected } from "../wire/redirect.js";
import { ExecutorError, type ExecutorRequest } from "../wire/types.js";
import { type Starter, streamedAnswer } from "./answers.js";

/** The global fetch's own shape. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>;

/** Answers that have no body, whatever comes. */
const NO_BODY = new Set([204, 205, 304]);
const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** What is decoded is given on as soon as it can be: an event stream may be compressed, too. */
const ZLIB = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
const BROTLI = { flush: constants.BROTLI_OPERATION_FLUSH, finishFlush: constants.BROTLI_OPERATION_FLUSH };

/** Encodings that are taken off one after the other. Nobody uses more than two, and each costs memory. */
const MAX_ENCODINGS = 5;

const DECODERS: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(ZLIB),
  "x-gzip": () => createGunzip(ZLIB),
  deflate: () => new Deflate(),
  br: () => createBrotliDecompress(BROTLI),
};

export async function executorFetch(
  starter: Starter,
  input: string | URL | Request,
  init: RequestInit = {},
): Promise<Response> {
  // Its constructor refuses what fetch refuses, with the same errors.
  const request = new Request(input, init);
  const signal = init.signal ?? (input instanceof Request ? input.signal : undefined);
  signal?.throwIfAborted();
  const url = new URL(request.url);
  if (url.protocol !== "http:" && url.protocol !== "https:") throw failed(new Error("unknown scheme"));
  const first: Hop = { method: request.method, url, headers: headersOf(request.headers, url) };
  const sent = await bodyOf(request, init);
  const { answer, hop } = await followed(starter, first, sent, request.redirect === "follow", signal);
  const { status, body } = answer;
  if (request.redirect === "error" && REDIRECTS.has(status)) {
    body.destroy();
    throw failed(new Error("unexpected redirect"));
  }
  if (status < 200 || status > 599) {
    body.destroy();
    throw failed(new Error(`the answer's status is ${status}`));
  }
  const headers = new Headers();
  for (const { name, value } of answer.headers) addHeader(headers, name, value);
  const isEmpty = NO_BODY.has(status) || request.method === "HEAD";
  // Its end is nothing to wait for, and frees what it holds.
  if (isEmpty) body.on("error", () => {}).resume();
  const response = new Response(isEmpty ? null : webBody(decodedBody(body, headers), signal), { status, headers });
  // A constructed Response has none.
  Object.defineProperty(response, "url", { value: withoutHash(hop.url) });
  Object.defineProperty(response, "redirected", { value: hop !== first });
  return response;
}

/**
 * The answer, and the request that it is the answer to. Redirects are followed here and not at the executor, which
 * does not say where they led: who reads an answer must know whose it is. The executor judges each URL as the first.
 */
async function followed(
  starter: Starter,
  first: Hop,
  firstBody: ExecutorRequest["body"],
  follows: boolean,
  signal: AbortSignal | null | undefined,
): Promise<{ readonly answer: Awaited<ReturnType<typeof streamedAnswer>>; readonly hop: Hop }> {
  let hop = first;
  let body = firstBody;
  for (let hops = 0; ; hops++) {
    const { method, headers } = hop;
    const answer = await streamedAnswer(
      starter,
      { method, url: withoutHash(hop.url), headers, body, redirect: "stop" },
      { signal: signal ?? undefined },
    ).catch((error: unknown) => {
      throw error instanceof ExecutorError ? failed(error) : error;
    });
    const location = answer.headers.find(({ name }) => name.toLowerCase() === "location")?.value;
    const next = follows ? redirected(hop, answer.status, location) : undefined;
    if (next === undefined) return { answer, hop };
    answer.body.on("error", () => {}).destroy();
    if (hops === MAX_REDIRECTS) throw failed(new Error("redirect count exceeded"));
    if (next.url.protocol !== "http:" && next.url.protocol !== "https:") {
      throw failed(new Error("URL scheme must be a HTTP(S) scheme"));
    }
    if (next.keepsBody && body instanceof WebBody) throw failed(new Error("a streamed body cannot be sent twice"));
    if (!next.keepsBody) body = undefined;
    hop = next;
  }
}

function withoutHash(url: URL): string {
  const plain = new URL(url);
  plain.hash = "";
  return plain.href;
}

/** What fetch adds where nobody says otherwise. */
function headersOf(headers: Headers, url: URL): HttpHeader[] {
  const list: HttpHeader[] = [];
  for (const [name, value] of headers) list.push({ name, value });
  if (!headers.has("accept")) list.push({ name: "accept", value: "*/*" });
  if (!headers.has("accept-encoding")) {
    list.push({ name: "accept-encoding", value: url.protocol === "https:" ? "br, gzip, deflate" : "gzip, deflate" });
  }
  if (!headers.has("user-agent")) list.push({ name: "user-agent", value: "toolway" });
  return list;
}

/** What is in memory anyway is sent with its length; a stream is sent as it comes. */
async function bodyOf(request: Request, init: RequestInit): Promise<ExecutorRequest["body"]> {
  if (request.body === null) return undefined;
  const isStream = init.body === undefined || init.body === null || init.body instanceof ReadableStream;
  return isStream ? new WebBody(request.body) : Buffer.from(await request.arrayBuffer());
}

/** A ReadableStream whose return() ends a read that waits; that of the stream's own iterator would wait for it. */
class WebBody implements AsyncIterable<Uint8Array> {
  readonly #stream: ReadableStream<Uint8Array>;

  constructor(stream: ReadableStream<Uint8Array>) {
    this.#stream = stream;
  }

  [Symbol.asyncIterator](): AsyncIterator<Uint8Array> {
    const reader = this.#stream.getReader();
    return {
      async next() {
        const { value, done } = await reader.read();
        if (done) return { value: undefined, done };
        if (!(value instanceof Uint8Array)) throw new TypeError("Received non-Uint8Array chunk");
        return { value, done: false };
      },
      async return() {
        await reader.cancel();
        return { value: undefined, done: true };
      },
    };
  }
}

/** A body that nobody can read any more is taken back, as the global fetch does. */
const forgotten = new FinalizationRegistry<Readable>((body) => body.destroy());

/** It is read on demand and no sooner, so that an error cannot overtake what came before it. */
function webBody(body: Readable, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const iterator: AsyncIterator<Buffer> = body[Symbol.asyncIterator]();
  // An error that comes before the first read is told there.
  body.on("error", () => {});
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { value, done } = await iterator.next();
          if (done === true) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (signal?.aborted === true) throw signal.reason;
          throw new TypeError("terminated", { cause: error });
        }
      },
      cancel() {
        body.destroy();
      },
    },
    { highWaterMark: 0 },
  );
  forgotten.register(stream, body);
  return stream;
}

/** Leaves out what fetch's Headers cannot hold, as no program could have read it. */
function addHeader(headers: Headers, name: string, value: string): void {
  try {
    headers.append(name, value);
  } catch {
    // It is left out.
  }
}

function failed(cause: Error): TypeError {
  return new TypeError("fetch failed", { cause });
}

/** Returns the body itself where an encoding is not known: who asked for it can read it. */
function decodedBody(body: Readable, headers: Headers): Readable {
  const names = (headers.get("content-encoding") ?? "")
    .toLowerCase()
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "" && name !== "identity");
  if (names.length === 0 || names.length > MAX_ENCODINGS) return body;
  const makers = names.map((name) => DECODERS[name]);
  if (!makers.every((make) => make !== undefined)) return body;
  let decoded = body;
  // The last that was put on is the first to be taken off. An error of one destroys all of them.
  for (const make of makers.reverse()) decoded = pipeline(decoded, make(), () => {});
  return decoded;
}

/** Deflate with zlib's header, or without as some servers send it: the first byte tells. */
class Deflate extends Transform {
  #inflate: Transform | undefined;

  override _transform(chunk: Buffer, _encoding: BufferEncoding, callback: TransformCallback): void {
    if (chunk.length === 0) {
      callback();
      return;
    }
    this.#inflate ??= this.#begin(chunk[0] as number);
    this.#inflate.write(chunk, callback);
  }

  override _flush(callback: TransformCallback): void {
    if (this.#inflate === undefined) {
      callback();
      return;
    }
    this.#inflate.once("end", () => callback());
    this.#inflate.end();
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#inflate?.destroy();
    callback(error);
  }

  override _read(size: number): void {
    this.#inflate?.resume();
    super._read(size);
  }

  #begin(first: number): Transform {
    const inflate = (first & 0x0f) === 8 ? createInflate(ZLIB) : createInflateRaw(ZLIB);
    inflate.on("data", (data: Buffer) => {
      if (!this.push(data)) inflate.pause();
    });
    inflate.on("error", (error) => this.destroy(error));
    return inflate;
  }
}
