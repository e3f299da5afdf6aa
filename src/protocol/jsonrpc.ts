// The words of JSON-RPC 2.0 as MCP uses them. No parsing (message.ts), no policy.

import { isObject } from "../runtime/words/json-object.js";

export { isObject } from "../runtime/words/json-object.js";

export type RpcId = string | number;

export interface RpcError {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}

export type JsonObject = { [key: string]: unknown };

/** Codes of JSON-RPC and MCP. Codes of our own are in errors.ts. */
export const ErrorCode = {
  parse: -32700,
  invalidRequest: -32600,
  methodNotFound: -32601,
  invalidParams: -32602,
  internal: -32603,
  /** 2025-11-25 and older: resources/read of a URI that nobody has. */
  resourceNotFound: -32002,
} as const;

export function isRpcError(value: unknown): value is RpcError {
  return isObject(value) && typeof value["code"] === "number" && typeof value["message"] === "string";
}
