// The rules of `--allow`: reads one, and says whether it covers a name or an address. What follows from that is
// destinations.ts.
//
//   wiki.internal        that host, any port             wiki.internal:8080    that host, that port
//   *.corp.example       any name below, at any depth    wiki-*.corp.example   a star within a label stays in it
//   *                    whatever is not loopback        *:443
//   10.1.2.3             an address                      [fd00::5]:8080        fd00::5 (without a port)
//   10.0.0.0/8           a range                         10.0.0.0/8:443        fd00::/8   [fd00::/8]:443

import {
  type Address,
  type AddressRange,
  assess,
  contains,
  isCarrierRange,
  isLoopbackName,
  isLoopbackRange,
  isMetadataName,
  neverRange,
  readAddress,
  readRange,
  startOf,
} from "../../runtime/addresses.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { fits, type Glob, readGlob } from "../../runtime/glob.js";

interface RuleBase {
  /** As it was written. */
  readonly text: string;
  /** Undefined where every port is covered. */
  readonly port: number | undefined;
  /** Whether it opens loopback, which a rule does only by naming it. */
  readonly opensLoopback: boolean;
}

export type Rule =
  | (RuleBase & { readonly kind: "any" })
  | (RuleBase & { readonly kind: "name"; readonly name: string })
  | (RuleBase & { readonly kind: "pattern"; readonly anyDepth: boolean; readonly labels: readonly Glob[] })
  | (RuleBase & { readonly kind: "range"; readonly range: AddressRange });

/** A host name has at most 253 characters; with brackets, prefix and port no rule is longer than this. */
const MAX_RULE = 300;
/** What DNS allows for a name, and for one label of it. */
const MAX_NAME = 253;
const MAX_LABEL = 63;
/** Enough of a bad rule to find it again. */
const MAX_QUOTED = 80;

/** A rule of the operator's that cannot be used. The message names it and says how to mend it. */
export class RuleError extends ExpectedError {
  override readonly name = "RuleError";
  override readonly kind = "usage";
  readonly rule: string;

  constructor(rule: string, why: string) {
    super(`--allow ${JSON.stringify(rule.length > MAX_QUOTED ? `${rule.slice(0, MAX_QUOTED)}…` : rule)}: ${why}`);
    this.rule = rule;
  }
}

export function parseRule(text: string): Rule {
  if (text === "") throw new RuleError(text, "The rule is empty. Name a host, such as wiki.internal:8080.");
  if (text.length > MAX_RULE)
    throw new RuleError(text, `No host is that long. Name one of at most ${MAX_NAME} characters.`);
  // This comes before anything is quoted: what stands before the "@" may be a password.
  if (text.includes("@")) throw new RuleError("…@…", "A rule names no user. Write the host alone.");
  if (text.includes("://")) throw new RuleError(text, `A rule names a host, not a URL. Write ${hostOfUrl(text)}.`);
  if (/[\s,;]/.test(text)) throw new RuleError(text, "One rule, one host. Repeat --allow for each, without spaces.");
  if (/[\\?#%]/.test(text)) throw new RuleError(text, "A rule is a host and a port, nothing else.");
  if (text.startsWith("[")) return bracketed(text);
  if (text.indexOf(":") !== text.lastIndexOf(":")) {
    return text.includes("/") ? rangeRule(text, text, undefined) : addressRule(text, text, undefined);
  }
  const colon = text.lastIndexOf(":");
  const host = colon < 0 ? text : text.slice(0, colon);
  if (host === "") throw new RuleError(text, `The host is missing. Write one before the port, or *${text}.`);
  // This comes before the port: in host:8080/path it is the path that is wrong.
  const slash = text.indexOf("/");
  if (slash >= 0 && readAddress(text.slice(0, slash)) === undefined) throw pathError(text, slash);
  const port = colon < 0 ? undefined : readPort(text, text.slice(colon + 1));
  if (slash >= 0) return rangeRule(text, host, port);
  return hostRule(text, host, port);
}

function bracketed(text: string): Rule {
  const parts = /^\[([^[\]]*)\](?::(.*))?$/.exec(text);
  const inner = parts?.[1];
  if (inner === undefined) {
    throw new RuleError(
      text,
      "The brackets hold the address or the range, a port follows them: [fd00::5]:8080, [fd00::/8]:443.",
    );
  }
  const port = parts?.[2] === undefined ? undefined : readPort(text, parts[2]);
  if (!inner.includes(":")) throw new RuleError(text, `Brackets are for IPv6. Write ${inner}${portSuffix(port)}.`);
  return inner.includes("/") ? rangeRule(text, inner, port) : addressRule(text, inner, port);
}

function readPort(rule: string, text: string): number {
  const port = /^[1-9]\d{0,4}$/.test(text) ? Number(text) : 0;
  if (port < 1 || port > 65_535) {
    throw new RuleError(rule, "The port is a number from 1 to 65535. Leave it away, with its colon, for any port.");
  }
  return port;
}

function addressRule(text: string, address: string, port: number | undefined): Rule {
  const read = readAddress(address);
  if (read === undefined) {
    throw new RuleError(text, "This is no IPv6 address. Write one such as fd00::5, or [fd00::5]:8080 with a port.");
  }
  const { subject, addressClass } = assess(read);
  if (addressClass.kind === "never") throw neverError(text, addressClass.what);
  return {
    kind: "range",
    text,
    port,
    range: { base: subject, bits: subject.length * 8 },
    opensLoopback: addressClass.kind === "loopback",
  };
}

function rangeRule(text: string, range: string, port: number | undefined): Rule {
  const read = readRange(range);
  if (read === undefined)
    throw new RuleError(text, "This is no range. Write one such as 10.0.0.0/8, fd00::/8 or [fd00::/8]:443.");
  const start = startOf(read);
  if (!contains({ base: read.base, bits: read.base.length * 8 }, readAddress(start) ?? [])) {
    const address = range.slice(0, range.indexOf("/"));
    throw new RuleError(text, `The range begins before its address. Write ${start}/${read.bits}, or ${address} alone.`);
  }
  const never = neverRange(read);
  if (never !== undefined) throw neverError(text, never);
  if (isCarrierRange(read)) {
    throw new RuleError(
      text,
      "These addresses are judged by the IPv4 that they carry. Write the IPv4 range, such as 10.0.0.0/8.",
    );
  }
  return { kind: "range", text, port, range: read, opensLoopback: isLoopbackRange(read) };
}

function hostRule(text: string, host: string, port: number | undefined): Rule {
  if (host === "*") return { kind: "any", text, port, opensLoopback: false };
  if (host.includes("*")) return patternRule(text, host, port);
  const read = URL.canParse(`http://${host}/`) ? new URL(`http://${host}/`).hostname : "";
  const address = readAddress(read);
  if (address !== undefined) {
    // 8080 would be 0.0.31.144: whoever writes that means something else.
    if (read !== host) throw new RuleError(text, `This is the address ${read}. Write it so, if it is meant.`);
    return addressRule(text, host, port);
  }
  const name = normalName(read);
  if (name === undefined) throw new RuleError(text, "This is no host name. Write one such as wiki.internal.");
  if (isMetadataName(name)) throw neverError(text, "a name of a cloud's metadata address");
  return { kind: "name", text, port, name, opensLoopback: isLoopbackName(name) };
}

function patternRule(text: string, host: string, port: number | undefined): Rule {
  if (host.includes("**")) throw new RuleError(text, "One star is enough: *.corp.example covers any depth.");
  if (/^[\d.*]+$/.test(host) && /\d/.test(host)) {
    throw new RuleError(text, "Stars are for names. Write addresses as a range, such as 10.0.0.0/8.");
  }
  // A star inside a name that is encoded as a whole would fit other names than it seems.
  if (host.split(".").some((label) => label.includes("*") && /[^ -~]/.test(label))) {
    throw new RuleError(text, "A label with a star is of plain letters, digits and hyphens.");
  }
  const read = URL.canParse(`http://${host}/`) ? normalName(new URL(`http://${host}/`).hostname) : undefined;
  if (read === undefined)
    throw new RuleError(text, "This is no pattern of host names. Write one such as *.corp.example.");
  const labels = read.split(".");
  return {
    kind: "pattern",
    text,
    port,
    anyDepth: labels[0] === "*",
    labels: labels.map(readGlob),
    opensLoopback: isLoopbackName(read),
  };
}

function neverError(text: string, what: string): RuleError {
  return new RuleError(text, `This is ${what}, which no rule opens. Take the rule away.`);
}

function pathError(text: string, slash: number): RuleError {
  if (/^[\d.]+\/\d*$/.test(text)) return new RuleError(text, "This is no range. Write one such as 10.0.0.0/8.");
  return new RuleError(text, `A rule names a host, not a path. Write ${text.slice(0, slash) || "the host"}.`);
}

function hostOfUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.hostname === "") return "the host alone";
  return `${url.hostname}${url.port === "" ? "" : `:${url.port}`}`;
}

function portSuffix(port: number | undefined): string {
  return port === undefined ? "" : `:${port}`;
}

/** The name as the URL parser gives it, without a dot at its end. Undefined for what DNS does not allow. */
export function normalName(hostname: string): string | undefined {
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  if (name === "" || name.length > MAX_NAME) return undefined;
  return name.split(".").every((label) => label !== "" && label.length <= MAX_LABEL) ? name : undefined;
}

export function coversName(rule: Rule, name: string, port: number): boolean {
  if (rule.port !== undefined && rule.port !== port) return false;
  // Nobody means loopback by a star.
  if (isLoopbackName(name) && !rule.opensLoopback) return false;
  if (rule.kind === "any") return true;
  if (rule.kind === "name") return rule.name === name;
  return rule.kind === "pattern" && fitsPattern(rule.labels, rule.anyDepth, name.split("."));
}

/** `subject` as assess() gives it. */
export function coversAddress(rule: Rule, subject: Address, isLoopback: boolean, port: number): boolean {
  if (rule.kind !== "range" || (rule.port !== undefined && rule.port !== port)) return false;
  return contains(rule.range, subject) && (rule.opensLoopback || !isLoopback);
}

function fitsPattern(pattern: readonly Glob[], anyDepth: boolean, labels: readonly string[]): boolean {
  const extra = labels.length - pattern.length;
  if (extra < 0 || (extra > 0 && !anyDepth)) return false;
  return pattern.every((glob, at) => (anyDepth && at === 0) || fits(glob, labels[at + extra] ?? ""));
}
