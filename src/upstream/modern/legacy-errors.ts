// A modern server's error as a legacy agent reads it: the older era has a code of its own for a missing resource.

import { replySize } from "../../protocol/arrived.js";
import { ErrorCode, isObject } from "../../protocol/jsonrpc.js";
import { parseMessage } from "../../protocol/message.js";
import { type Reply, renderReply } from "../../protocol/reply.js";

/** Errors are short; what is longer passes as it is. */
const MAX_ERROR_BYTES = 64 * 1024;

/** Only an error that names the URI is about a missing resource: -32602 is for all other bad parameters too. */
export function toLegacyError(reply: Reply): Reply {
  if (reply.kind !== "bytes" || replySize(reply) > MAX_ERROR_BYTES) return reply;
  if (!reply.bytes.includes(String(ErrorCode.invalidParams))) return reply;
  try {
    const message = parseMessage(renderReply(reply, "0").toString());
    const error = message.kind === "response" ? message.error : undefined;
    const names =
      error?.code === ErrorCode.invalidParams && isObject(error.data) && typeof error.data["uri"] === "string";
    return error !== undefined && names
      ? { kind: "error", error: { ...error, code: ErrorCode.resourceNotFound } }
      : reply;
  } catch {
    return reply;
  }
}
