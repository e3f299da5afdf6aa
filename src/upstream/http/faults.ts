// Tells what an HTTP status, or a failure of the network, means for a call. It is pure: no I/O, no state.

import type { ExecutorError } from "../../executor/wire/types.js";
import { Fault, type FaultOptions, type FaultReason, OUTCOME_UNKNOWN, SERVER_SAID } from "../../protocol/errors.js";
import { ErrorCode, isObject, type JsonObject } from "../../protocol/jsonrpc.js";
import { ModernError } from "../../protocol/modern.js";
import { certificateFault } from "../../runtime/network/certificates.js";
import { type Redactor, withoutRedacted } from "../../runtime/redact/redactor.js";
import { capital, sentence } from "../../runtime/words/sentence.js";
import { saysNothingOfEra } from "../era/verdict.js";
import { saysSessionLost } from "./lost-session.js";
import { RedirectError, type ResponseHeaders } from "./requester.js";

/** How much of a body that we do not understand is shown: enough to recognise a proxy's page. */
const EXCERPT_CHARACTERS = 200;
/** So much of a body is looked at: what is redacted gets shorter. */
const COMPLAINT_BYTES = 4 * EXCERPT_CHARACTERS;
/** A phrase of a server's own that says what it misses; longer ones are not for people. */
const MAX_CHALLENGE_CHARACTERS = 300;

/** What to do about an answer that is not a reply. */
export type RefusalVerdict =
  /** The body is the reply, or an error for this very request. */
  | { readonly kind: "message" }
  /** This request failed, the link did not. */
  | { readonly kind: "failed"; readonly fault: Fault; readonly sent: boolean }
  /** The server knows the session no longer, and refused the request for that. */
  | { readonly kind: "session-gone"; readonly fault: Fault };

export interface HttpRefusal {
  readonly status: number;
  readonly headers: ResponseHeaders;
  readonly body: Buffer;
  /** The id that we sent; undefined for notifications and responses. */
  readonly id: number | undefined;
  /** True where the request carried a session id. */
  readonly inSession: boolean;
  /** True for a request of the modern era, whose errors come with statuses of their own. */
  readonly modern?: boolean;
  /** True where the era is being asked for: statuses that say nothing of it are no answer, whatever their body. */
  readonly isDiscover?: boolean;
  /** The server, as it may be shown. */
  readonly url: string;
  /** Takes out what must appear in no message, even where a server echoes it. */
  readonly redactor: Redactor;
  /** What the entry sends as credentials, in words. */
  readonly credentials: readonly string[];
}

/** Every server refuses with these before it does anything about a request, so that it may be sent again. */
const REFUSED_UNREAD = new Set([400, 401, 403, 404, 405, 406, 411, 413, 414, 415, 421, 426, 429, 431]);

/** JSON-RPC errors that answer a request and do not speak of the session, though they come with a 404. */
const ANSWERS_OF_404: ReadonlySet<number> = new Set([
  ErrorCode.methodNotFound,
  ErrorCode.invalidParams,
  ErrorCode.resourceNotFound,
]);

export function judge(refusal: HttpRefusal): RefusalVerdict {
  const { status, id, inSession } = refusal;
  const rpc = parseRpc(refusal.body);
  if (refusal.isDiscover === true && saysNothingOfEra(status)) return { kind: "failed", ...describe(refusal, rpc) };
  const answersUs = rpc !== undefined && id !== undefined && (rpc["id"] === id || isNamelessError(refusal, rpc));
  if (status === 404 && inSession && !(answersUs && ANSWERS_OF_404.has(errorCode(rpc)))) return sessionGone(refusal);
  // A modern server took the place of the one that this session was with.
  if (status === 400 && inSession && rpc !== undefined && errorCode(rpc) === ModernError.unsupportedVersion) {
    return sessionGone(refusal);
  }
  if (answersUs) return { kind: "message" };
  const code = rpc === undefined ? 0 : errorCode(rpc);
  if (inSession && saysSessionLost(status, code, complaint(refusal, rpc))) return sessionGone(refusal);
  return { kind: "failed", ...describe(refusal, rpc) };
}

/** A modern server may refuse by the headers alone, before it has read the id. */
function isNamelessError({ modern }: HttpRefusal, rpc: JsonObject): boolean {
  return modern === true && rpc["id"] === null && isObject(rpc["error"]);
}

function sessionGone(refusal: HttpRefusal): RefusalVerdict {
  const message = `${refusal.url} has forgotten our session (HTTP ${refusal.status}); it was probably restarted.`;
  return { kind: "session-gone", fault: fault("unavailable", () => message, "", refusal, { reason: "session-gone" }) };
}

function describe(refusal: HttpRefusal, rpc: JsonObject | undefined): { fault: Fault; sent: boolean } {
  const { status, url, headers } = refusal;
  if (status === 401 || status === 403) return { fault: unauthorized(refusal), sent: false };
  const said = refusal.redactor.redact(complaint(refusal, rpc), refusal.body.length > COMPLAINT_BYTES);
  const sent = !REFUSED_UNREAD.has(status);
  const wait = retryAfter(headers);
  if (status === 429 || (status === 503 && wait !== undefined)) {
    const when = wait === undefined ? "" : ` It asks to be left alone ${wait}.`;
    const message = (words: string) => `${url} is overloaded (HTTP ${status}).${when}${excerpt(words)}`;
    return { fault: fault("unavailable", message, said, refusal, { reason: "overloaded" }), sent: false };
  }
  if (status >= 500) {
    const message = (words: string) => `${url} failed (HTTP ${status}).${excerpt(words)}`;
    const more = { reason: "server-error", outcome: OUTCOME_UNKNOWN } as const;
    return { fault: fault("outcome-unknown", message, said, refusal, more), sent: true };
  }
  if (status === 404) {
    const message = (words: string) => `${url} does not exist (HTTP 404).${excerpt(words)}`;
    return { fault: fault("protocol", message, said, refusal, { reason: "wrong-path", remedy: CHECK_PATH }), sent };
  }
  const what = status < 400 ? "answered with nothing that is a reply" : "refused the request";
  const message = (words: string) => `${url} ${what} (HTTP ${status}).${excerpt(words)}`;
  const more =
    status === 405 || status < 400
      ? ({ reason: "wrong-path", remedy: CHECK_PATH } as const)
      : ({ reason: "server-error" } as const);
  return { fault: fault("protocol", message, said, refusal, more), sent };
}

const CHECK_PATH = 'Check the path in "url": servers mostly answer at /mcp, older ones at /sse.';

const ADD_HEADER = `for instance "headers": {"Authorization": "Bearer \${MY_TOKEN}"}.`;

/** Which of the three it is says what to do: none were sent, they must come from a login, or ours are not good. */
function unauthorized(refusal: HttpRefusal): Fault {
  const { status, url, headers, credentials } = refusal;
  const hint = challengeOf(headers, refusal.redactor);
  const told = (what: string) => (words: string) => `${url} ${what} (HTTP ${status}${challenge(words)}).`;
  const made = (what: string, reason: FaultReason, remedy: string) =>
    fault("unauthorized", told(what), hint, refusal, { reason, remedy });
  if (credentials.length > 0) {
    const names = credentials.join(" and ");
    const remedy =
      status === 401
        ? `The entry sends ${names}: is the value right, and has it expired?`
        : `The entry sends ${names}: does its owner have access there?`;
    return made("refuses our credentials", "credentials-refused", remedy);
  }
  if (status === 403) {
    return made("refuses us", "no-credentials", `It may want credentials: add them to the entry, ${ADD_HEADER}`);
  }
  if (namesOAuth(headers)) {
    const remedy = 'Add "auth": "oauth" to the entry, and log in with `toolway login NAME`.';
    return made("wants a login by OAuth", "oauth", remedy);
  }
  return made("wants credentials", "no-credentials", `Add them to the entry, ${ADD_HEADER}`);
}

/** A server that is for OAuth says where its metadata is (RFC 9728); one that takes keys alone has none. */
function namesOAuth(headers: ResponseHeaders): boolean {
  const value = headers["www-authenticate"];
  return [value ?? []].flat().some((one) => /(?:^|[\s,])resource_metadata\s*=/i.test(one));
}

/**
 * The fault carries the status, for programs. `said` is what the server said, redacted; agents see less of it than the
 * operator.
 */
function fault(
  code: Fault["code"],
  message: (said: string) => string,
  said: string,
  { status, headers }: HttpRefusal,
  more: Pick<FaultOptions, "reason" | "outcome" | "remedy"> = {},
): Fault {
  const data = { fault: code, status };
  const wire = { status, retryAfterMs: retryAfterMs(headers, Date.now()) };
  return new Fault(code, message(withoutRedacted(said)), { ...more, data, wire, forOperator: message(said) });
}

/** A failure of the network, of TLS, or of a redirect. */
export function networkFault(error: Error, written: boolean, url: string): { fault: Fault; sent: boolean } {
  if (error instanceof Fault) return { fault: error, sent: written };
  if (error instanceof RedirectError) {
    const message = `${url} redirects (HTTP ${error.status}) to ${error.location}, which is not followed.`;
    const remedy = "Put that address into the config if it is right.";
    return { fault: new Fault("protocol", message, { cause: error, reason: "redirect", remedy }), sent: false };
  }
  const code = codeOf(error);
  if (!written) {
    const { what, reason, remedy } = connectHint(code, error);
    const message = `${url} cannot be reached: ${what}.`;
    return { fault: new Fault("unavailable", message, { cause: error, reason, remedy }), sent: false };
  }
  if (error.name === "HTTPParserError" || code === "UND_ERR_HEADERS_OVERFLOW") {
    return { fault: notHttp(url, code, error), sent: true };
  }
  const message = `The connection to ${url} broke before the answer was complete (${code || error.message}).`;
  const more = { cause: error, reason: "not-http", outcome: OUTCOME_UNKNOWN, remedy: undefined } as const;
  return { fault: new Fault("outcome-unknown", message, more), sent: true };
}

/** A failure on the way through an executor: at the executor, or at the server as it sees it. */
export function executorFault(error: ExecutorError, url: string, via: string): { fault: Fault; sent: boolean } {
  const { sent, networkCode = "" } = error;
  const made = (code: Fault["code"], message: string, more: FaultOptions = {}) => ({
    fault: new Fault(code, message, { ...more, cause: error }),
    sent,
  });
  const executor = `executor "${via}"`;
  switch (error.code) {
    case "unavailable":
      return made("unavailable", error.fact, { reason: "no-executor", remedy: error.remedy });
    case "refused": {
      // Every refusal begins with the name of the method, which leaves less room for what to do.
      const why = error.message.replace(/^http\/request failed: /, "");
      return made("unavailable", `${capital(executor)} does not reach ${url}: ${why}`, { reason: "executor-refuses" });
    }
    case "limit":
      return made("limit", `${capital(executor)}: ${error.message}`);
    case "protocol":
      return made("protocol", `${capital(executor)} broke its protocol: ${error.message}`);
  }
  if (!sent) {
    const { what, reason, remedy } =
      error.code === "failed" ? connectHint(networkCode, error) : { what: error.message, reason: undefined };
    const message = sentence(`${url} cannot be reached through ${executor}: ${what}`);
    return made("unavailable", message, { reason, remedy });
  }
  if (isUnreadable(networkCode)) return { fault: notHttp(url, networkCode, error), sent };
  const where = error.code === "failed" ? `from ${executor} to ${url}` : `to ${executor}`;
  const why = nameOf(networkCode, error);
  const message = `The connection ${where} broke before the answer was complete (${why}).`;
  return made("outcome-unknown", message, { outcome: OUTCOME_UNKNOWN });
}

function notHttp(url: string, code: string, cause: Error): Fault {
  const message = `${url} answered with something that is not HTTP (${code || "it cannot be parsed"}).`;
  const remedy = 'Check the port in "url", and whether it is https:// there.';
  return new Fault("protocol", message, { cause, reason: "not-http", remedy });
}

/** Node's parser gave up on what came; an end in the middle is a cut. */
function isUnreadable(code: string): boolean {
  return code.startsWith("HPE_") && !code.includes("EOF");
}

interface ConnectHint {
  /** Without a full stop. */
  readonly what: string;
  readonly reason: FaultReason | undefined;
  readonly remedy?: string | undefined;
}

function connectHint(code: string, error: Error): ConnectHint {
  switch (code) {
    case "ECONNREFUSED":
      return { what: "nothing listens there", reason: "nothing-listens", remedy: START_OR_CORRECT };
    case "ENOENT":
      return { what: "there is no such socket", reason: "nothing-listens", remedy: START_OR_PATH };
    case "EACCES":
      return { what: `this user may not use the socket (${code})`, reason: "unreachable", remedy: CHECK_RIGHTS };
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return { what: `the name does not resolve (${code})`, reason: "unknown-host", remedy: CHECK_NAME };
    case "UND_ERR_CONNECT_TIMEOUT":
    case "ETIMEDOUT":
      return { what: "no answer to the connect", reason: "unreachable", remedy: "Is a firewall or a proxy between?" };
    case "EHOSTUNREACH":
    case "ENETUNREACH":
      return { what: `there is no route to it (${code})`, reason: "unreachable", remedy: "Is the network up?" };
  }
  if (code === "EPROTO" || code.startsWith("ERR_SSL")) {
    return {
      what: `TLS failed (${code})`,
      reason: "not-tls",
      remedy: 'If the port speaks no TLS, write http:// in "url".',
    };
  }
  const certificate = certificateFault(code, error);
  if (certificate !== undefined) return { ...certificate, reason: "certificate" };
  return { what: nameOf(code, error), reason: undefined };
}

const START_OR_CORRECT = 'Start that server, or correct the port in "url".';
const START_OR_PATH = 'Start that server, or correct the path in "url".';
const CHECK_RIGHTS = "Check the rights of the socket and its folder.";
const CHECK_NAME = 'Check the host name in "url", and the network.';

/** Node's code, which people can look up. An executor's own, in lower case or `ERROR`, says less than its words. */
function nameOf(code: string, error: Error): string {
  return /^(?!ERROR$)[A-Z]/.test(code) ? code : error.message;
}

function codeOf(error: Error): string {
  const { code } = error as { code?: unknown };
  return typeof code === "string" ? code : "";
}

/** A whole JSON-RPC message, or undefined. */
export function parseRpc(body: Buffer): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return isObject(value) && value["jsonrpc"] === "2.0" ? value : undefined;
  } catch {
    return undefined;
  }
}

function errorCode(rpc: JsonObject): number {
  const error = rpc["error"];
  return isObject(error) && typeof error["code"] === "number" ? error["code"] : 0;
}

/** What the server says is wrong: the JSON-RPC error's message, or the body. */
function complaint({ body }: HttpRefusal, rpc: JsonObject | undefined): string {
  const error = rpc?.["error"];
  if (isObject(error) && typeof error["message"] === "string") return error["message"].trim();
  return body.toString("utf8", 0, COMPLAINT_BYTES).trim();
}

/** `said` is redacted already: a secret that is cut in two would not be found. */
function excerpt(said: string): string {
  const clean = said.replace(/\s+/g, " ").trim().slice(0, EXCERPT_CHARACTERS);
  return clean === "" ? "" : `${SERVER_SAID}${sentence(clean)}`;
}

function challengeOf(headers: ResponseHeaders, redactor: Redactor): string {
  const value = headers["www-authenticate"];
  const text = Array.isArray(value) ? value.join(", ") : (value ?? "");
  return redactor.redact(text).slice(0, MAX_CHALLENGE_CHARACTERS);
}

function challenge(said: string): string {
  return said === "" ? "" : `, WWW-Authenticate: ${said}`;
}

/** `Retry-After` in words: seconds or a date; undefined where there is none or it is neither. */
function retryAfter(headers: ResponseHeaders): string | undefined {
  const value = headers["retry-after"];
  if (typeof value !== "string") return undefined;
  if (/^\d{1,9}$/.test(value)) return `for ${value} s`;
  const at = dateIn(value);
  return at === undefined ? undefined : `until ${new Date(at).toISOString()}`;
}

/** The same as a time from now on; never less than none. */
function retryAfterMs(headers: ResponseHeaders, wallMs: number): number | undefined {
  const value = headers["retry-after"];
  if (typeof value !== "string") return undefined;
  if (/^\d{1,9}$/.test(value)) return Number(value) * 1000;
  const at = dateIn(value);
  return at === undefined ? undefined : Math.max(0, at - wallMs);
}

/** A date as HTTP writes it. Date.parse() finds one in almost any text with a number: in "-5", and in "soon, in 5". */
function dateIn(value: string): number | undefined {
  const at = WEEKDAY.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(at) ? undefined : at;
}

const WEEKDAY = /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)/;
