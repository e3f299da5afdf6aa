// What a gateway answers to a call that was passed to it when it no longer runs the server: nothing of it was begun, so whoever
// passed it on passes it to the next.

import { Buffer } from "node:buffer";
import type { RpcError } from "../../protocol/jsonrpc.js";

const MARK = "toolway/moved";
/** No answer that says so is longer. */
const MAX_BYTES = 512;
const MARKED = Buffer.from(`"${MARK}":true`);

/** Of no meaning to anybody else. */
const CODE = -32_099;

export const MOVED: RpcError = {
  code: CODE,
  message: "Another gateway runs this server by now.",
  data: { [MARK]: true },
};

/** The id of the request that was answered so; undefined for every other line. */
export function movedId(line: Buffer): number | undefined {
  if (line.length > MAX_BYTES || !line.includes(MARKED)) return undefined;
  try {
    const { id, error } = JSON.parse(line.toString()) as { id?: unknown; error?: { code?: unknown } };
    return typeof id === "number" && error?.code === CODE ? id : undefined;
  } catch {
    return undefined;
  }
}
