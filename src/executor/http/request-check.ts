// Whether the params of `http/request` are a request that can be made: read once, and everything that is wrong with
// them is said as -32602 with the field and what to do. Where a request may go is not asked here.

import type { Readable } from "node:stream";
import { OF_CONNECTION } from "../../runtime/network/headers.js";
import { MIB } from "../../runtime/sizes.js";
import { isObject } from "../../runtime/words/json-object.js";
import { decoded } from "../wire/frame.js";
import { MAX_HEADER_BYTES, MAX_HEADERS, MAX_URL_CHARS, MAX_WHOLE_BODY_BYTES } from "../wire/limits.js";
import { type FailureData, type HttpHeader, RpcCode, type RpcFailure } from "../wire/protocol.js";
import type { RedirectPolicy } from "../wire/types.js";

/** A request as it can be made. */
export interface CheckedRequest {
  /** In upper case. */
  readonly method: string;
  readonly url: URL;
  /** Names in lower case, values as bytes in latin1; without what belongs to the connection. */
  readonly headers: readonly HttpHeader[];
  readonly body: Buffer | Readable | undefined;
  readonly timeoutMs: number | undefined;
  readonly redirect: RedirectPolicy;
}

export type RequestCheck =
  | {
      readonly ok: true;
      readonly requestId: string;
      readonly streamResponse: boolean;
      /** The body comes in uploads: whoever takes them puts a stream into the request. */
      readonly streamRequest: boolean;
      readonly request: CheckedRequest;
    }
  | { readonly ok: false; readonly error: RpcFailure };

/** An id is repeated in every message of its body. */
const MAX_REQUEST_ID_CHARS = 256;
/** A method's name: the longest that is registered has 17. */
const MAX_METHOD_CHARS = 64;
/** What Node's timers can wait, 24 days; the bound on silence is far shorter. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The bound is for names of headers, which are told in messages; nobody has longer ones. */
const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,256}$/;
/** Controls but the tab: they would end the header and begin another, or be read differently by somebody. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROLS = /[\0-\x08\x0a-\x1f\x7f]/;
const BEYOND_ASCII = /[^\0-\x7f]/;
const BASE64URL = /[-_]/;

/** Not made by a client: a tunnel, and an echo of the request's secrets. */
const REFUSED_METHODS = new Set(["CONNECT", "TRACE"]);

/** Carries what is wrong out of the readers below; never leaves this file. */
class Wrong extends Error {}

export function checkRequest(params: unknown): RequestCheck {
  try {
    return read(params);
  } catch (error) {
    if (!(error instanceof Wrong)) throw error;
    const data: FailureData = { code: "invalid", written: false };
    return { ok: false, error: { code: RpcCode.invalidParams, message: error.message, data } };
  }
}

function read(params: unknown): RequestCheck {
  if (!isObject(params)) throw new Wrong("http/request params are missing: send an object");
  const requestId = textOf(params, "requestId");
  if (requestId.length > MAX_REQUEST_ID_CHARS) {
    throw new Wrong(`http/request requestId is longer than ${MAX_REQUEST_ID_CHARS} characters: send a shorter one`);
  }
  const method = readMethod(textOf(params, "method"));
  const url = readUrl(textOf(params, "url"));
  const headers = readHeaders(params["headers"], url);
  const streamResponse = flagOf(params, "streamResponse");
  const streamRequest = flagOf(params, "streamRequest");
  const body = readBody(params["bodyBase64"], streamRequest);
  const timeoutMs = readTimeout(params["timeoutMs"]);
  const redirect = readPolicy(params["redirectPolicy"]);
  const request = { method, url, headers, body, timeoutMs, redirect };
  return { ok: true, requestId, streamResponse, streamRequest, request };
}

function readMethod(method: string): string {
  if (method.length > MAX_METHOD_CHARS || !TOKEN.test(method)) {
    throw new Wrong("http/request method is invalid: send one word, such as GET");
  }
  // As Node writes it in any case.
  const upper = method.toUpperCase();
  if (REFUSED_METHODS.has(upper)) {
    throw new Wrong(`http/request method ${method} is not made by an executor: use another`);
  }
  return upper;
}

function readUrl(text: string): URL {
  if (text.length > MAX_URL_CHARS) {
    throw new Wrong(`http/request url is longer than ${MAX_URL_CHARS} characters: send a shorter one`);
  }
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Wrong("http/request url is invalid: send an absolute http or https URL");
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new Wrong(`http/request only supports http and https URLs, got ${url.protocol.slice(0, -1)}`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new Wrong("http/request url holds a user or password: send them in an authorization header");
  }
  url.hash = "";
  return url;
}

function readHeaders(value: unknown, url: URL): HttpHeader[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw new Wrong("http/request headers must be a list of {name, value}");
  if (value.length > MAX_HEADERS) throw new Wrong(`http/request headers are more than ${MAX_HEADERS}: send fewer`);
  const headers: HttpHeader[] = [];
  let bytes = 0;
  for (const [i, one] of (value as unknown[]).entries()) {
    const header = readHeader(one, i, url);
    if (header === undefined) continue;
    bytes += header.name.length + header.value.length;
    if (bytes > MAX_HEADER_BYTES) {
      throw new Wrong(`http/request headers are larger than ${MAX_HEADER_BYTES} bytes: send less`);
    }
    headers.push(header);
  }
  return headers;
}

/** Undefined where it is not passed on. */
function readHeader(one: unknown, i: number, url: URL): HttpHeader | undefined {
  if (!isObject(one) || typeof one["name"] !== "string" || typeof one["value"] !== "string") {
    throw new Wrong(`http/request headers[${i}] must have name and value, both text`);
  }
  const { name, value } = one as { name: string; value: string };
  if (!TOKEN.test(name)) {
    throw new Wrong(`http/request header name is invalid: headers[${i}].name may have letters, digits and -`);
  }
  // The value is never told: it may be a secret.
  if (CONTROLS.test(value)) {
    throw new Wrong(`http/request header value is invalid for ${name}: take line breaks and controls out of it`);
  }
  if (one["valueEnvVar"] !== undefined && one["valueEnvVar"] !== null) {
    throw new Wrong(
      `http/request header ${name} asks for an environment variable: this executor gives none, send the value`,
    );
  }
  const lower = name.toLowerCase();
  if (OF_CONNECTION.has(lower)) return undefined;
  if (lower === "host") {
    if (!isHostOf(value, url)) {
      throw new Wrong(`http/request header host is not the host of the url: leave it out, or send ${url.host}`);
    }
    return undefined;
  }
  return { name: lower, value: BEYOND_ASCII.test(value) ? Buffer.from(value).toString("latin1") : value };
}

/** Another host would reach another site than the one that the rules were asked about. */
function isHostOf(value: string, url: URL): boolean {
  const host = value.trim().toLowerCase();
  return host === url.host || (url.port === "" && host === `${url.host}:${url.protocol === "https:" ? 443 : 80}`);
}

function readBody(value: unknown, streamRequest: boolean): Buffer | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "string") throw new Wrong("http/request bodyBase64 must be text in base64");
  if (streamRequest) throw new Wrong("http/request has bodyBase64 and streamRequest: send one of them");
  if (value.length > Math.ceil(MAX_WHOLE_BODY_BYTES / 3) * 4) {
    const most = MAX_WHOLE_BODY_BYTES / MIB;
    throw new Wrong(`http/request bodyBase64 holds more than ${most} MiB: send the body with streamRequest`);
  }
  const body = BASE64URL.test(value) ? undefined : decoded(value);
  if (body === undefined) throw new Wrong("http/request bodyBase64 is invalid: send standard base64 with its padding");
  return body.length === 0 ? undefined : body;
}

function readTimeout(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== "number" || !Number.isInteger(value) || value < 0) {
    throw new Wrong("http/request timeoutMs must be a whole number of milliseconds, 0 or more");
  }
  return Math.min(value, MAX_TIMEOUT_MS);
}

function readPolicy(value: unknown): RedirectPolicy {
  if (value === undefined || value === null) return "follow";
  if (value !== "follow" && value !== "stop") throw new Wrong("http/request redirectPolicy must be follow or stop");
  return value;
}

function textOf(params: Record<string, unknown>, field: string): string {
  const value = params[field];
  if (value === undefined) throw new Wrong(`missing field \`${field}\`: http/request needs it`);
  if (typeof value !== "string") throw new Wrong(`http/request ${field} must be text`);
  return value;
}

function flagOf(params: Record<string, unknown>, field: string): boolean {
  const value = params[field];
  if (value === undefined || value === null) return false;
  if (typeof value !== "boolean") throw new Wrong(`http/request ${field} must be true or false`);
  return value;
}
