// What a request must bring before its body is read: a Host and an Origin that are ours, the right media types.
// Pure: it judges header values, and does not know who is calling.

import { isLoopback, isLoopbackName } from "../../runtime/addresses.js";

/** So many verdicts are remembered by header value, because clients repeat themselves. */
const MAX_REMEMBERED = 64;

interface HostPort {
  /** It is in lower case, without brackets and without a trailing dot. */
  readonly name: string;
  readonly port: string;
}

function splitHost(value: string): HostPort | undefined {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]/@\s?#]+))(?::(\d{1,5}))?$/.exec(value);
  if (match === null) return undefined;
  const name = (match[1] ?? match[2] ?? "").toLowerCase().replace(/\.$/, "");
  return name === "" ? undefined : { name, port: match[3] ?? "" };
}

/** Names below `localhost` too: no browser can be made to believe that they are elsewhere. */
function isOwnMachine(name: string): boolean {
  return isLoopbackName(name) || isLoopback(name);
}

/** The path of a request's target, without what is asked for behind it. */
export function pathOf(url: string): string {
  const mark = url.indexOf("?");
  return mark < 0 ? url : url.slice(0, mark);
}

export interface Bound {
  /** The address or name that listen() was given. */
  readonly host: string;
  readonly port: number;
}

/** Decides by the names in Host and Origin, so that a page whose name was made to point here gets nothing. */
export class HostCheck {
  #hosts: ReadonlySet<string> = new Set();
  #origins: ReadonlySet<string> = new Set();
  #bound: Bound = { host: "127.0.0.1", port: 0 };
  readonly #goodHosts = new Set<string>();

  constructor(hosts: readonly string[], origins: readonly string[]) {
    this.allow(hosts, origins);
  }

  /** `hosts` are names, with a port or for any port; `origins` are as browsers write them. In place of those before. */
  allow(hosts: readonly string[], origins: readonly string[]): void {
    this.#goodHosts.clear();
    this.#hosts = new Set(hosts.map((host) => host.toLowerCase()));
    this.#origins = new Set(origins.map((origin) => origin.toLowerCase().replace(/\/$/, "")));
  }

  bind(bound: Bound): void {
    this.#bound = bound;
    this.#goodHosts.clear();
  }

  /** Says why the request is refused; undefined where it is not. `localAddress` is where the connection arrived. */
  refusal(host: string | undefined, origin: string | undefined, localAddress: string | undefined): string | undefined {
    if (host === undefined || !this.#goodHosts.has(host)) {
      if (!this.#hostAllowed(host, localAddress)) {
        return `Host ${JSON.stringify(host?.slice(0, 128) ?? "")} is not a name of this endpoint. Use a loopback address, or add the name to "allowedHosts" in the config.`;
      }
    }
    if (origin === undefined || this.#originAllowed(origin, localAddress)) return undefined;
    return `Origin ${JSON.stringify(origin.slice(0, 128))} may not call this endpoint. Add it to "allowedOrigins" in the config if it should.`;
  }

  /** Whether a page of this origin may read what we answer: the config names it. */
  mayRead(origin: string): boolean {
    return this.#origins.has(origin.toLowerCase());
  }

  #hostAllowed(host: string | undefined, localAddress: string | undefined): boolean {
    const at = host === undefined ? undefined : splitHost(host);
    if (host === undefined || at === undefined) return false;
    const known = this.#nameAllowed(at);
    if (known && this.#goodHosts.size < MAX_REMEMBERED) this.#goodHosts.add(host);
    // Nobody can make a browser believe that an address is another one: only names are rebound.
    return known || at.name === plainAddress(localAddress);
  }

  #nameAllowed(at: HostPort): boolean {
    if (this.#hosts.has(at.name) || this.#hosts.has(at.port === "" ? at.name : `${at.name}:${at.port}`)) return true;
    const ours = at.port === String(this.#bound.port);
    const boundName = this.#bound.host.toLowerCase();
    if (isOwnMachine(at.name)) return ours || isOwnMachine(boundName);
    return ours && at.name === boundName;
  }

  #originAllowed(origin: string, localAddress: string | undefined): boolean {
    const lower = origin.toLowerCase();
    if (this.#origins.has(lower)) return true;
    const match = /^https?:\/\/([^/]+)$/.exec(lower);
    const at = match?.[1] === undefined ? undefined : splitHost(match[1]);
    if (at === undefined) return false;
    const scheme = lower.startsWith("https:") ? "443" : "80";
    const full = at.port === "" ? { name: at.name, port: scheme } : at;
    return (
      this.#nameAllowed(full) || (full.name === plainAddress(localAddress) && full.port === String(this.#bound.port))
    );
  }
}

/** IPv4 addresses arrive as ::ffff:… on a socket that serves both families. */
function plainAddress(address: string | undefined): string | undefined {
  return address?.startsWith("::ffff:") ? address.slice(7) : address;
}

export interface Accepts {
  readonly json: boolean;
  readonly events: boolean;
}

const BOTH: Accepts = { json: true, events: true };
const acceptSeen = new Map<string, Accepts>();

/** What the client can read. A header that is absent means anything. */
export function accepts(header: string | undefined): Accepts {
  if (header === undefined || header === "") return BOTH;
  const seen = acceptSeen.get(header);
  if (seen !== undefined) return seen;
  let json = false;
  let events = false;
  for (const part of header.toLowerCase().split(",")) {
    const [type, ...parameters] = part.split(";").map((piece) => piece.trim());
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) continue;
    if (type === "*/*" || type === "application/*" || type === "application/json") json = true;
    if (type === "*/*" || type === "text/*" || type === "text/event-stream") events = true;
  }
  const verdict = json && events ? BOTH : { json, events };
  if (acceptSeen.size < MAX_REMEMBERED) acceptSeen.set(header, verdict);
  return verdict;
}

export function isJsonType(header: string | undefined): boolean {
  if (header === "application/json") return true;
  if (header === undefined) return false;
  const end = header.indexOf(";");
  return (end < 0 ? header : header.slice(0, end)).trim().toLowerCase() === "application/json";
}

/** The token of `Authorization: Bearer …`. */
export function bearer(header: string | undefined): string | undefined {
  if (header === undefined || header.length < 8) return undefined;
  if (header.slice(0, 7).toLowerCase() !== "bearer ") return undefined;
  const token = header.slice(7).trim();
  return token === "" ? undefined : token;
}

const TOKEN_PARAMETER = /(?:^|&)(?:access_token|token|api_?key|key|bearer|authorization)=/i;

/** URLs end up in logs and histories: a token there is refused even if it is right. */
export function hasTokenInQuery(query: string): boolean {
  return TOKEN_PARAMETER.test(query);
}
