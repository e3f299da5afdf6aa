// The headers of requests to one HTTP server: the config's, and the protocol's own, which the config cannot change.
// The legacy era's are here; what a modern server gets in their stead comes with each request (modern/side.ts).

import type { Auth, HttpTarget } from "../../contracts/server-spec.js";
import { Fault } from "../../protocol/errors.js";
import { BAD_HEADER_VALUE, HEADER_NAME } from "../../runtime/network/headers.js";
import { SECRET_NAME } from "../../runtime/redact/ordinary.js";
import type { Redactor } from "../../runtime/redact/redactor.js";
import { safeUrl } from "../../runtime/redact/safe-url.js";
import { redactorFor } from "../../runtime/redact/secrets-of.js";
import { decoded } from "../../runtime/words/percent.js";
import type { ResponseHeaders } from "./requester.js";

/**
 * Names that an entry's `headers` may not set: they are the protocol's or the connection's. Compression is not
 * asked for: bodies are spliced as they come, and most servers are on this machine.
 */
const OURS = new Set([
  "accept",
  "accept-encoding",
  "connection",
  "content-encoding",
  "content-length",
  "content-type",
  "expect",
  "keep-alive",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** The protocol says what a session id may be made of; the length is ours, against a header that eats the request. */
const SESSION_ID = /^[\x21-\x7e]{1,1024}$/;
/** An event id that is longer, or would break out of its header, is not resumed from. */
const EVENT_ID = /^[\x20-\x7e]{1,1024}$/;

export const isSessionId = (value: unknown): value is string => typeof value === "string" && SESSION_ID.test(value);
export const isResumable = (eventId: string): boolean => EVENT_ID.test(eventId);

/** Where the requests of one entry of the config go, with which headers, and what must not be shown of it. */
export class HttpDestination {
  readonly url: URL;
  readonly path: string;
  /** The URL as it may be shown: without userinfo, query and tokens. */
  readonly shown: string;
  /** Takes out what must not be shown of it. */
  redactor: Redactor;
  /** What it sends as credentials, in words: the names of its headers, in quotes. */
  readonly credentials: readonly string[];
  readonly #configured: string[] = [];
  readonly #posted: string[];

  /** Throws a Fault `invalid`. */
  constructor(target: HttpTarget) {
    this.url = parseUrl(target.url);
    this.path = this.url.pathname + this.url.search;
    this.shown = shownAddress(target, this.url);
    this.redactor = redactorFor(target);
    let authorized = false;
    for (const [name, value] of Object.entries(target.headers)) {
      const lower = name.toLowerCase();
      if (!HEADER_NAME.test(name) || BAD_HEADER_VALUE.test(value)) {
        throw new Fault("invalid", `The header ${JSON.stringify(name)} for ${this.shown} cannot be sent as HTTP.`);
      }
      if (OURS.has(lower) || lower.startsWith("mcp-param-")) continue;
      authorized ||= lower === "authorization";
      this.#configured.push(lower, value);
    }
    const names = Object.keys(target.headers)
      .filter((name) => SECRET_NAME.test(name))
      .map((name) => JSON.stringify(name));
    if (target.auth !== undefined) names.push(`a token from ${sourceText(target.auth)}`);
    this.credentials = this.url.username !== "" && !authorized ? [...names, "the login in its url"] : names;
    if (this.url.username !== "" && !authorized) this.#configured.push("authorization", this.#basic());
    this.#posted = [
      ...this.#configured,
      "content-type",
      "application/json",
      "accept",
      "application/json, text/event-stream",
    ];
  }

  /** The headers of a POST. */
  posting(session: string | undefined, version: string | undefined): string[] {
    return withSession(this.#posted, session, version);
  }

  /** The headers of a GET for a stream. */
  listening(session: string | undefined, version: string | undefined, lastEventId: string): string[] {
    const headers = withSession([...this.#configured, "accept", "text/event-stream"], session, version);
    if (isResumable(lastEventId)) headers.push("last-event-id", lastEventId);
    return headers;
  }

  /** The headers of a DELETE. */
  ending(session: string, version: string | undefined): string[] {
    return withSession(this.#configured, session, version);
  }

  #basic(): string {
    const userinfo = `${decoded(this.url.username)}:${decoded(this.url.password)}`;
    return `Basic ${Buffer.from(userinfo).toString("base64")}`;
  }
}

function sourceText(auth: Auth): string {
  switch (auth.from) {
    case "env":
      return `the variable ${auth.name}`;
    case "file":
      return `the file ${auth.path}`;
    case "command":
      return `the command ${auth.line[0] ?? ""}`;
    case "oauth":
      return "its login";
    case "clientCredentials":
      return `the client ${auth.clientId}`;
  }
}

function withSession(headers: readonly string[], session: string | undefined, version: string | undefined): string[] {
  const all = headers.slice();
  if (session !== undefined) all.push("mcp-session-id", session);
  if (version !== undefined) all.push("mcp-protocol-version", version);
  return all;
}

function parseUrl(text: string): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Fault("invalid", "The URL of the server cannot be read as one.");
  }
  if (url.protocol === "http:" || url.protocol === "https:") return url;
  throw new Fault("invalid", `A server's URL begins with http: or https:, not ${url.protocol}.`);
}

/** An address on a Unix socket is shown as people write it. */
function shownAddress({ socketPath }: HttpTarget, url: URL): string {
  if (socketPath === undefined) return safeUrl(url);
  const path = safeUrl(url).slice(url.origin.length);
  return `unix://${socketPath}${path === "/" ? "" : `#${path}`}`;
}

/** The media type without its parameters, in lower case. */
export function mediaType(headers: ResponseHeaders): string {
  const value = headers["content-type"];
  if (typeof value !== "string") return "";
  const end = value.indexOf(";");
  return (end < 0 ? value : value.slice(0, end)).trim().toLowerCase();
}
