// Decides what may be kept of a call, by the words of its request and of its reply. It is kept in response-cache.ts.

import { isUtf8 } from "node:buffer";
import type { OwnToolName } from "../contracts/names.js";
import { canonicalizeText, hashText } from "../protocol/canonical.js";
import { isObject } from "../protocol/jsonrpc.js";
import { locate, paramMembers, parseBytes, type RequestMessage } from "../protocol/message.js";
import type { BytesReply, Reply } from "../protocol/reply.js";
import type { Member } from "../protocol/scan.js";

/** Larger replies are rare, would push many small ones out, and have to be parsed to be kept. */
export const MAX_REPLY_BYTES = 1024 * 1024;

/** A reply that its server lets us keep. */
export interface FreshReply {
  readonly reply: BytesReply;
  /** The time that the server says, above 0. */
  readonly ttlMs: number;
  /** `public`: for everybody; `private`: for whom it was made. */
  readonly scope: "public" | "private";
  /** Where the ttl stands in the bytes: [ttlStart, ttlEnd). */
  readonly ttlStart: number;
  readonly ttlEnd: number;
}

/** What a server's request for input was answered with, and what asks for a task: nothing that has it is kept. */
const NOT_KEPT: ReadonlySet<string> = new Set(["inputResponses", "requestState", "task"]);

/** It says nothing of what is asked for: trace context, progress tokens, who is asking. */
const META = "_meta";

/**
 * The hash of what a request asks for: its method and its params, `name` as the server itself has it. Undefined where
 * no answer to it may be kept. Throws a Fault `invalid` for params with two members of one name, as they are never
 * sent.
 */
export function requestHash(message: RequestMessage, tool: OwnToolName | undefined): string | undefined {
  const counted: Member[] = [];
  for (const member of paramMembers(message)) {
    if (NOT_KEPT.has(member.key)) return undefined;
    if (member.key !== META && (tool === undefined || member.key !== "name")) counted.push(member);
  }
  counted.sort((a, b) => (a.key < b.key ? -1 : 1));
  let text = `${JSON.stringify([message.method, tool])}\n`;
  try {
    for (const { key, start } of counted) text += `${JSON.stringify(key)}:${canonicalizeText(message.text, start)}\n`;
  } catch {
    // A server may read it otherwise than we do: its answer would be kept for another request.
    return undefined;
  }
  return hashText(text);
}

const TTL = ["result", "ttlMs"];

/**
 * Undefined where the reply is not to be kept: an error, an interim result, one without a time, one that cost answers of
 * its agent, or one too large. `isMarked`: the config says that it may be. A legacy server's era has no such words, so
 * that its own are taken only where the operator said so too.
 */
export function freshReply(reply: Reply, isMarked: boolean): FreshReply | undefined {
  if (reply.kind !== "bytes" || (reply.era !== "modern" && !isMarked) || "afterRounds" in reply) return undefined;
  const { bytes } = reply;
  // Bytes that are no text would be counted otherwise than the text that we read.
  if (bytes.length > MAX_REPLY_BYTES || !bytes.includes('"ttlMs"') || !isUtf8(bytes)) return undefined;
  try {
    const message = parseBytes(bytes);
    if (message.kind !== "response" || message.error !== undefined || !isObject(message.result)) return undefined;
    const { resultType = "complete", isError = false, ttlMs, cacheScope } = message.result;
    if (resultType !== "complete" || isError !== false) return undefined;
    if (typeof ttlMs !== "number" || !Number.isFinite(ttlMs) || ttlMs <= 0) return undefined;
    const at = locate(message, TTL);
    if (at === undefined) return undefined;
    const ttlStart = Buffer.byteLength(message.text.slice(0, at.start));
    // What does not say that it may be shared may not.
    const scope = cacheScope === "public" ? "public" : "private";
    return { reply, ttlMs, scope, ttlStart, ttlEnd: ttlStart + at.end - at.start };
  } catch {
    return undefined;
  }
}

/** The reply as it is after `ageMs`: whoever keeps it further counts from when he got it. */
export function aged({ reply, ttlMs, ttlStart, ttlEnd }: FreshReply, ageMs: number): BytesReply {
  const left = Math.min(Number.MAX_SAFE_INTEGER, Math.max(0, Math.floor(ttlMs - ageMs)));
  const json = Buffer.from(String(left));
  const shift = ttlStart < reply.idStart ? json.length - (ttlEnd - ttlStart) : 0;
  return {
    ...reply,
    latin1: undefined,
    bytes: Buffer.concat([reply.bytes.subarray(0, ttlStart), json, reply.bytes.subarray(ttlEnd)]),
    idStart: reply.idStart + shift,
    idEnd: reply.idEnd + shift,
  };
}
