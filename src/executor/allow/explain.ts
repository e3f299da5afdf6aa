// What `toolway executor --dry-run URL` says: whether a URL may be reached, by which rule, and of each address why.
// Resolves as a request would, connects to nothing.

import { safeUrl } from "../../runtime/redact/safe-url.js";
import type { Destinations, NameVerdict } from "./destinations.js";
import { judgeAll, type Resolve, refusalOf, resolveBySystem } from "./resolve.js";

export interface ExplainedAddress {
  readonly address: string;
  readonly allowed: boolean;
  /** The rule where it is allowed, else why it is not. */
  readonly why: string;
}

export interface Explanation {
  readonly allowed: boolean;
  /** Without user, password, query and fragment, which may be secret. Undefined where there is no URL to be read. */
  readonly url: string | undefined;
  readonly host: string | undefined;
  readonly port: number | undefined;
  /** The rule that allows it. */
  readonly rule: string | undefined;
  /** Empty where the URL by itself settles it: then nothing is resolved. */
  readonly addresses: readonly ExplainedAddress[];
  readonly why: string;
  /** Empty where there is nothing to do. */
  readonly advice: string;
}

export async function explain(
  rawUrl: string,
  destinations: Destinations,
  resolve: Resolve = resolveBySystem,
): Promise<Explanation> {
  if (!URL.canParse(rawUrl)) return { ...UNREADABLE };
  const url = new URL(rawUrl);
  const verdict = destinations.judgeUrl(url);
  const base = { url: shown(url), host: verdict.host, port: verdict.port };
  if (verdict.kind === "refused") {
    return { ...base, allowed: false, rule: undefined, addresses: [], why: verdict.why, advice: verdict.advice };
  }
  return { ...base, ...(await explainAddresses(verdict, destinations, resolve)) };
}

const UNREADABLE: Explanation = {
  allowed: false,
  url: undefined,
  host: undefined,
  port: undefined,
  rule: undefined,
  addresses: [],
  why: "This is no URL.",
  advice: "Write one such as http://wiki.internal:8080/mcp.",
};

async function explainAddresses(
  verdict: Exclude<NameVerdict, { kind: "refused" }>,
  destinations: Destinations,
  resolve: Resolve,
): Promise<Pick<Explanation, "allowed" | "rule" | "addresses" | "why" | "advice">> {
  let judged: Awaited<ReturnType<typeof judgeAll>>;
  try {
    judged = await judgeAll(verdict, destinations, resolve);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? "no reason given";
    const why = `${verdict.host} cannot be resolved on this machine (${code}).`;
    return { allowed: false, rule: undefined, addresses: [], why, advice: "Check the name, and this machine's DNS." };
  }
  const addresses = judged.map(({ address, verdict: one }) => ({
    address,
    allowed: one.kind === "allowed",
    why: one.kind === "allowed" ? `rule ${one.rule}` : one.why,
  }));
  const rule = judged.flatMap(({ verdict: one }) => (one.kind === "allowed" ? [one.rule] : []))[0];
  if (rule === undefined) {
    const refusal = refusalOf(verdict.host, judged);
    return { allowed: false, rule, addresses, why: refusal.why, advice: refusal.advice };
  }
  return { allowed: true, rule, addresses, why: `The rule ${rule} allows it.`, advice: "" };
}

/** The explanation in lines, for people. */
export function explanationLines(explanation: Explanation): string[] {
  const { allowed, url, addresses, why, advice } = explanation;
  const lines = [`${url ?? "The URL"}: ${allowed ? "would be requested" : "would be refused"}`, `  ${why}`];
  // Where one address was refused, the line above has said it.
  if (allowed || addresses.length > 1) {
    const width = Math.max(0, ...addresses.map(({ address }) => address.length));
    for (const one of addresses) {
      lines.push(`  ${one.address.padEnd(width)}  ${one.allowed ? "allowed" : "refused"}: ${one.why}`);
    }
  }
  if (advice !== "") lines.push(`  ${advice}`);
  return lines;
}

/** Of a URL that is none of ours (`data:`, `javascript:`) the whole content is the path. */
function shown(url: URL): string {
  return url.host === "" ? url.protocol : safeUrl(url);
}
