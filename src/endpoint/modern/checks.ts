// Decides what makes a message a modern one, and what a modern request must bring. Pure: it says which error a request
// gets.

import type { IncomingHttpHeaders } from "node:http";
import { ErrorCode, isObject, type JsonObject, type RpcError } from "../../protocol/jsonrpc.js";
import { isLoggingLevel } from "../../protocol/log-levels.js";
import type { Message, RequestMessage } from "../../protocol/message.js";
import {
  claimsModern,
  decodeHeaderValue,
  Meta,
  MODERN_VERSION,
  ModernError,
  NAME_PARAMS,
  type RequestMeta,
  readRequestMeta,
} from "../../protocol/modern.js";
import { argumentAt, type ParamHeader } from "../../protocol/param-headers.js";
import { isLegacyVersion, LATEST_LEGACY, LEGACY_VERSIONS } from "../../protocol/versions.js";

/** The newest comes first. */
export const SUPPORTED_VERSIONS: readonly string[] = [MODERN_VERSION, ...LEGACY_VERSIONS];

/** Values that clients sent are repeated in errors, but not at any length. */
const MAX_SHOWN = 128;

/** A modern version, known to us or not: a date after the last legacy one. */
export function isModernVersion(version: unknown): boolean {
  return typeof version === "string" && /^\d{4}-\d{2}-\d{2}$/.test(version) && version > LATEST_LEGACY;
}

/** True where the message itself says that it is modern. Who names a legacy version there is taken at its word. */
export function saysModern(message: Message): boolean {
  if (message.kind === "response" || !claimsModern(message.params)) return false;
  const version = metaOf(message.params)[Meta.version];
  return typeof version !== "string" || !isLegacyVersion(version);
}

function metaOf(params: JsonObject | undefined): JsonObject {
  const meta = params?.["_meta"];
  return isObject(meta) ? meta : {};
}

/** Which era a POST is of: the body decides; headers only where it does not say. */
export function isModernPost(message: Message, headers: IncomingHttpHeaders): boolean {
  if (saysModern(message)) return true;
  const opening = message.kind === "request" ? message.method : undefined;
  if (opening === "initialize" || headers["mcp-session-id"] !== undefined) return false;
  return opening === "server/discover" || isModernVersion(headers["mcp-protocol-version"]);
}

/** As isModernPost: one modern message is enough, and so is a modern version without a session. */
export function isModernBatch(messages: readonly Message[], headers: IncomingHttpHeaders): boolean {
  const named = headers["mcp-session-id"] === undefined && isModernVersion(headers["mcp-protocol-version"]);
  return named || messages.some(saysModern);
}

/** The request's account of its sender, or the error that it gets. `headers` are given where the transport has them. */
export function checkRequest(
  message: RequestMessage,
  headers: IncomingHttpHeaders | undefined,
): RequestMeta | RpcError {
  const meta = readRequestMeta(message.params);
  if ("code" in meta) return meta;
  return (
    (headers === undefined ? undefined : versionMismatch(meta.version, headers["mcp-protocol-version"])) ??
    unsupported(meta.version) ??
    badLogLevel(message.params) ??
    (headers === undefined ? undefined : headerMismatch(message, headers)) ??
    meta
  );
}

function versionMismatch(version: string, header: string | string[] | undefined): RpcError | undefined {
  if (header === version) return undefined;
  if (header === undefined) return mismatch("The header MCP-Protocol-Version is missing.");
  return mismatch(`MCP-Protocol-Version is ${shown(header)}, and params._meta says ${shown(version)}.`);
}

function unsupported(version: string): RpcError | undefined {
  if (version === MODERN_VERSION) return undefined;
  const message = isLegacyVersion(version)
    ? `Version ${version} begins with initialize.`
    : `Version ${shown(version)} is not spoken here.`;
  return {
    code: ModernError.unsupportedVersion,
    message,
    data: { supported: SUPPORTED_VERSIONS, requested: version },
  };
}

function badLogLevel(params: JsonObject | undefined): RpcError | undefined {
  const level = metaOf(params)[Meta.logLevel];
  if (level === undefined || isLoggingLevel(level)) return undefined;
  return { code: ErrorCode.invalidParams, message: `"${Meta.logLevel}" is a level from debug to emergency.` };
}

function headerMismatch(message: RequestMessage, headers: IncomingHttpHeaders): RpcError | undefined {
  const { method, params } = message;
  const named = headers["mcp-method"];
  if (named === undefined) return mismatch("The header Mcp-Method is missing.");
  if (named !== method) return mismatch(`Mcp-Method is ${shown(named)}, and the body's method is ${shown(method)}.`);
  const field = NAME_PARAMS.get(method);
  const value = field === undefined ? undefined : params?.[field];
  // Without a value in the body there is nothing to agree with: what is wrong is the body's.
  return typeof value === "string"
    ? valueMismatch("Mcp-Name", headers["mcp-name"], value, `params.${field}`)
    : undefined;
}

/** The error where arguments that the tool's schema wants in headers do not stand there. */
export function paramMismatch(
  declared: readonly ParamHeader[],
  args: unknown,
  headers: IncomingHttpHeaders,
): RpcError | undefined {
  for (const { header, path } of declared) {
    const value = argumentAt(args, path);
    const text = typeof value === "string" ? value : isPlain(value) ? String(value) : undefined;
    if (text === undefined) continue;
    const error = valueMismatch(header, headers[header], text, `arguments.${path.join(".")}`, value);
    if (error !== undefined) return error;
  }
  return undefined;
}

function isPlain(value: unknown): value is number | boolean {
  return typeof value === "number" || typeof value === "boolean";
}

function valueMismatch(
  name: string,
  header: string | string[] | undefined,
  text: string,
  where: string,
  value: unknown = text,
): RpcError | undefined {
  if (header === undefined) return mismatch(`The header ${name} is missing; the body has ${where}.`);
  const decoded = decodeHeaderValue(String(header).trim());
  if (decoded === undefined) return mismatch(`The header ${name} cannot be read.`);
  if (decoded === text) return undefined;
  // 42.0 is 42.
  if (typeof value === "number" && /^-?\d+(?:\.\d+)?$/.test(decoded) && Number(decoded) === value) return undefined;
  return mismatch(`${name} is ${shown(decoded)}, and the body's ${where} is ${shown(text)}.`);
}

function mismatch(message: string): RpcError {
  return { code: ModernError.headerMismatch, message };
}

function shown(value: string | string[]): string {
  return JSON.stringify(String(value).slice(0, MAX_SHOWN));
}
