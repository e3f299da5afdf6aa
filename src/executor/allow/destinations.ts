// What an executor may reach, against requests that a server forges (SSRF): holds URLs and resolved addresses against
// the rules of `--allow`. Resolves nothing and connects to nothing; resolve.ts does, and asks here about each address.

import {
  type Address,
  type AddressClass,
  assess,
  isLoopbackName,
  isMetadataName,
  readAddress,
} from "../../runtime/addresses.js";
import { ExpectedError } from "../../runtime/expected-error.js";
import { coversAddress, coversName, normalName, parseRule, type Rule } from "./rules.js";

export type RefusalReason =
  /** Neither http nor https. */
  | "scheme"
  /** A user or a password in the URL. */
  | "userinfo"
  /** No host that could be resolved. */
  | "host"
  /** A name or an address that no rule opens. */
  | "never"
  /** This machine, and no rule names it. */
  | "loopback"
  | "no-rule";

export interface DestinationRefusal {
  readonly reason: RefusalReason;
  /** One sentence each. */
  readonly why: string;
  readonly advice: string;
}

interface Place {
  /** The name or address to resolve and connect to; IPv6 has no brackets here. */
  readonly host: string;
  readonly port: number;
  /** The host is an address: there is nothing to resolve. */
  readonly isAddress: boolean;
}

export type NameVerdict =
  /** The host may be reached if its addresses may, as a name can lead anywhere. For an address this is final. */
  | (Place & { readonly kind: "allowed"; readonly rule: string })
  /** No rule has the name, but one may have its address. */
  | (Place & { readonly kind: "by-address" })
  | (Place & DestinationRefusal & { readonly kind: "refused" });

export type AddressVerdict =
  | { readonly kind: "allowed"; readonly rule: string }
  | ({ readonly kind: "refused" } & DestinationRefusal);

/** Thrown for a destination that is refused. The message says why and what to do. */
export class DestinationRefused extends ExpectedError {
  override readonly name = "DestinationRefused";
  override readonly kind = "failed";
  readonly code = "ERR_DESTINATION_REFUSED";
  readonly reason: RefusalReason;

  readonly why: string;
  readonly advice: string;

  constructor(refusal: DestinationRefusal) {
    super(`${refusal.why} ${refusal.advice}`);
    this.reason = refusal.reason;
    this.why = refusal.why;
    this.advice = refusal.advice;
  }
}

/** Characters of a host that are shown in a message. */
const MAX_QUOTED = 100;

export class Destinations {
  readonly #rules: readonly Rule[];

  private constructor(rules: readonly Rule[]) {
    this.#rules = rules;
  }

  /** Throws RuleError. Without rules nothing may be reached. */
  static parse(rules: readonly string[]): Destinations {
    return new Destinations(rules.map(parseRule));
  }

  /** For every URL that is about to be requested, those of redirects too. */
  judgeUrl(url: URL): NameVerdict {
    const bare = url.hostname.startsWith("[") ? url.hostname.slice(1, -1) : url.hostname;
    const address = readAddress(bare);
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    const place: Place = { host: bare, port, isAddress: address !== undefined };
    if (url.protocol !== "http:" && url.protocol !== "https:") {
      return refused(place, "scheme", `An executor makes no ${quote(url.protocol)} requests.`, "Use http or https.");
    }
    if (url.username !== "" || url.password !== "") {
      return refused(place, "userinfo", "The URL carries a user or a password.", "Send them in a header instead.");
    }
    if (address !== undefined) return { ...place, ...this.#judgeLiteral(place, address) };
    const name = normalName(bare);
    if (name === undefined) return refused(place, "host", `${quote(bare)} is no host name.`, "Correct the URL.");
    return this.#judgeName(place, name);
  }

  /** An address that the host of `verdict` resolved to, as the system will be told to connect to it. */
  judgeAddress(address: string, verdict: NameVerdict): AddressVerdict {
    if (verdict.kind === "refused") {
      return { kind: "refused", reason: verdict.reason, why: verdict.why, advice: verdict.advice };
    }
    if (verdict.isAddress && verdict.kind === "allowed" && address === verdict.host) {
      return { kind: "allowed", rule: verdict.rule };
    }
    const read = verdict.isAddress ? undefined : readAddress(address);
    if (read === undefined) {
      const why = `${quote(verdict.host)} resolves to ${quote(address)}, which is no plain address of it.`;
      return { kind: "refused", reason: "host", why, advice: "Correct what the name resolves to." };
    }
    return this.#judgeResolved(verdict, address, read);
  }

  #judgeName(place: Place, name: string): NameVerdict {
    if (isMetadataName(name)) {
      return refused(place, "never", `${quote(name)} is a name of a cloud's metadata address.`, NEVER_ADVICE);
    }
    const rule = this.#rules.find((one) => coversName(one, name, place.port));
    if (rule !== undefined) return { ...place, kind: "allowed", rule: rule.text };
    const isLoopback = isLoopbackName(name);
    const mayByAddress = this.#rules.some(
      ({ kind, port, opensLoopback }) =>
        kind === "range" && (port === undefined || port === place.port) && (opensLoopback || !isLoopback),
    );
    // Without such a rule the name is not even asked about: whoever resolves names can be told secrets in them.
    if (mayByAddress) return { ...place, kind: "by-address" };
    if (isLoopback) return refused(place, "loopback", `${quote(name)} is the executor's own machine.`, advise(place));
    return refused(place, "no-rule", `No --allow rule covers ${spot(place)}.`, advise(place));
  }

  #judgeLiteral(place: Place, address: Address): AddressVerdict {
    const { subject, addressClass } = assess(address);
    if (addressClass.kind === "never") return neverReached(place.host, addressClass.what);
    const rule =
      this.#coveringAddress(subject, addressClass, place.port) ?? this.#coveringAny(addressClass, place.port);
    if (rule !== undefined) return { kind: "allowed", rule: rule.text };
    const why =
      addressClass.kind === "loopback"
        ? `${place.host} is the executor's own machine.`
        : `No --allow rule covers ${spot(place)}.`;
    return {
      kind: "refused",
      reason: addressClass.kind === "loopback" ? "loopback" : "no-rule",
      why,
      advice: advise(place),
    };
  }

  #judgeResolved(verdict: Exclude<NameVerdict, { kind: "refused" }>, address: string, read: Address): AddressVerdict {
    const { subject, addressClass } = assess(read);
    const resolved = `${quote(verdict.host)} resolves to ${address}, which`;
    if (addressClass.kind === "never") return neverReached(resolved, addressClass.what);
    const rule = this.#coveringAddress(subject, addressClass, verdict.port);
    if (rule !== undefined) return { kind: "allowed", rule: rule.text };
    const there = advise({ ...verdict, host: address });
    if (addressClass.kind === "loopback") {
      if (verdict.kind === "allowed" && this.#namedLoopback(verdict)) return { kind: "allowed", rule: verdict.rule };
      return { kind: "refused", reason: "loopback", why: `${resolved} is the executor's own machine.`, advice: there };
    }
    if (verdict.kind === "allowed") return { kind: "allowed", rule: verdict.rule };
    return { kind: "refused", reason: "no-rule", why: `${resolved} no --allow rule covers.`, advice: advise(verdict) };
  }

  #coveringAddress(subject: Address, addressClass: AddressClass, port: number): Rule | undefined {
    return this.#rules.find((rule) => coversAddress(rule, subject, addressClass.kind === "loopback", port));
  }

  #coveringAny(addressClass: AddressClass, port: number): Rule | undefined {
    if (addressClass.kind === "loopback") return undefined;
    return this.#rules.find((rule) => rule.kind === "any" && (rule.port === undefined || rule.port === port));
  }

  #namedLoopback(verdict: Place): boolean {
    const name = normalName(verdict.host);
    if (name === undefined) return false;
    return this.#rules.some((rule) => rule.opensLoopback && coversName(rule, name, verdict.port));
  }
}

const NEVER_ADVICE = "No rule opens it.";

function refused(place: Place, reason: RefusalReason, why: string, advice: string): NameVerdict {
  return { ...place, kind: "refused", reason, why, advice };
}

function neverReached(subject: string, what: string): AddressVerdict {
  return { kind: "refused", reason: "never", why: `${subject} is ${what}.`, advice: NEVER_ADVICE };
}

/** The narrowest rule that would do. */
function advise(place: Place): string {
  return `Start the executor with --allow ${spot(place)} if it may be reached.`;
}

function spot({ host, port }: Place): string {
  return `${host.includes(":") ? `[${host}]` : quote(host)}:${port}`;
}

/** Shows a host that somebody else chose. The URL parser leaves no control characters and no spaces in one. */
function quote(host: string): string {
  return host.length > MAX_QUOTED ? `${host.slice(0, MAX_QUOTED)}…` : host;
}
