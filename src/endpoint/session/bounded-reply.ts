// Replies that are held in memory as a whole: their bound, and what is said in place of one that is over it or that
// broke off. Both transports and both eras write by this.

import type { Readable } from "node:stream";
import { replySize } from "../../protocol/arrived.js";
import { Fault, toRpcError } from "../../protocol/errors.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { type HeldBytes, type Holder, NO_ROOM } from "../../runtime/memory/held-bytes.js";
import { MIB } from "../../runtime/sizes.js";
import type { EndpointLimits } from "./limits.js";

type ErrorReply = Extract<Reply, { kind: "error" }>;

/** What a reply that streams has in memory before its reader has taken anything: its beginning, and a few reads. */
const STREAM_HELD_BYTES = 3 * MIB;

/** The reply, or the error that stands in for one that is over the limit, or for which there is no room. */
export function bounded<R extends Reply>(
  reply: R,
  { outputBytes }: EndpointLimits,
  held: HeldBytes,
  owner: string,
): R | ErrorReply {
  if (reply.kind === "bytes") {
    const size = replySize(reply);
    if (size > outputBytes) return limited(`The reply has ${size} bytes; the limit is ${outputBytes}.`);
    if (!held.fits(owner, size)) return limited(`The reply of ${size} bytes was not passed on: ${noRoom(size, held)}`);
  } else if (reply.kind === "stream" && !held.fits(owner, STREAM_HELD_BYTES)) {
    reply.open("0").destroy();
    return limited(`The reply was not passed on: ${NO_ROOM}`);
  }
  return reply;
}

function noRoom(size: number, { limit, most }: HeldBytes): string {
  if (size <= most) return NO_ROOM;
  return `with limits.heldBytes at ${limit} there is never room for more than ${most} at once. Ask for less, or have limits.heldBytes raised.`;
}

function limited(message: string): ErrorReply {
  return { kind: "error", error: toRpcError(new Fault("limit", message)) };
}

/** What follows a streamed reply that broke off, where its connection goes on. */
export function brokenOff(idText: string): Buffer {
  const fault = new Fault("outcome-unknown", "The reply broke off on its way. The call may have taken effect.");
  return renderReply({ kind: "error", error: toRpcError(fault) }, idText);
}

/**
 * The whole of a streamed reply, where there is no way to pass it on; undefined if it is too large, finds no room or
 * breaks off. It is counted by `holder` until it is given.
 */
export async function collect(body: Readable, limit: number, holder: Holder): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > limit || !holder.hold(size)) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  } finally {
    holder.release();
  }
  return Buffer.concat(chunks, size);
}
