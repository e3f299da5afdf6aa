// What came of a call, read from its reply: for spans and the records of calls.

import { PiecedReply, replySize } from "../protocol/arrived.js";
import { isObject } from "../protocol/jsonrpc.js";
import type { BytesReply, Reply } from "../protocol/reply.js";
import type { Outcome } from "./traces.js";

/** Larger replies are results that are too dear to look into: errors are small. */
const MAX_READ_BYTES = 64 * 1024;

/** Up to here the whole reply is searched; of longer ones the ends: a search costs for every quote. */
const MAX_SEARCHED_BYTES = 4 * 1024;

/** The fixed words, an id, and some white space. */
const HEAD_BYTES = 128;
/** The end of a result, its `_meta`, and an id behind it. */
const TAIL_BYTES = 512;

export function outcomeOf(reply: Reply): Outcome {
  switch (reply.kind) {
    case "error":
      return reply.fault?.code ?? "rpc-error";
    case "result":
      return ofResult(reply.result);
    case "stream":
      return "ok";
    case "bytes":
      return ofBytes(reply);
  }
}

function ofBytes(reply: BytesReply): Outcome {
  if (reply.errorCode !== undefined) return "rpc-error";
  const size = replySize(reply);
  if (size > MAX_READ_BYTES) return "ok";
  // Most have neither word, and need not be parsed.
  const text = size <= MAX_SEARCHED_BYTES ? (reply.latin1 ?? reply.bytes.toString("latin1")) : endsOf(reply);
  return text.includes('"error"') || text.includes('"isError"') ? ofMessage(reply.bytes) : "ok";
}

/** Where servers write that something failed: an error begins the message, `isError` ends the result. */
function endsOf(reply: BytesReply): string {
  const { first, last } = reply instanceof PiecedReply ? reply : { first: reply.bytes, last: reply.bytes };
  const tail = last.length < TAIL_BYTES ? reply.bytes : last;
  return first.toString("latin1", 0, HEAD_BYTES) + tail.toString("latin1", tail.length - TAIL_BYTES);
}

function ofMessage(bytes: Buffer): Outcome {
  try {
    const message: unknown = JSON.parse(bytes.toString());
    if (!isObject(message)) return "protocol";
    return "error" in message ? "rpc-error" : ofResult(message["result"]);
  } catch {
    return "protocol";
  }
}

function ofResult(result: unknown): Outcome {
  return isObject(result) && result["isError"] === true ? "tool-error" : "ok";
}
