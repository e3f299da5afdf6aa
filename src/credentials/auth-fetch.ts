// The `fetch` that logins are made with: to places that may be asked, within bounds of time and size, by the way that the
// server itself is reached.

import type { LookupFunction } from "node:net";
import { isLoopback, readAddress } from "../runtime/addresses.js";
import type { ShortAnswer, ShortRequest } from "../runtime/network/short-request.js";
import {
  FAR,
  HERE,
  type Home,
  judgeAddress,
  judgePlace,
  type Nearness,
  nearnessOf,
  RefusedPlace,
} from "./login-places.js";

/** Metadata documents and token answers have a few kilobytes; the longest that were seen list a hundred scopes. */
const MAX_ANSWER_BYTES = 256 * 1024;
/** Each request. A call waits for a renewal so long at most, and a person for a step of a login. */
const REQUEST_MS = 10_000;

/** Sends one request by the way that a server is reached. */
export type SendAuth = (request: ShortRequest) => Promise<ShortAnswer>;

export interface AuthFetch {
  (url: string | URL, init?: RequestInit): Promise<Response>;
  /**
   * Why a person is not sent to this page; undefined where they may be. A browser asks for it where we would not: a click is a
   * request to whatever is there. Nothing is connected to. Absent where nobody judges.
   */
  pageRefusal?: ((url: URL) => Promise<string | undefined>) | undefined;
}

export interface AuthFetchOptions {
  /** The address of the server whose login it is. */
  readonly serverUrl: string;
  /** It is reached through an executor, or on a Unix socket: where names lead is not ours to say, or known. */
  readonly isElsewhere: boolean;
  readonly send: SendAuth;
  /** Is ended with whatever it is for. */
  readonly signal: AbortSignal;
  readonly resolve?: (host: string) => Promise<readonly { readonly address: string }[]>;
}

export function authFetch({ serverUrl, isElsewhere, send, signal, resolve = bySystem }: AuthFetchOptions): AuthFetch {
  const { origin, hostname } = new URL(serverUrl);
  let home: Promise<Home> | undefined;
  const findHome = async (): Promise<Home> => {
    // An executor has rules of its own, and judges what it connects to by them.
    const nearness = isElsewhere ? HERE : await nearnessOfHost(hostname, resolve);
    return { origin, nearness };
  };
  const fetch: AuthFetch = async (input, init = {}) => {
    const url = new URL(input);
    home ??= findHome();
    const at = await home;
    const why = judgePlace(url, at);
    if (why !== undefined) throw new RefusedPlace(`${why}.`);
    const deadline = AbortSignal.timeout(REQUEST_MS);
    const headers = [...new Headers(init.headers)].flat();
    const body = init.body === undefined || init.body === null ? undefined : String(init.body);
    try {
      const answer = await send({
        url,
        method: init.method === "POST" ? "POST" : "GET",
        headers,
        body,
        lookup: guardedLookup(at, url, resolve),
        maxBytes: MAX_ANSWER_BYTES,
        signal: AbortSignal.any([deadline, signal]),
      });
      return responseOf(answer);
    } catch (error) {
      if (error instanceof RefusedPlace || signal.aborted) throw error;
      const said = deadline.aborted ? `it did not answer within ${REQUEST_MS / 1000} s` : (error as Error).message;
      // A TypeError, as of any fetch: what could not be asked is not taken for "there is none".
      throw new TypeError(`${url.origin} cannot be asked: ${said}.`, { cause: error });
    }
  };
  fetch.pageRefusal = async (url) => {
    home ??= findHome();
    const at = await home;
    // Where it is as near as can be, there is nothing that it could not name.
    if (url.origin === at.origin || at.nearness === HERE) return judgePlace(url, at);
    return judgePlace(url, at) ?? (await refusalOfHost(url.hostname, at, resolve));
  };
  return fetch;
}

/** A browser may take any of its addresses. One that cannot be resolved here leads nowhere that we know of. */
async function refusalOfHost(
  host: string,
  home: Home,
  resolve: NonNullable<AuthFetchOptions["resolve"]>,
): Promise<string | undefined> {
  const found = await resolve(host).catch(() => []);
  for (const { address } of found) {
    const read = readAddress(address);
    const why = read === undefined ? undefined : judgeAddress(read, `${host} (${address})`, home);
    if (why !== undefined) return why;
  }
  return undefined;
}

function responseOf({ status, headers, body }: ShortAnswer): Response {
  const all = new Headers();
  for (const [name, value] of Object.entries(headers)) for (const one of [value ?? []].flat()) all.append(name, one);
  // It was taken whole and as it is.
  for (const name of ["content-length", "content-encoding", "transfer-encoding"]) all.delete(name);
  const isEmpty = status === 204 || status === 205 || status === 304;
  return new Response(isEmpty ? null : new Uint8Array(body), { status, headers: all });
}

/** What was judged is what is connected to. */
function guardedLookup(home: Home, url: URL, resolve: NonNullable<AuthFetchOptions["resolve"]>): LookupFunction {
  const isOwn = url.origin === home.origin;
  return (hostname, options, callback) => {
    void resolve(hostname).then(
      (found) => {
        const addresses: { address: string; family: number }[] = [];
        let refusal: string | undefined;
        for (const { address } of found) {
          const read = readAddress(address);
          const why =
            read === undefined
              ? `${address} is no plain address`
              : judgeAddress(read, `${hostname} (${address})`, home);
          if (why === undefined || isOwn) addresses.push({ address, family: address.includes(":") ? 6 : 4 });
          else refusal ??= why;
        }
        const [first] = addresses;
        if (first === undefined) callback(new RefusedPlace(`${refusal ?? `${hostname} has no address`}.`), []);
        else if (options.all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

/** The nearest of its addresses; one that cannot be resolved is far, and cannot be reached anyway. */
async function nearnessOfHost(host: string, resolve: NonNullable<AuthFetchOptions["resolve"]>): Promise<Nearness> {
  if (isLoopback(host)) return HERE;
  const literal = readAddress(host.startsWith("[") ? host.slice(1, -1) : host);
  if (literal !== undefined) return nearnessOf(literal);
  const found = await resolve(host).catch(() => []);
  // Each must be near: a name with one far address could be anybody's.
  const all = found.map(({ address }) => {
    const read = readAddress(address);
    return read === undefined ? FAR : nearnessOf(read);
  });
  return all.length === 0 ? FAR : (Math.min(...all) as Nearness);
}

/** Loaded with the first name: it reads the system's settings, and is no part of a start. */
const bySystem = (host: string) => process.getBuiltinModule("node:dns/promises").lookup(host, { all: true });
