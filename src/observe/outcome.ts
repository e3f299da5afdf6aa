// What came of a call, read from its reply: for spans and the records of calls.

import { PiecedReply, replySize } from "../protocol/arrived.js";
import type { FaultCode } from "../protocol/errors.js";
import { isObject, isRpcError } from "../protocol/jsonrpc.js";
import type { BytesReply, Reply } from "../protocol/reply.js";
import type { CallRecord } from "./call-record.js";

/** `rpc-error`: the server answered with an error; `tool-error`: with a result that says `isError`. */
export type Outcome = "ok" | "tool-error" | "rpc-error" | FaultCode | "internal";

/** Taking a call back is no failure of anything. */
export function isFailure(outcome: Outcome): boolean {
  return outcome !== "ok" && outcome !== "cancelled";
}

/** Words of ours, as labels and attributes have them; there are as many as codes of faults. */
const WORDS = new Map<string, string>();

/** A code of a fault with `_` for `-`. */
export function errorType(word: string | undefined): string | undefined {
  if (word === undefined) return undefined;
  let type = WORDS.get(word);
  if (type === undefined) {
    type = word.replaceAll("-", "_");
    WORDS.set(word, type);
  }
  return type;
}

/** Larger replies are results that are too dear to look into: errors are small. */
const MAX_READ_BYTES = 64 * 1024;

/** Up to here the whole reply is searched; of longer ones the ends: a search costs for every quote. */
const MAX_SEARCHED_BYTES = 4 * 1024;

/** The fixed words, an id, and some white space. */
const HEAD_BYTES = 128;
/** The end of a result, its `_meta`, and an id behind it. */
const TAIL_BYTES = 512;

/** Sets `outcome`, `errorCode` and `refusedBy`. */
export function readOutcome(reply: Reply, record: CallRecord): void {
  record.errorCode = 0;
  record.refusedBy = undefined;
  switch (reply.kind) {
    case "error":
      record.refusedBy = reply.fault?.rule;
      record.outcome = reply.fault?.code ?? "rpc-error";
      if (reply.fault === undefined) record.errorCode = reply.error.code;
      return;
    case "result":
      record.outcome = ofResult(reply.result);
      return;
    case "stream":
      record.outcome = "ok";
      return;
    case "bytes":
      readBytes(reply, record);
  }
}

function readBytes(reply: BytesReply, record: CallRecord): void {
  if (reply.errorCode !== undefined) {
    record.outcome = "rpc-error";
    record.errorCode = reply.errorCode;
    return;
  }
  record.outcome = "ok";
  if (reply.succeeded === true) return;
  const size = replySize(reply);
  if (size > MAX_READ_BYTES) return;
  // Most have neither word, and need not be parsed.
  const text = size <= MAX_SEARCHED_BYTES ? (reply.latin1 ?? reply.bytes.toString("latin1")) : endsOf(reply);
  if (text.includes('"error"') || text.includes('"isError"')) readWhole(reply.bytes, record);
}

/** Where servers write that something failed: an error begins the message, `isError` ends the result. */
function endsOf(reply: BytesReply): string {
  const { first, last } = reply instanceof PiecedReply ? reply : { first: reply.bytes, last: reply.bytes };
  const tail = last.length < TAIL_BYTES ? reply.bytes : last;
  return first.toString("latin1", 0, HEAD_BYTES) + tail.toString("latin1", tail.length - TAIL_BYTES);
}

function readWhole(bytes: Buffer, record: CallRecord): void {
  try {
    const message: unknown = JSON.parse(bytes.toString());
    if (!isObject(message)) record.outcome = "protocol";
    else if ("error" in message) {
      record.outcome = "rpc-error";
      record.errorCode = isRpcError(message["error"]) ? message["error"].code : 0;
    } else record.outcome = ofResult(message["result"]);
  } catch {
    record.outcome = "protocol";
  }
}

function ofResult(result: unknown): Outcome {
  return isObject(result) && result["isError"] === true ? "tool-error" : "ok";
}
