// Where a login may lead. A server names its authorization server, and that one its endpoints: whoever writes these
// documents could otherwise make us ask addresses for them that only we reach. Pure; who resolves names asks here.

import {
  type Address,
  assess,
  contains,
  isLoopback,
  isLoopbackName,
  isMetadataName,
  readAddress,
  readRange,
} from "../runtime/addresses.js";

/** How near to us something is. What is far may not lead us to what is nearer than itself. */
export const FAR = 0;
const PRIVATE = 1;
export const HERE = 2;
export type Nearness = typeof FAR | typeof PRIVATE | typeof HERE;

/** The networks that are not routed: RFC 1918, 6598 and 4193. */
const PRIVATE_RANGES = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"].flatMap(
  (text) => readRange(text) ?? [],
);

/** Where the server itself is, as far as it says what others may be. */
export interface Home {
  /** Of its entry: the operator chose that one. */
  readonly origin: string;
  readonly nearness: Nearness;
}

/**
 * Whoever asked for it is told this, and nothing was asked of that place. It is a TypeError, as of a fetch that cannot be made:
 * after any other error the SDK would take the server itself for who gives its tokens.
 */
export class RefusedPlace extends TypeError {
  override readonly name = "RefusedPlace";
}

/** Undefined where an address may be asked as far as its text says; a name is judged again by what it resolves to. */
export function judgePlace(url: URL, home: Home | undefined): string | undefined {
  const shown = `${url.protocol}//${url.host}`;
  if (url.username !== "" || url.password !== "") return `${shown} has a user or a password in it`;
  if (url.origin === home?.origin) return undefined;
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url.hostname))) {
    return `${shown.slice(0, 100)} is not https, by which alone logins are made`;
  }
  if (home === undefined) return undefined;
  const bare = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
  const address = readAddress(bare);
  if (address !== undefined) return judgeAddress(address, bare, home);
  const name = bare.toLowerCase().replace(/\.$/, "");
  if (isMetadataName(name)) return `${name} is a name of a cloud's metadata address`;
  return isLoopbackName(name) && home.nearness < HERE ? tooNear(name, HERE) : undefined;
}

/** Undefined where this address may be connected to. */
export function judgeAddress(address: Address, shown: string, home: Home): string | undefined {
  const { addressClass } = assess(address);
  if (addressClass.kind === "never") return `${shown} is ${addressClass.what}`;
  const nearness = nearnessOf(address);
  return nearness > home.nearness ? tooNear(shown, nearness) : undefined;
}

export function nearnessOf(address: Address): Nearness {
  const { subject, addressClass } = assess(address);
  if (addressClass.kind === "loopback") return HERE;
  return PRIVATE_RANGES.some((range) => contains(range, subject)) ? PRIVATE : FAR;
}

function tooNear(shown: string, nearness: Nearness): string {
  const where = nearness === HERE ? "this machine itself" : "a private network";
  return `${shown} is ${where}, where a server that is farther away has nothing to name`;
}
