// What came of a call, read from its reply: for spans, so only where calls are traced.

import { isObject } from "../protocol/jsonrpc.js";
import type { Reply } from "../protocol/reply.js";
import type { Outcome } from "./traces.js";

/** Larger replies are results that are too dear to look into: errors are small. */
const MAX_READ_BYTES = 64 * 1024;

export function outcomeOf(reply: Reply): Outcome {
  switch (reply.kind) {
    case "error":
      return reply.fault?.code ?? "rpc-error";
    case "result":
      return ofResult(reply.result);
    case "stream":
      return "ok";
    case "bytes": {
      const { bytes } = reply;
      if (bytes.length > MAX_READ_BYTES) return "ok";
      // Most have neither word, and need not be parsed.
      if (!bytes.includes('"error"') && !bytes.includes('"isError"')) return "ok";
      return ofMessage(bytes);
    }
  }
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
