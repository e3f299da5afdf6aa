// What `error_type` says of a failure: the JSON-RPC code of a server's error, `tool_error`, or the fault of ours. Pure.

import { ErrorCode } from "../../protocol/jsonrpc.js";
import type { CallRecord } from "../call-record.js";
import { isFailure } from "../traces.js";

export const UNKNOWN = "_OTHER";

/** A session that is not known, an address that a person must open first, and the errors that the modern era added. */
const OF_MCP = [-32001, -32042, -32020, -32021, -32022];

/** Codes of the specifications. Servers make up others, without end. */
const CODES: ReadonlyMap<number, string> = new Map(
  [...Object.values(ErrorCode), ...OF_MCP].map((code) => [code, String(code)]),
);

/** Words of ours, as labels have them; there are as many as fault codes. */
const WORDS = new Map<string, string>();

/** Undefined where nothing failed. */
export function errorTypeOf({ outcome, errorCode }: CallRecord): string | undefined {
  if (outcome === "ok") return undefined;
  if (outcome === "rpc-error") return CODES.get(errorCode) ?? UNKNOWN;
  return isFailure(outcome) ? errorType(outcome) : undefined;
}

/** A code of a fault with `_` for `-`. */
export function errorType<T extends string | undefined>(word: T): string | undefined {
  if (word === undefined) return undefined;
  let label = WORDS.get(word);
  if (label === undefined) {
    label = word.replaceAll("-", "_");
    WORDS.set(word, label);
  }
  return label;
}
