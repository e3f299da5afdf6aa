// Passes a streamed reply on with back-pressure. A reply that breaks off breaks its connection off, too: a
// truncated body must never look like a whole one.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { EndpointLimits } from "../session/limits.js";
import { OneLine } from "../session/one-line.js";

/** What waits here for its reader before the reply is held up: some reads of the socket. */
const WAITING_BYTES = 256 * 1024;

/** The head of a JSON body; `size` where its length is known. */
export function jsonHeaders(size: number | undefined): string[] {
  const headers = ["Content-Type", "application/json"];
  if (size !== undefined) headers.push("Content-Length", String(size));
  return headers;
}

/** `tail` is what follows the body; where one is given, the body is put on one line. */
export function pipeBody(body: Readable, res: ServerResponse, limits: EndpointLimits, tail?: string): void {
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
    if (!res.write(chunk) && res.writableLength > WAITING_BYTES) source.pause();
  });
  res.on("drain", () => source.resume());
  source.on("end", () => res.end(tail));
  body.on("error", () => res.destroy());
  body.on("close", () => {
    // Closed without an end: whoever reads upstream gave up.
    if (!body.readableEnded) res.destroy();
  });
  res.on("close", () => body.destroy());
}

/** The whole of a streamed reply, where there is no way to pass it on; undefined if it is too large or breaks off. */
export async function collect(body: Readable, limit: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > limit) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks, size);
}
