// The words of the modern era (2026-07-28): what every request carries in `_meta`, header values, error codes.

import { ErrorCode, isObject, type JsonObject, type RpcError } from "./jsonrpc.js";

export const MODERN_VERSION = "2026-07-28";

/** `legacy`: initialize and sessions; `modern`: each request stands for itself. */
export type Era = "legacy" | "modern";

export const Meta = {
  version: "io.modelcontextprotocol/protocolVersion",
  capabilities: "io.modelcontextprotocol/clientCapabilities",
  clientInfo: "io.modelcontextprotocol/clientInfo",
  logLevel: "io.modelcontextprotocol/logLevel",
  serverInfo: "io.modelcontextprotocol/serverInfo",
  subscriptionId: "io.modelcontextprotocol/subscriptionId",
} as const;

export const ModernError = {
  headerMismatch: -32020,
  missingCapability: -32021,
  unsupportedVersion: -32022,
} as const;

export const TASKS_EXTENSION = "io.modelcontextprotocol/tasks";
/** Where a message of 2025-11-25 says which task it belongs to: a key of `_meta`. */
export const RELATED_TASK = "io.modelcontextprotocol/related-task";

/** The id of the task that a message belongs to, by its `_meta`. */
export function relatedTask(params: JsonObject | undefined): string | undefined {
  const meta = params?.["_meta"];
  const related = isObject(meta) ? meta[RELATED_TASK] : undefined;
  const id = isObject(related) ? related["taskId"] : undefined;
  return typeof id === "string" ? id : undefined;
}

/** What a modern request says of its sender. */
export interface RequestMeta {
  readonly version: string;
  readonly capabilities: JsonObject;
  readonly clientInfo: JsonObject;
  readonly logLevel: string | undefined;
}

/** True where a message claims to be of the modern era, rightly made or not. */
export function claimsModern(params: JsonObject | undefined): boolean {
  const meta = params?.["_meta"];
  return isObject(meta) && (Meta.version in meta || Meta.capabilities in meta);
}

/** The request's own account of its sender, or the error that it gets. */
export function readRequestMeta(params: JsonObject | undefined): RequestMeta | RpcError {
  const meta = params?.["_meta"];
  const { [Meta.version]: version, [Meta.capabilities]: capabilities } = isObject(meta) ? meta : {};
  if (typeof version !== "string") return missing(Meta.version);
  if (!isObject(capabilities)) return missing(Meta.capabilities);
  const { [Meta.clientInfo]: clientInfo, [Meta.logLevel]: logLevel } = meta as JsonObject;
  return {
    version,
    capabilities,
    clientInfo: isObject(clientInfo) ? clientInfo : {},
    logLevel: typeof logLevel === "string" ? logLevel : undefined,
  };
}

function missing(key: string): RpcError {
  return { code: ErrorCode.invalidParams, message: `params._meta needs "${key}" in every request.` };
}

/** The methods whose subject stands in the header Mcp-Name as well, and the parameter that it repeats. */
export const NAME_PARAMS: ReadonlyMap<string, string> = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
  ["tasks/get", "taskId"],
  ["tasks/update", "taskId"],
  ["tasks/cancel", "taskId"],
]);

const SENTINEL_START = "=?base64?";
const SENTINEL_END = "?=";

/** A value as it goes into Mcp-Name or Mcp-Param-*: plain where that is safe, else in the base64 form. */
export function encodeHeaderValue(value: string): string {
  const plain = /^[\x21-\x7e](?:[\x20-\x7e\t]*[\x21-\x7e])?$/.test(value);
  const looksEncoded = value.startsWith(SENTINEL_START) && value.endsWith(SENTINEL_END);
  if ((plain && !looksEncoded) || value === "") return value;
  return `${SENTINEL_START}${Buffer.from(value).toString("base64")}${SENTINEL_END}`;
}

/** Undefined where the header cannot have been made by encodeHeaderValue. */
export function decodeHeaderValue(header: string): string | undefined {
  if (!header.startsWith(SENTINEL_START) || !header.endsWith(SENTINEL_END)) {
    return /^[\x20-\x7e\t]*$/.test(header) ? header : undefined;
  }
  const base64 = header.slice(SENTINEL_START.length, -SENTINEL_END.length);
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(base64) || base64.length % 4 !== 0) return undefined;
  return Buffer.from(base64, "base64").toString();
}
