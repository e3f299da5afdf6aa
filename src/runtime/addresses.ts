// IP addresses: says what one is by itself: never to be reached, loopback, or open to rules; and how what listens on all
// of them is reached from here. How they are read, and the one test for loopback, is network/loopback. Knows no rules and no names' addresses; executor/allow does.

import { type Address, isOwnLoopback, readAddress } from "./network/loopback.js";

export { type Address, isLoopback, isLoopbackName, readAddress } from "./network/loopback.js";

/**
 * The address of what listens on all interfaces, for whoever is on this machine: loopback is one of them, and nobody
 * can be sure to connect to the address that stands for all.
 */
export function fromHere(url: string): string {
  return url.replace(/^(\w+:\/\/)0\.0\.0\.0(?=[:/])/, "$1127.0.0.1").replace(/^(\w+:\/\/)\[::\](?=[:/])/, "$1[::1]");
}

export interface AddressRange {
  readonly base: Address;
  /** How many leading bits of the base count. */
  readonly bits: number;
}

export type AddressClass =
  | { readonly kind: "open" }
  /** This machine itself: only a rule that names it opens it. */
  | { readonly kind: "loopback" }
  | { readonly kind: "never"; readonly what: string };

export interface Assessed {
  /** What rules are held against: of IPv4 inside IPv6, the IPv4. */
  readonly subject: Address;
  readonly addressClass: AddressClass;
}

/** `10.0.0.0/8`, `fd00::/8`. The base may have bits behind the prefix: see startOf(). */
export function readRange(text: string): AddressRange | undefined {
  const slash = text.indexOf("/");
  const base = readAddress(text.slice(0, Math.max(slash, 0)));
  const bits = text.slice(slash + 1);
  if (base === undefined || !/^(?:0|[1-9]\d{0,2})$/.test(bits) || Number(bits) > base.length * 8) return undefined;
  return { base, bits: Number(bits) };
}

export function contains(range: AddressRange, address: Address): boolean {
  if (range.base.length !== address.length) return false;
  const whole = range.bits >> 3;
  for (let at = 0; at < whole; at += 1) {
    if (range.base[at] !== address[at]) return false;
  }
  const rest = range.bits & 7;
  if (rest === 0) return true;
  const mask = (0xff << (8 - rest)) & 0xff;
  return ((range.base[whole] ?? 0) & mask) === ((address[whole] ?? 0) & mask);
}

/** Whether all of `inner` lies in `outer`. */
export function within(inner: AddressRange, outer: AddressRange): boolean {
  return inner.bits >= outer.bits && contains(outer, inner.base);
}

/** The first address of a range, spelled: what its base should have been. */
export function startOf(range: AddressRange): string {
  const bytes = range.base.map((byte, at) => {
    const kept = Math.min(8, Math.max(0, range.bits - at * 8));
    return byte & ((0xff << (8 - kept)) & 0xff);
  });
  return addressText(bytes);
}

export function addressText(address: Address): string {
  if (address.length === 4) return address.join(".");
  const groups: string[] = [];
  for (let at = 0; at < 16; at += 2) groups.push((((address[at] ?? 0) << 8) | (address[at + 1] ?? 0)).toString(16));
  // The URL parser is at hand and shortens as everybody does.
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}

/** Reads the ranges of this file's tables, which are right. */
function ranged(text: string): AddressRange {
  const range = readRange(text);
  if (range === undefined) throw new TypeError(`${text} is no range`);
  return range;
}

const LOOPBACK4 = ranged("127.0.0.0/8");
const LOOPBACK6 = ranged("::1/128");

const METADATA = "a metadata address of a cloud";

/** Ranges that nobody reaches through an executor, whatever its rules. The first that fits says why. */
const NEVER: readonly { readonly range: AddressRange; readonly what: string }[] = [
  // Where machines of a cloud read their credentials. Most lie in link-local, where they are refused anyway: named for
  // the message. EC2, Azure, Google and many more; then Alibaba, Azure's agent, Oracle.
  { range: ranged("169.254.169.254/32"), what: METADATA },
  { range: ranged("100.100.100.200/32"), what: METADATA },
  { range: ranged("168.63.129.16/32"), what: METADATA },
  { range: ranged("192.0.0.192/32"), what: METADATA },
  // EC2 (all of its local services), Google, Oracle, Scaleway, Linode.
  { range: ranged("fd00:ec2::/32"), what: METADATA },
  { range: ranged("fd20:ce::254/128"), what: METADATA },
  { range: ranged("fd00:c1::a9fe:a9fe/128"), what: METADATA },
  { range: ranged("fd00:42::42/128"), what: METADATA },
  { range: ranged("fd00:a9fe:a9fe::1/128"), what: METADATA },
  // On many systems "no address" is loopback by another name.
  { range: ranged("0.0.0.0/8"), what: "an unspecified address" },
  { range: ranged("::/128"), what: "an unspecified address" },
  { range: ranged("169.254.0.0/16"), what: "a link-local address" },
  { range: ranged("fe80::/10"), what: "a link-local address" },
  { range: ranged("224.0.0.0/4"), what: "a multicast address" },
  { range: ranged("ff00::/8"), what: "a multicast address" },
  { range: ranged("255.255.255.255/32"), what: "the broadcast address" },
  // Its IPv4 stands in a place that each network chooses, so nobody can say where it leads.
  { range: ranged("64:ff9b:1::/48"), what: "a NAT64 address of a local prefix" },
];

interface Carrier {
  readonly range: AddressRange;
  readonly name: string;
  /** Where the IPv4 addresses begin; the first is the one that rules are held against. */
  readonly at: readonly number[];
  /** XORed over the first: Teredo hides it so. */
  readonly mask: number;
}

/** IPv6 that leads to an IPv4. */
const CARRIERS: readonly Carrier[] = [
  { range: ranged("::ffff:0:0/96"), name: "mapped", at: [12], mask: 0 },
  { range: ranged("::ffff:0:0:0/96"), name: "translated", at: [12], mask: 0 },
  { range: ranged("::/96"), name: "compatible", at: [12], mask: 0 },
  { range: ranged("64:ff9b::/96"), name: "NAT64", at: [12], mask: 0 },
  { range: ranged("2002::/16"), name: "6to4", at: [2], mask: 0 },
  // The client's address, and that of the server that is spoken to first.
  { range: ranged("2001::/32"), name: "Teredo", at: [12, 4], mask: 0xff },
];

const OPEN: AddressClass = { kind: "open" };
const LOOPBACK: AddressClass = { kind: "loopback" };

export function assess(address: Address): Assessed {
  const addressClass = classOf(address);
  if (address.length === 4 || addressClass.kind !== "open") return { subject: address, addressClass };
  const carrier = CARRIERS.find(({ range }) => contains(range, address));
  if (carrier === undefined) return { subject: address, addressClass };
  const subjects = carrier.at.map((at, index) =>
    address.slice(at, at + 4).map((byte) => (index === 0 ? byte ^ carrier.mask : byte)),
  );
  const subject = subjects[0] ?? address;
  let worst: AddressClass = OPEN;
  for (const one of subjects) {
    const inner = classOf(one);
    if (inner.kind === "never")
      return { subject, addressClass: { kind: "never", what: `${inner.what} (${addressText(one)})` } };
    // A mapped address is this machine's loopback. Behind a translator or a tunnel it is somebody else's.
    if (inner.kind === "loopback" && carrier.name !== "mapped") {
      return {
        subject,
        addressClass: { kind: "never", what: `loopback (${addressText(one)}) behind a ${carrier.name} address` },
      };
    }
    if (inner.kind === "loopback") worst = inner;
  }
  return { subject, addressClass: worst };
}

function classOf(address: Address): AddressClass {
  for (const { range, what } of NEVER) {
    if (contains(range, address)) return { kind: "never", what };
  }
  return isOwnLoopback(address) ? LOOPBACK : OPEN;
}

/** What all of a range is, where it is all one thing that no rule can open. */
export function neverRange(range: AddressRange): string | undefined {
  return NEVER.find((never) => within(range, never.range))?.what;
}

export function isLoopbackRange(range: AddressRange): boolean {
  return within(range, LOOPBACK4) || within(range, LOOPBACK6);
}

/** Whether a range lies where addresses are judged by the IPv4 they carry, so that a rule for it would never fit. */
export function isCarrierRange(range: AddressRange): boolean {
  return !isLoopbackRange(range) && CARRIERS.some((carrier) => within(range, carrier.range));
}

/** Names that clouds give their metadata addresses. */
const METADATA_NAMES: readonly string[] = [
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "metadata.azure.internal",
  "metadata.azure.com",
  "metadata.tencentyun.com",
  "metadata.platformequinix.com",
  "metadata.packet.net",
  "api.metadata.cloud.ibm.com",
  "rancher-metadata",
  "instance-data",
];

/** `name` in lower case, without a dot at its end. */
export function isMetadataName(name: string): boolean {
  // The resolver's search list may have been added: instance-data.eu-west-1.compute.internal.
  return METADATA_NAMES.includes(name) || name.startsWith("instance-data.") || name.startsWith("rancher-metadata.");
}
