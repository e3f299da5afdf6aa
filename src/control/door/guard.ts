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

/** What the door is called by whoever may come in. */
export interface OwnNames {
  readonly port: number;
  readonly secure: boolean;
  /** Besides the loopback ones, in lower case: a name for our port or its scheme's own, or one with a port of its own. */
  readonly hosts: readonly string[];
}

/** Why it is refused, as a sentence; undefined where it is not. */
export function refusalOf(asked: AskedHow, own: OwnNames): string | undefined {
  const { method, host, origin, fetchSite, contentType, hasBody } = asked;
  const named = host === undefined ? "none" : kindOfHost(host, own);
  if (named === "none") {
    return 'This door answers to a loopback name with its own port, and to "hosts" of "admin" in the config.';
  }
  // A proxy that speaks TLS for us has a name of the config, never a loopback one.
  const schemes = own.secure ? ["https"] : named === "given" ? ["http", "https"] : ["http"];
  if (origin !== undefined && !schemes.some((scheme) => origin === `${scheme}://${host}`)) {
    return "Pages of other sites get nothing here.";
  }
  // A person who types the address, or follows the link of the CLI, comes from nowhere ("none").
  const isPage = method === "GET" && fetchSite === "none";
  if (fetchSite !== undefined && fetchSite !== "same-origin" && !isPage)
    return "Pages of other sites get nothing here.";
  if (hasBody && !/^application\/json(;|$)/i.test(contentType ?? "")) return "Bodies are JSON here (application/json).";
  return undefined;
}

/** What says which program runs, or where to: pages of other tools took these, and ran what a page of another site wrote there. */
const OF_PROGRAMS = ["command", "args", "env", "url", "path"] as const;

/** Why a body is refused, as a sentence: no route here has a use for these, and none is ever to get one by accident. */
export function bodyRefusal(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  const found = OF_PROGRAMS.find((name) => Object.hasOwn(body, name));
  return found === undefined
    ? undefined
    : `Nothing here takes "${found}": programs and addresses are set on a terminal, by \`toolway add\`.`;
}

function kindOfHost(host: string, { port, hosts }: OwnNames): "loopback" | "given" | "none" {
  const [, name = "", givenPort] = /^(\[[^\]]*\]|[^:]*)(?::(\d+))?$/.exec(host.toLowerCase()) ?? [];
  if (name === "") return "none";
  if (givenPort === String(port) && isLoopback(name)) return "loopback";
  const isUsual = givenPort === undefined || givenPort === String(port);
  return hosts.includes(host.toLowerCase()) || (isUsual && hosts.includes(name)) ? "given" : "none";
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
