// Where a redirect leads, and what of the request goes along. Pure; whether that place may be reached is asked
// elsewhere.

import { SECRET_NAME } from "../../runtime/redact/ordinary.js";
import type { HttpHeader } from "./protocol.js";

/** A request without its body. */
export interface Hop {
  readonly method: string;
  readonly url: URL;
  readonly headers: readonly HttpHeader[];
}

export interface Redirected extends Hop {
  /** False where the method has become GET: the body stays behind. */
  readonly keepsBody: boolean;
}

/** What is for one origin alone: credentials, whatever their header is called, and the session of an MCP server. */
function isForOrigin(name: string): boolean {
  return SECRET_NAME.test(name) || name === "mcp-session-id";
}

/** What describes a body that is not sent. */
const OF_BODY = new Set(["content-encoding", "content-language", "content-location", "content-type"]);

/** Undefined where the answer is none, or leads to nothing that is a URL: then it is the answer. */
export function redirected(hop: Hop, status: number, location: string | undefined): Redirected | undefined {
  if (location === undefined || !isRedirect(status)) return undefined;
  const url = targetOf(location, hop.url);
  if (url === undefined) return undefined;
  const becomesGet =
    status === 303 ? hop.method !== "GET" && hop.method !== "HEAD" : status < 303 && hop.method === "POST";
  const isForeign = url.origin !== hop.url.origin;
  const headers = hop.headers.filter(({ name }) => {
    const lower = name.toLowerCase();
    return !(isForeign && isForOrigin(lower)) && !(becomesGet && OF_BODY.has(lower));
  });
  return { method: becomesGet ? "GET" : hop.method, url, headers, keepsBody: !becomesGet };
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

function targetOf(location: string, base: URL): URL | undefined {
  try {
    const url = new URL(location, base);
    url.hash = "";
    return url;
  } catch {
    return undefined;
  }
}
