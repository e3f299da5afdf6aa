// What leaves as the answer to an HTTP request: replies as a JSON body or as the last event of a stream, refusals with
// their reasons, and small bodies. A response is never ended while it is corked: Node 22 and 24 send the last chunk
// before what was corked.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { PiecedReply, replySize, spliced } from "../../protocol/arrived.js";
import { ErrorCode } from "../../protocol/jsonrpc.js";
import {
  type BytesReply,
  PreparedReply,
  type Reply,
  renderReply,
  type StreamReply,
  spliceLatin1,
} from "../../protocol/reply.js";
import { KIB } from "../../runtime/sizes.js";
import { OneLine, oneLineBytes } from "../session/one-line.js";
import { cutConnection } from "./queued-answers.js";
import type { SlowReaders } from "./slow-readers.js";
import { EVENT_END, eventHead } from "./sse.js";

/** From here on a reply has its time to be read, and is not read for its status. */
const LARGE_BYTES = 64 * KIB;
/** An id that stands so near the beginning is written with what is before it. */
const HEAD_BYTES = 128;
/** What waits here for its reader before the reply is held up: some reads of the socket. */
const WAITING_BYTES = 256 * KIB;

export function isLarge(reply: BytesReply): boolean {
  return replySize(reply) >= LARGE_BYTES;
}

/** Writes a reply of `owner` as a JSON body. A large or a streamed reply is never anything but 200. */
export function writeReply(
  res: ServerResponse,
  reply: Reply,
  idText: string,
  readers: SlowReaders,
  owner: string,
  status = 200,
): void {
  if (reply.kind === "stream") {
    const size = reply.size?.(idText);
    const body = reply.open(idText);
    if (res.destroyed) {
      body.destroy();
      return;
    }
    res.writeHead(200, jsonHeaders(size));
    pipeBody(body, res, readers, owner);
  } else if (res.destroyed) return;
  else if (reply.kind === "bytes" && reply.latin1 !== undefined) {
    sendLatin1(res, status, spliceLatin1(reply, reply.latin1, idText));
    watchReader(res, readers, owner);
  } else if (reply.kind === "bytes" && liesAlone(reply)) writeBytes(res, status, reply, idText, readers, owner);
  else sendBytes(res, status, renderReply(reply, idText), readers, owner);
}

/** Writes a reply as the last event of a stream that has begun. */
export function writeReplyEvent(
  res: ServerResponse,
  reply: Reply,
  idText: string,
  readers: SlowReaders,
  owner: string,
): void {
  if (reply.kind === "stream") {
    const body = reply.open(idText);
    if (res.destroyed) {
      body.destroy();
      return;
    }
    res.write(eventHead(undefined));
    pipeBody(body, res, readers, owner, EVENT_END);
    return;
  }
  if (res.destroyed) return;
  res.cork();
  res.write(eventHead(undefined));
  for (const piece of piecesOf(reply, idText)) res.write(oneLineBytes(piece));
  res.write(EVENT_END);
  res.uncork();
  res.end();
  watchReader(res, readers, owner);
}

/** The reply as it lies in memory where it is large, else as one piece. */
function piecesOf(reply: Exclude<Reply, StreamReply>, idText: string): Buffer[] {
  return reply.kind === "bytes" && isLarge(reply) ? spliced(reply, idText) : [renderReply(reply, idText)];
}

/** What is written already cannot be taken back: where there is no room for it, the connection is cut. */
function watchReader(res: ServerResponse, readers: SlowReaders, owner: string): void {
  const waiting = res.writableLength;
  // What the kernel took at once waits for nobody.
  if (waiting === 0) return;
  if (!readers.watch(res, owner)) cutConnection(res);
  else if (waiting >= LARGE_BYTES) res.setTimeout(readers.limits.stallMs);
}

function jsonHeaders(size: number | undefined): string[] {
  const headers = ["Content-Type", "application/json"];
  if (size !== undefined) headers.push("Content-Length", String(size));
  return headers;
}

/** Sends a body of JSON that is whole. */
export function sendBytes(
  res: ServerResponse,
  status: number,
  bytes: Buffer,
  readers: SlowReaders,
  owner: string,
): void {
  if (res.destroyed) return;
  res.writeHead(status, jsonHeaders(bytes.length));
  res.end(bytes);
  watchReader(res, readers, owner);
}

/**
 * Sends a short body of JSON that is given a character a byte. It leaves together with the head, as one string in one
 * write: given to end() it would be two pieces, of which one is empty, and Node would gather them anew.
 */
function sendLatin1(res: ServerResponse, status: number, text: string): void {
  res.writeHead(status, ["Content-Type", "application/json", "Content-Length", String(text.length)]);
  res.cork();
  res.write(text, "latin1");
  res.uncork();
  res.end();
}

/**
 * Whether a reader that is slow would hold little else by it: what is a part of a longer read is copied out, so that only
 * what is counted is held.
 */
function liesAlone(reply: BytesReply): boolean {
  return isLarge(reply) || reply.bytes.buffer.byteLength <= 2 * reply.bytes.length;
}

/** Writes a reply as it lies in memory: to copy it next to its head would cost more than to write one more piece. */
function writeBytes(
  res: ServerResponse,
  status: number,
  reply: BytesReply,
  idText: string,
  readers: SlowReaders,
  owner: string,
): void {
  const length = replySize(reply) - (reply.idEnd - reply.idStart) + Buffer.byteLength(idText);
  res.cork();
  res.writeHead(status, jsonHeaders(length));
  if (reply instanceof PiecedReply) {
    for (const piece of reply.under(idText)) res.write(piece);
    // A response that is cut off never finishes: what it held is the collector's.
    res.once("finish", () => reply.written());
  } else if (reply instanceof PreparedReply) {
    res.write(reply.headOf(idText));
    res.write(reply.behind);
  } else {
    const { bytes, idStart, idEnd } = reply;
    if (idStart <= HEAD_BYTES) res.write(spliceLatin1(reply, bytes.toString("latin1", 0, idEnd), idText), "latin1");
    else {
      res.write(bytes.subarray(0, idStart));
      res.write(idText);
    }
    res.write(bytes.subarray(idEnd));
  }
  // It is written before the end: given to end(), it would go with one more piece, an empty one.
  res.uncork();
  res.end();
  watchReader(res, readers, owner);
}

/**
 * Passes a streamed reply on with back-pressure. One that breaks off breaks its connection off, too: a truncated body
 * must never look like a whole one. `tail` is what follows the body; where one is given, the body is put on one line.
 */
export function pipeBody(
  body: Readable,
  res: ServerResponse,
  readers: SlowReaders,
  owner: string,
  tail?: string,
): void {
  const { limits } = readers;
  let passed = 0;
  const source = tail === undefined ? body : body.pipe(new OneLine());
  res.setTimeout(limits.stallMs);
  source.on("data", (chunk: Buffer) => {
    passed += chunk.length;
    if (passed > limits.streamedBytes) {
      res.destroy();
      return;
    }
    // write() says no to any chunk of a socket's size, also where the kernel has taken it.
    if (!res.write(chunk) && res.writableLength > WAITING_BYTES) {
      source.pause();
      if (!readers.watch(res, owner)) cutConnection(res);
    }
  });
  res.on("drain", () => source.resume());
  source.on("end", () => res.end(tail));
  body.on("error", () => res.destroy());
  body.on("close", () => {
    // It closed without an end: whoever reads upstream gave up.
    if (!body.readableEnded) res.destroy();
  });
  res.on("close", () => body.destroy());
}

/** Sends a small body of JSON, unless something has been answered already. */
export function sendJson(res: ServerResponse, status: number, body: string, headers: readonly string[] = []): void {
  if (res.headersSent || res.destroyed) return;
  const bytes = Buffer.from(body);
  const length = String(bytes.length);
  res.writeHead(status, ["Content-Type", "application/json", "Content-Length", length, ...headers]);
  res.end(bytes);
}

/** Sends a JSON-RPC error. `id` is the JSON text of the request's id, where there is one. */
export function refuse(
  res: ServerResponse,
  status: number,
  code: number,
  message: string,
  headers: readonly string[] = [],
  id = "null",
): void {
  const error = JSON.stringify({ code, message });
  sendJson(res, status, `{"jsonrpc":"2.0","id":${id},"error":${error}}`, headers);
}

export function refuseMethod(res: ServerResponse, allow: string): void {
  refuse(res, 405, ErrorCode.invalidRequest, `Use ${allow} here.`, ["Allow", allow]);
}

const ACCEPTED: string[] = ["Content-Length", "0"];

/** Answers notifications and responses: they were taken in, and there is nothing to say. */
export function accepted(res: ServerResponse): void {
  if (res.headersSent || res.destroyed) return;
  res.writeHead(202, ACCEPTED);
  res.end();
}
