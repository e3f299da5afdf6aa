// What `error_type` says of a failure: the JSON-RPC code of a server's error, `tool_error`, or the fault of ours. Pure.

import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { CallRecord } from "../call-record.js";
import { UNKNOWN } from "../known-methods.js";
import { errorType, isFailure } from "../outcome.js";

/** A session that is not known, an address that a person must open first, and the errors that the modern era added. */
const OF_MCP = [-32001, -32042, -32020, -32021, -32022];

/** Codes of the specifications. Servers make up others, without end. */
const CODES: ReadonlyMap<number, string> = new Map(
  [...Object.values(ErrorCode), ...OF_MCP].map((code) => [code, String(code)]),
);

/** Undefined where nothing failed. */
export function errorTypeOf({ outcome, errorCode }: CallRecord): string | undefined {
  if (outcome === "ok") return undefined;
  if (outcome === "rpc-error") return CODES.get(errorCode) ?? UNKNOWN;
  return isFailure(outcome) ? errorType(outcome) : undefined;
}
