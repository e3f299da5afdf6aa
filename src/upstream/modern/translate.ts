// What is changed in a message where agent and server are of different eras: a modern agent's request for a legacy
// server, and a modern server's error for a legacy agent.

import { replySize } from "../../protocol/arrived.js";
import { ErrorCode, isObject } from "../../protocol/jsonrpc.js";
import type { HopChanges } from "../../protocol/message.js";
import { Meta } from "../../protocol/modern.js";
import { type Reply, responseOf } from "../../protocol/reply.js";

/** Errors are short; what is longer passes as it is. */
const MAX_ERROR_BYTES = 64 * 1024;

/**
 * A modern agent's message loses what it says of its sender, which the legacy era says at the handshake. The rest of
 * `_meta` (a progress token, trace context, what we do not know) stays as it was written.
 */
export const WITHOUT_SENDER: HopChanges = {
  meta: [Meta.version, Meta.capabilities, Meta.clientInfo, Meta.logLevel].map((key) => [key, undefined]),
};

/**
 * A modern server's error as a legacy agent reads it: that era has a code of its own for a missing resource. Only an
 * error that names the URI is about a missing resource: -32602 is for all other bad parameters too.
 */
export function toLegacyError(reply: Reply): Reply {
  if (reply.kind !== "bytes" || replySize(reply) > MAX_ERROR_BYTES) return reply;
  if (!reply.bytes.includes(String(ErrorCode.invalidParams))) return reply;
  const error = responseOf(reply)?.error;
  const namesUri =
    error?.code === ErrorCode.invalidParams && isObject(error.data) && typeof error.data["uri"] === "string";
  return error !== undefined && namesUri
    ? { kind: "error", error: { ...error, code: ErrorCode.resourceNotFound } }
    : reply;
}
