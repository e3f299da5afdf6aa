// An IP address as it is written, and the one test for loopback. The operator's page asks it too, so that nothing is
// imported here.

/** Four or sixteen bytes. */
export type Address = readonly number[];

/** The longest spelling of an IPv6 address has 45 characters; what is longer is none, and is not looked at. */
const MAX_ADDRESS_TEXT = 45;

/**
 * Undefined for whatever is not plainly one address: zones (`fe80::1%eth0`), ports, octal and short IPv4 included.
 * The same text could mean another address to the system, and that one would not have been judged.
 */
export function readAddress(text: string): Address | undefined {
  if (text.length > MAX_ADDRESS_TEXT) return undefined;
  return text.includes(":") ? readIPv6(text) : readIPv4(text);
}

function readIPv4(text: string): Address | undefined {
  const parts = text.split(".");
  if (parts.length !== 4) return undefined;
  const bytes: number[] = [];
  for (const part of parts) {
    if (!/^(?:0|[1-9]\d{0,2})$/.test(part) || Number(part) > 255) return undefined;
    bytes.push(Number(part));
  }
  return bytes;
}

function readIPv6(text: string): Address | undefined {
  const cut = text.lastIndexOf(":") + 1;
  let tail: Address = [];
  let groups = text;
  if (text.includes(".", cut)) {
    const dotted = readIPv4(text.slice(cut));
    if (dotted === undefined) return undefined;
    tail = dotted;
    // Two zero groups hold the place of the dotted part.
    groups = `${text.slice(0, cut)}0:0`;
  }
  const [left, right, third] = groups.split("::");
  if (left === undefined || third !== undefined) return undefined;
  const head = readGroups(left);
  const rest = readGroups(right ?? "");
  if (head === undefined || rest === undefined) return undefined;
  const missing = 16 - head.length - rest.length;
  if (right === undefined ? missing !== 0 : missing < 2) return undefined;
  const bytes = [...head, ...new Array<number>(missing).fill(0), ...rest];
  bytes.splice(16 - tail.length, tail.length, ...tail);
  return bytes;
}

function readGroups(text: string): number[] | undefined {
  if (text === "") return [];
  const bytes: number[] = [];
  for (const group of text.split(":")) {
    if (!/^[0-9a-f]{1,4}$/i.test(group)) return undefined;
    const value = Number.parseInt(group, 16);
    bytes.push(value >> 8, value & 0xff);
  }
  return bytes;
}

/** Whether it is loopback by itself: an IPv4 inside an IPv6 is not looked at. */
export function isOwnLoopback(address: Address): boolean {
  if (address.length === 4) return address[0] === 127;
  return address.every((byte, at) => byte === (at === 15 ? 1 : 0));
}

/** The IPv4 of `::ffff:a.b.c.d`, which is the same machine to the system. */
function mapped(address: Address): Address | undefined {
  const isMapped = address.slice(0, 12).every((byte, at) => byte === (at < 10 ? 0 : 0xff));
  return isMapped ? address.slice(12) : undefined;
}

/**
 * Whether whoever listens at this host is reached from this machine alone, and whoever connects to it stays on it. It
 * decides whether a door may be open without a token, so it is strict: an address that is written as everybody writes
 * it, IPv6 with brackets or without, or the name `localhost`, which the hosts file of every machine has.
 *
 * Other names that mean this machine (`a.localhost`, `localhost.`) are not trusted here: the system asks DNS for them,
 * and who answers could send us anywhere. See isLoopbackName(). Nor are short, octal, decimal and hexadecimal
 * spellings of an address (`127.1`, `0x7f000001`): systems do not agree on what they mean.
 */
export function isLoopback(host: string): boolean {
  const bare = /^\[[^\]]*:[^\]]*\]$/.test(host) ? host.slice(1, -1) : host;
  const address = readAddress(bare);
  if (address !== undefined) return isOwnLoopback(address.length === 16 ? (mapped(address) ?? address) : address);
  return host.toLowerCase() === "localhost";
}

/**
 * Whether a name means loopback to whoever wrote it (RFC 6761): to a browser, which sends it as Host and never asks DNS
 * for it, or to the operator in a rule. `name` in lower case, without a dot at its end.
 */
export function isLoopbackName(name: string): boolean {
  return name === "localhost" || name.endsWith(".localhost");
}
