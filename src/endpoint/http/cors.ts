// What a browser is told, so that a page of one of the config's origins may read our answers: the CORS headers, and the
// answer to the question that a browser asks first. Tokens are no cookies, so that nothing of this lets anybody in.

import type { IncomingMessage, ServerResponse } from "node:http";

/** What pages may read of an answer's headers, beside those that they always may. */
const EXPOSED = "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After";
/** What MCP is spoken with. */
const METHODS = "POST, GET, DELETE";
/** So long a browser need not ask again; an edit of `allowedOrigins` is obeyed after so long. */
const MAX_AGE_S = "600";
/** Names of headers that a page wants to send; MCP needs about ten, and those of tools' own arguments come besides. */
const MAX_NAMES_CHARS = 4096;
/** The name of a header; a `*` would be a name too, and browsers take it for all of them. */
const HEADER_NAME = /^[A-Za-z0-9!#$%&'+.^_`|~-]+$/;

/** A browser asks whether a page may send a request. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers.origin !== undefined && "access-control-request-method" in headers;
}

/** Lets the page of `origin` read the answer, whatever it will be. */
export function allowReading(res: ServerResponse, origin: string): void {
  res.setHeader("Access-Control-Allow-Origin", origin);
  res.setHeader("Access-Control-Expose-Headers", EXPOSED);
  res.setHeader("Vary", "Origin");
}

/** Says what the page may send. The answer has no body. */
export function answerPreflight({ headers }: IncomingMessage, res: ServerResponse): void {
  res.setHeader("Vary", "Origin, Access-Control-Request-Headers, Access-Control-Request-Private-Network");
  res.setHeader("Access-Control-Allow-Methods", METHODS);
  res.setHeader("Access-Control-Max-Age", MAX_AGE_S);
  const names = allowedNames(headers["access-control-request-headers"]);
  if (names !== "") res.setHeader("Access-Control-Allow-Headers", names);
  // Chromium asks this for a page of the open network that wants to reach a private one.
  if (headers["access-control-request-private-network"] === "true") {
    res.setHeader("Access-Control-Allow-Private-Network", "true");
  }
  res.writeHead(204);
  res.end();
}

/** Every header may be sent: which there are is the protocol's and the tools' to say, and none of them proves anything. */
function allowedNames(asked: string | undefined): string {
  if (asked === undefined || asked.length > MAX_NAMES_CHARS) return "";
  const names = asked.split(",").map((name) => name.trim());
  return names.filter((name) => HEADER_NAME.test(name)).join(", ");
}
