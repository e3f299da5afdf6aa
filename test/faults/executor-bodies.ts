// Bodies whose every byte can be told from its neighbours, a server that gives and takes them, and who checks them: what
// the fault runs of executors send through.

import { createHash } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ExecutorClient } from "../../src/executor/client/connect.js";
import { listenOnLoopback } from "../fixtures/loopback.js";

/** A prime: no piece of a power of two can be left out, or come twice, and leave the rest in its place. */
const PERIOD = 65_521;
const PIECE = 64 * 1024;

/** Two periods one after the other, so that a whole one can be cut out anywhere. */
const TABLE = Buffer.alloc(2 * PERIOD);
for (let i = 0, state = 1; i < PERIOD; i++) {
  state = Math.imul(state, 48_271) % 0x7fffffff;
  TABLE[i] = state >>> 7;
  TABLE[i + PERIOD] = state >>> 7;
}

const startOf = (seed: number, offset: number): number => (offset + seed * 977) % PERIOD;

/** Up to `length` bytes of the body `seed`, from `offset` on. */
function part(seed: number, offset: number, length: number): Buffer {
  const start = startOf(seed, offset);
  return TABLE.subarray(start, start + Math.min(length, PERIOD));
}

/** A body that is made as it is taken. */
export async function* body(seed: number, bytes: number, piece = PIECE): AsyncGenerator<Buffer> {
  for (let offset = 0; offset < bytes; ) {
    const next = part(seed, offset, Math.min(piece, bytes - offset));
    offset += next.length;
    yield next;
  }
}

/** Holds what comes against what must come; throws at the first byte that is another. */
export class Checker {
  readonly #seed: number;
  bytes = 0;

  constructor(seed: number) {
    this.#seed = seed;
  }

  take(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const expected = part(this.#seed, this.bytes, chunk.length - at);
      if (expected.compare(chunk, at, at + expected.length) !== 0) {
        throw new Error(`Body ${this.#seed} has other bytes than it should from ${this.bytes} on.`);
      }
      at += expected.length;
      this.bytes += expected.length;
    }
  }
}

export interface Origin {
  /** Gives the body. */
  bodyUrl(seed: number, bytes: number): string;
  /** Takes a body, and answers with what it was: see digestOf(). */
  readonly uploadUrl: string;
  readonly port: number;
  /** Requests under way. */
  readonly open: number;
  /** Bytes of bodies that it has begun to send: what was taken from it, and what its own sockets hold. */
  readonly given: number;
  close(): Promise<void>;
}

export async function startOrigin(): Promise<Origin> {
  let open = 0;
  let given = 0;
  const server = createServer((request, response) => {
    open++;
    response.on("close", () => {
      open--;
    });
    void (request.method === "POST"
      ? takeBody(request, response)
      : giveBody(request, response, (bytes) => {
          given += bytes;
        }));
  });
  const port = await listenOnLoopback(server);
  return {
    bodyUrl: (seed, bytes) => `http://127.0.0.1:${port}/${seed}/${bytes}`,
    uploadUrl: `http://127.0.0.1:${port}/`,
    port,
    get open() {
      return open;
    },
    get given() {
      return given;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

async function giveBody(
  request: IncomingMessage,
  response: ServerResponse,
  gives: (bytes: number) => void,
): Promise<void> {
  const [seed = 0, bytes = 0] = (request.url ?? "").split("/").slice(1).map(Number);
  // Some say how long they are, others do not: both ways of an HTTP body.
  if (seed % 2 === 0) response.setHeader("content-length", bytes);
  // A reader that goes away is what these runs are about.
  const counted = async function* (pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const piece of pieces) {
      gives(piece.length);
      yield piece;
    }
  };
  await pipeline(Readable.from(counted(body(seed, bytes))), response).catch(() => {});
}

async function takeBody(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const hash = createHash("sha256");
  let bytes = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      hash.update(chunk);
      bytes += chunk.length;
    }
  } catch {
    // It broke off: nobody waits for an answer.
    return;
  }
  response.end(`${bytes} ${hash.digest("hex")}`);
}

export async function digestOf(seed: number, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  for await (const piece of body(seed, bytes)) hash.update(piece);
  return `${bytes} ${hash.digest("hex")}`;
}

/** How a request ended. `short` is the one that must never be: a clean end before the body's. */
export type Outcome = "complete" | "short" | { readonly error: Error };

/** Reads a body, checks every byte. Rejects where one is wrong. */
export async function download(client: ExecutorClient, origin: Origin, seed: number, bytes: number): Promise<Outcome> {
  const checker = new Checker(seed);
  let chunks: AsyncIterable<Buffer>;
  try {
    chunks = (await client.requestStream({ method: "GET", url: origin.bodyUrl(seed, bytes), headers: [] })).body;
  } catch (error) {
    return { error: error as Error };
  }
  let wrong: unknown;
  try {
    for await (const chunk of chunks) {
      try {
        checker.take(chunk);
      } catch (error) {
        wrong = error;
        break;
      }
    }
  } catch (error) {
    return { error: error as Error };
  }
  if (wrong !== undefined) throw wrong;
  return checker.bytes === bytes ? "complete" : "short";
}

/** Sends a body in pieces. Rejects where the server got another one than was sent, and said that it was whole. */
export async function upload(client: ExecutorClient, origin: Origin, seed: number, bytes: number): Promise<Outcome> {
  let said: string;
  try {
    const request = { method: "POST", url: origin.uploadUrl, headers: [], body: body(seed, bytes, 10_000) };
    said = (await client.request(request)).body.toString();
  } catch (error) {
    return { error: error as Error };
  }
  return said === (await digestOf(seed, bytes)) ? "complete" : "short";
}
