// A request as it is put on the wire, and what the executor's answer to it means.

import { HEADER_NAME } from "../../runtime/network/headers.js";
import { decoded } from "../wire/frame.js";
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_CHARS } from "../wire/limits.js";
import {
  type HttpHeader,
  type HttpRequestParams,
  type HttpRequestResult,
  RpcCode,
  type RpcFailure,
  STOPPING_CODE,
} from "../wire/protocol.js";
import { ExecutorError, type ExecutorRequest } from "../wire/types.js";

/** How the bodies of a request, and of its answer, are sent. */
export interface SentBodies {
  readonly requestId: string;
  readonly streamResponse: boolean;
  readonly streamRequest: boolean;
  readonly body: Buffer | undefined;
}

export function requestParams(request: ExecutorRequest, bodies: SentBodies): HttpRequestParams {
  return {
    method: request.method,
    url: request.url,
    headers: request.headers,
    ...(bodies.body === undefined ? {} : { bodyBase64: bodies.body.toString("base64") }),
    ...(request.timeoutMs === undefined ? {} : { timeoutMs: request.timeoutMs }),
    ...(request.redirect === "stop" ? { redirectPolicy: "stop" } : {}),
    requestId: bodies.requestId,
    streamResponse: bodies.streamResponse,
    ...(bodies.streamRequest ? { streamRequest: true } : {}),
  };
}

/** Undefined where the request is within bounds. Beyond them, a message could cost the connection. */
export function beyondBounds(request: ExecutorRequest): ExecutorError | undefined {
  if (request.url.length > MAX_URL_CHARS) return beyond(`a URL of more than ${MAX_URL_CHARS} characters`);
  if (request.headers.length > MAX_HEADERS) return beyond(`more than ${MAX_HEADERS} headers`);
  let bytes = 0;
  for (const { name, value } of request.headers) bytes += name.length + value.length;
  return bytes > MAX_HEADER_BYTES ? beyond(`headers of more than ${MAX_HEADER_BYTES} bytes`) : undefined;
}

export function beyond(what: string): ExecutorError {
  return new ExecutorError("limit", `${what} is more than an executor takes`, { sent: false });
}

export interface Head {
  readonly status: number;
  readonly headers: readonly HttpHeader[];
  readonly body: Buffer;
}

const NOTHING = Buffer.alloc(0);
/** Characters of what an executor says is wrong. It is for people, and kept in logs and errors. */
const MAX_REASON_CHARS = 1_000;
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that no header has
const NO_HEADER_VALUE = /[\u0000-\u0008\u000a-\u001f\u007f]/;
/** Statuses of answers: lower ones are about the connection, and no server can send more digits. */
const FIRST_STATUS = 200;
const LAST_STATUS = 999;

/** Undefined where it is not the answer to a request, or what no server could have said over HTTP. */
export function readHead(result: unknown): Head | undefined {
  if (typeof result !== "object" || result === null) return undefined;
  const { status, headers, bodyBase64 } = result as Readonly<Record<keyof HttpRequestResult, unknown>>;
  if (!isStatus(status) || !areHeaders(headers)) return undefined;
  if (typeof bodyBase64 !== "string") return undefined;
  const body = bodyBase64 === "" ? NOTHING : decoded(bodyBase64);
  return body === undefined ? undefined : { status, headers, body };
}

function isStatus(status: unknown): status is number {
  return Number.isInteger(status) && (status as number) >= FIRST_STATUS && (status as number) <= LAST_STATUS;
}

function areHeaders(headers: unknown): headers is HttpHeader[] {
  if (!Array.isArray(headers) || headers.length > MAX_HEADERS) return false;
  let bytes = 0;
  for (const header of headers as unknown[]) {
    if (typeof header !== "object" || header === null) return false;
    const { name, value } = header as Record<string, unknown>;
    if (typeof name !== "string" || typeof value !== "string") return false;
    bytes += name.length + value.length;
    if (bytes > MAX_HEADER_BYTES || !HEADER_NAME.test(name) || NO_HEADER_VALUE.test(value)) return false;
  }
  return true;
}

/** The beginning of what the other end says, as far as anybody would read it. */
export function shortReason(reason: string): string {
  return reason.length <= MAX_REASON_CHARS ? reason : `${reason.slice(0, MAX_REASON_CHARS)}…`;
}

/** -32603 is a request that was tried, unless its destination was forbidden; every other code is one that was not. */
export function errorOf(failure: RpcFailure): ExecutorError {
  const { code, written } = (typeof failure.data === "object" ? (failure.data ?? {}) : {}) as Record<string, unknown>;
  const tried = failure.code === RpcCode.failed;
  // As if it had left before the request came.
  if (code === STOPPING_CODE) return new ExecutorError("closed", "the executor stops", { sent: false });
  return new ExecutorError(tried && code !== "forbidden" ? "failed" : "refused", shortReason(failure.message), {
    sent: typeof written === "boolean" ? written : tried,
    networkCode: typeof code === "string" ? shortReason(code) : undefined,
  });
}
