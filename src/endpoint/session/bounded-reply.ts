// Replies that are held in memory as a whole: their bound, and what is said in place of one that is over it or that
// broke off. Both transports and both eras write by this.

import type { Readable } from "node:stream";
import { replySize } from "../../protocol/arrived.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import type { EndpointLimits } from "./limits.js";

type ErrorReply = Extract<Reply, { kind: "error" }>;

/** The reply, or the error that stands in for one that is over the limit. */
export function bounded<R extends Reply>(reply: R, { outputBytes }: EndpointLimits): R | ErrorReply {
  if (reply.kind !== "bytes" || replySize(reply) <= outputBytes) return reply;
  const fault = new Fault("limit", `The reply has ${replySize(reply)} bytes; the limit is ${outputBytes}.`);
  return { kind: "error", error: toRpcError(fault) };
}

/** What follows a streamed reply that broke off, where its connection goes on. */
export function brokenOff(idText: string): Buffer {
  const fault = new Fault("outcome-unknown", "The reply broke off on its way. The call may have taken effect.");
  return renderReply({ kind: "error", error: toRpcError(fault) }, idText);
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
