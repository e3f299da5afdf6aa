// Which requests the operator's door looks at: those of its own page, and of programs that name it rightly. A page of
// another site, or of another port, is refused before anything else is asked. It decides only.

import { isLoopback } from "../../runtime/addresses.js";

export interface AskedHow {
  readonly method: string;
  readonly host: string | undefined;
  readonly origin: string | undefined;
  /** The header Sec-Fetch-Site, which a page cannot set. */
  readonly fetchSite: string | undefined;
  readonly contentType: string | undefined;
  readonly hasBody: boolean;
}

/** Why it is refused, as a sentence; undefined where it is not. */
export function refusalOf(asked: AskedHow, port: number): string | undefined {
  const { method, host, origin, fetchSite, contentType, hasBody } = asked;
  if (host === undefined || !isOwnHost(host, port)) return "This door answers to a loopback name with its own port.";
  if (origin !== undefined && origin !== `http://${host}`) return "Pages of other sites get nothing here.";
  // A person who types the address, or follows the link of the CLI, comes from nowhere ("none").
  const isPage = method === "GET" && fetchSite === "none";
  if (fetchSite !== undefined && fetchSite !== "same-origin" && !isPage)
    return "Pages of other sites get nothing here.";
  if (hasBody && !/^application\/json(;|$)/i.test(contentType ?? "")) return "Bodies are JSON here (application/json).";
  return undefined;
}

function isOwnHost(host: string, port: number): boolean {
  const at = host.lastIndexOf(":");
  return at > 0 && host.slice(at + 1) === String(port) && isLoopback(host.slice(0, at));
}

/** What every answer carries: a page that can ask nobody else, run nothing of others', and stand in nobody's frame. */
export const SAFE_HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};
