// From a URL to the addresses that may be connected to. A name is resolved once for each connection, and what was
// judged is what is connected to: DNS that answers differently the next time changes nothing.

import type { LookupFunction } from "node:net";
import { type AddressVerdict, DestinationRefused, type Destinations, type NameVerdict } from "./destinations.js";

interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/** All addresses of a name, in the order in which they should be tried. Rejects as `dns.lookup` does. */
export type Resolve = (host: string) => Promise<readonly { readonly address: string }[]>;

/**
 * Addresses that are tried for one connection. A name can have hundreds, and each attempt is a connection to somebody.
 */
const MAX_PINNED = 16;

/** Addresses that a refusal tells of: a message is for people. */
const MAX_TOLD = 4;

export const resolveBySystem: Resolve = (host) =>
  // Loaded with the first name: it is no part of a start.
  process.getBuiltinModule("node:dns/promises").lookup(host, { all: true });

type Usable = Exclude<NameVerdict, { kind: "refused" }>;

/**
 * A `lookup` for `net.connect` and whatever hands its options there, to connect to the origin of `url` and to nothing
 * else. Resolves and judges at every connection. Throws DestinationRefused where no lookup is needed to say so: of an
 * address Node asks no lookup, so a refused one must not get as far as this.
 */
export function pinnedLookup(url: URL, destinations: Destinations, resolve: Resolve = resolveBySystem): LookupFunction {
  const verdict = usable(destinations.judgeUrl(url));
  return (hostname, options, callback) => {
    if (hostname !== verdict.host) {
      process.nextTick(callback, new TypeError(`The lookup of ${verdict.host} was asked for another host.`), []);
      return;
    }
    pin(verdict, destinations, resolve).then(
      (addresses) => hand(hostname, addresses, options, callback),
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };
}

type LookupOptions = Parameters<LookupFunction>[1];
type LookupCallback = Parameters<LookupFunction>[2];

function hand(
  hostname: string,
  addresses: readonly ResolvedAddress[],
  options: LookupOptions,
  callback: LookupCallback,
): void {
  const family = Number(String(options.family ?? 0).replace("IPv", ""));
  const fitting = family === 4 || family === 6 ? addresses.filter((one) => one.family === family) : addresses;
  const first = fitting[0];
  if (first === undefined) {
    const error: NodeJS.ErrnoException = new Error(
      `${hostname} has no address of family ${family} that may be reached`,
    );
    error.code = "ENOTFOUND";
    callback(error, []);
  } else if (options.all === true) {
    callback(null, fitting.slice());
  } else {
    callback(null, first.address, first.family);
  }
}

function usable(verdict: NameVerdict): Usable {
  if (verdict.kind === "refused") throw new DestinationRefused(verdict);
  return verdict;
}

/** Returns at least one, and all may be connected to. Throws DestinationRefused, or what the resolver throws. */
async function pin(verdict: Usable, destinations: Destinations, resolve: Resolve): Promise<ResolvedAddress[]> {
  const judged = await judgeAll(verdict, destinations, resolve);
  const addresses: ResolvedAddress[] = [];
  for (const one of judged) {
    if (one.verdict.kind === "refused" || addresses.length === MAX_PINNED) continue;
    addresses.push({ address: one.address, family: one.address.includes(":") ? 6 : 4 });
  }
  if (addresses.length === 0) throw refusalOf(verdict.host, judged);
  return addresses;
}

export interface Judged {
  readonly address: string;
  readonly verdict: AddressVerdict;
}

/** Judges every address of a host. A host that is an address has that one. */
export async function judgeAll(verdict: Usable, destinations: Destinations, resolve: Resolve): Promise<Judged[]> {
  const found = verdict.isAddress ? [{ address: verdict.host }] : await resolve(verdict.host);
  return found.map(({ address }) => ({ address, verdict: destinations.judgeAddress(address, verdict) }));
}

/** Makes one refusal of those of all the addresses of a host. */
export function refusalOf(host: string, judged: readonly Judged[]): DestinationRefused {
  const refusals = judged.flatMap(({ verdict }) => (verdict.kind === "refused" ? [verdict] : []));
  // What can be mended is worth more words than what cannot.
  const told = refusals.find(({ reason }) => reason !== "never") ?? refusals[0];
  if (told === undefined) {
    return new DestinationRefused({ reason: "host", why: `${host} has no address.`, advice: "Check the name." });
  }
  const whys = [...new Set(refusals.map(({ why }) => why))];
  const more = whys.length > MAX_TOLD ? ` ${whys.length - MAX_TOLD} more of its addresses are refused too.` : "";
  return new DestinationRefused({ ...told, why: `${whys.slice(0, MAX_TOLD).join(" ")}${more}` });
}
