// A large reply as the JSON body of a response, written as it lies in memory. Small ones are copied next to their head.

import type { ServerResponse } from "node:http";
import { PiecedReply, replySize } from "../../protocol/arrived.js";
import { type BytesReply, spliceLatin1 } from "../../protocol/reply.js";
import type { EndpointLimits } from "../session/limits.js";

/** From here on a reply is written in pieces rather than copied. */
export const LARGE_ANSWER_BYTES = 64 * 1024;
/** An id that stands so near the beginning is written with what is before it. */
const HEAD_BYTES = 128;

export function isLarge(reply: BytesReply): boolean {
  return replySize(reply) >= LARGE_ANSWER_BYTES;
}

export function writeLarge(res: ServerResponse, reply: BytesReply, idText: string, limits: EndpointLimits): void {
  if (res.destroyed) return;
  const length = replySize(reply) - (reply.idEnd - reply.idStart) + Buffer.byteLength(idText);
  res.cork();
  res.writeHead(200, ["Content-Type", "application/json", "Content-Length", String(length)]);
  if (reply instanceof PiecedReply) {
    for (const piece of reply.under(idText)) res.write(piece);
  } else {
    const { bytes, idStart, idEnd } = reply;
    if (idStart <= HEAD_BYTES) res.write(spliceLatin1(reply, bytes.toString("latin1", 0, idEnd), idText), "latin1");
    else {
      res.write(bytes.subarray(0, idStart));
      res.write(idText);
    }
    res.write(bytes.subarray(idEnd));
  }
  // Written before the end: given to end(), it would go with one more piece, an empty one.
  res.uncork();
  res.end();
  // What the kernel took at once waits for nobody.
  if (res.writableLength > 0) res.setTimeout(limits.stallMs);
}
