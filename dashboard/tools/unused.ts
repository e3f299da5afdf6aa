// Tools that nobody has called for a week, or since they are counted: what they cost, and the lines of a config that hide
// them. It decides only, and knows no browser.

import type { ToolsHistoryAnswer } from "../../src/contracts/control/history.js";
import type { ToolInShort } from "../../src/contracts/control/tools.js";

/** Who works by the week calls what they need once in it. */
const A_WEEK_MS = 7 * 86_400_000;

export interface Unused {
  readonly count: number;
  readonly tokens: number;
  /** Since when none of them was called. */
  readonly sinceMs: number;
  /** Of entries of the config, by server. */
  readonly lines: string;
}

/** Undefined where nothing was called yet, since nothing is known then, and where every tool is in use. */
export function unusedTools(
  tools: readonly ToolInShort[],
  { since, tools: used }: ToolsHistoryAnswer,
  nowMs: number,
): Unused | undefined {
  if (since === undefined) return undefined;
  const sinceMs = Math.max(Date.parse(since), nowMs - A_WEEK_MS);
  const inUse = new Set(
    used.flatMap(({ server, tool, lastUsedAt }) => (Date.parse(lastUsedAt) < sinceMs ? [] : [`${server}/${tool}`])),
  );
  const unused = tools.filter(({ server, ownName }) => !inUse.has(`${server}/${ownName}`));
  if (unused.length === 0) return undefined;
  const byServer = new Map<string, string[]>();
  for (const { server, ownName } of unused) byServer.set(server, [...(byServer.get(server) ?? []), ownName]);
  const entries = [...byServer].map(([server, names]) => [
    server,
    { tools: Object.fromEntries(names.map((name) => [name, { hide: true }])) },
  ]);
  return {
    count: unused.length,
    tokens: unused.reduce((all, { tokens }) => all + tokens, 0),
    sinceMs,
    lines: JSON.stringify({ mcpServers: Object.fromEntries(entries) }, undefined, 2),
  };
}

/** "Monday" within a week, the time of day within a day. */
export function sinceWords(ms: number, nowMs: number, locale?: string): string {
  const date = new Date(ms);
  if (nowMs - ms < 86_400_000) return date.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" });
  if (nowMs - ms < A_WEEK_MS) return date.toLocaleDateString(locale, { weekday: "long" });
  return date.toLocaleDateString(locale, { weekday: "long", day: "numeric", month: "long" });
}

const PINS: Readonly<Record<string, readonly [shape: string, word: string, kind: string]>> = {
  pinned: ["●", "pinned", "good"],
  always: ["○", "trusted", "calm"],
  changed: ["▲", "changed", "bad"],
  rejected: ["▲", "rejected", "bad"],
  refused: ["▲", "cannot be pinned", "bad"],
};

/** How it stands with its pin, by shape, word and colour. */
export function pinWords(pin: ToolInShort["pin"]): readonly [shape: string, word: string, kind: string] {
  return PINS[pin ?? ""] ?? ["○", "not pinned", "calm"];
}

const CLAIMS: Readonly<Record<string, readonly [yes: string, no: string]>> = {
  readOnlyHint: ["it only reads", "it may change something"],
  destructiveHint: ["it may destroy something", "it destroys nothing"],
  idempotentHint: ["twice is as good as once", "twice is not as good as once"],
  openWorldHint: ["it reaches beyond this machine", "it reaches nothing beyond its server"],
};

/** What a server claims of its tool, in words; what it made up itself as it wrote it. */
export function claimWords(annotations: Readonly<Record<string, unknown>> | undefined): string {
  const words = Object.entries(annotations ?? {}).map(([key, value]) => {
    const known = CLAIMS[key];
    if (known !== undefined && typeof value === "boolean") return known[value ? 0 : 1];
    return `${key}: ${JSON.stringify(value)}`;
  });
  return words.length === 0 ? "nothing of what it does" : words.join(", ");
}

/** Who may call it, in a cell. */
export function whoMayCall(roles: readonly string[] | undefined, isQuarantined = false): string {
  if (roles?.length === 0) return "nobody";
  const allowed = roles?.map((role) => (role === "*" ? "all other roles" : role)).join(", ") ?? "everybody";
  return isQuarantined ? `nobody until it is accepted, then ${allowed}` : allowed;
}

export interface RoleAccess {
  readonly role: string;
  readonly allowed: boolean;
  readonly rule?: string;
}

/** Whether a role may call it, in a line. What is in quarantine is refused to those whom the rules allow it, too. */
export function roleWords({ role, allowed, rule = "" }: RoleAccess, isQuarantined: boolean): string {
  if (!allowed) return `${role}: no, ${rule}`;
  return `${role}: ${isQuarantined ? "no, not until it is accepted" : "yes"}`;
}
