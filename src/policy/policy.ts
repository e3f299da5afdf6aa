// Decides whether a principal may use a tool. It does no I/O and knows no clock. It sees servers and their own tool
// names, never aliases; what it denies, the lists leave out and calls refuse.

import type { Principal } from "../contracts/caller.js";
import type { OwnToolName } from "../contracts/names.js";
import type { RoleRules, UnlistedRoles } from "../contracts/settings.js";
import { Fault } from "../protocol/errors.js";
import { nearest } from "../runtime/nearest.js";
import { covers, denies, type Pattern, parsePattern, touches } from "./pattern.js";

export interface PolicyConfig {
  readonly roles: Readonly<Record<string, RoleRules>>;
  /** What a role without an entry may do. */
  readonly unlistedRoles: UnlistedRoles;
}

export type Decision = { readonly kind: "allow" } | { readonly kind: "deny"; readonly rule: string };

interface Role {
  readonly allow: readonly Pattern[] | undefined;
  readonly deny: readonly Pattern[];
  /** Why the role's rules cannot be evaluated; then all is denied. */
  readonly broken: string | undefined;
  /** Decisions made before, by "server" or "server/tool". */
  readonly decided: Map<string, Decision>;
  /** Which servers may be known of, by name: each list that is asked for asks that of each server. */
  readonly seen: Map<string, boolean>;
}

export interface Policy {
  readonly roles: ReadonlyMap<string, Role>;
  readonly unlisted: Decision["kind"];
  /** What is wrong in the rules, for the log and `status`. */
  readonly problems: readonly string[];
}

/** How many decisions of each kind are kept for a role: more than the tools of any real menu. Beyond, they are made again. */
const MAX_DECIDED = 20_000;

const ALLOW: Decision = { kind: "allow" };

/** Never throws: a role whose rules make no sense is locked out, and `problems` says so. */
export function compilePolicy(config: PolicyConfig): Policy {
  const roles = new Map<string, Role>();
  const problems: string[] = [];
  for (const [name, rules] of Object.entries(config.roles)) {
    const role = compileRole(name, rules);
    if (role.broken !== undefined) problems.push(`${role.broken} All is denied to this role.`);
    roles.set(name, role);
  }
  return { roles, unlisted: config.unlistedRoles === "allow" ? "allow" : "deny", problems };
}

function compileRole(name: string, rules: unknown): Role {
  const lists: { allow: Pattern[] | undefined; deny: Pattern[] } = { allow: undefined, deny: [] };
  let broken: string | undefined;
  if (typeof rules !== "object" || rules === null) broken = `Role ${JSON.stringify(name)} has no rules.`;
  for (const key of ["allow", "deny"] as const) {
    const texts = broken === undefined ? (rules as Record<string, unknown>)[key] : undefined;
    if (texts === undefined) continue;
    if (!Array.isArray(texts)) {
      broken = `Role ${JSON.stringify(name)}: "${key}" is no list.`;
      continue;
    }
    lists[key] = [];
    for (const text of texts as unknown[]) {
      const pattern = parsePattern(text);
      if (pattern === undefined) broken = `Role ${JSON.stringify(name)}: ${JSON.stringify(text)} is no pattern.`;
      else lists[key].push(pattern);
    }
  }
  return { ...lists, broken, decided: new Map(), seen: new Map() };
}

/** `tool` is undefined for prompts, resources and everything else of a server. */
export function decide(policy: Policy, principal: Principal, server: string, tool: OwnToolName | undefined): Decision {
  const role = policy.roles.get(principal.role);
  if (role === undefined) return unlisted(policy, principal);
  const key = tool === undefined ? server : `${server}/${tool}`;
  // With a "/" in its name, a server's key could be that of another server's tool; such names are never kept.
  const keep = !server.includes("/");
  const before = keep ? role.decided.get(key) : undefined;
  if (before !== undefined) return before;
  const decision = judge(role, principal.role, server, tool);
  if (keep) {
    if (role.decided.size >= MAX_DECIDED) role.decided.clear();
    role.decided.set(key, decision);
  }
  return decision;
}

/** Whether the principal may know of the server at all: something of it could be allowed. */
export function seesServer(policy: Policy, principal: Principal, server: string): boolean {
  const role = policy.roles.get(principal.role);
  if (role === undefined) return unlisted(policy, principal).kind === "allow";
  const before = role.seen.get(server);
  if (before !== undefined) return before;
  const seen = mayKnowOf(role, server);
  if (role.seen.size >= MAX_DECIDED) role.seen.clear();
  role.seen.set(server, seen);
  return seen;
}

function mayKnowOf(role: Role, server: string): boolean {
  if (role.broken !== undefined) return false;
  if (role.deny.some((pattern) => denies(pattern, server, undefined))) return false;
  return role.allow === undefined || role.allow.some((pattern) => touches(pattern, server));
}

function unlisted(policy: Policy, principal: Principal): Decision {
  if (principal.needsRole === true) {
    const name = JSON.stringify(principal.role);
    return { kind: "deny", rule: `role ${name}, which this run was started with, is no longer in the config` };
  }
  if (policy.unlisted === "allow") return ALLOW;
  return { kind: "deny", rule: `role ${JSON.stringify(principal.role)} has no entry, and unlistedRoles is "deny"` };
}

function judge(role: Role, name: string, server: string, tool: OwnToolName | undefined): Decision {
  const deny = (why: string): Decision => ({ kind: "deny", rule: `role ${JSON.stringify(name)}: ${why}` });
  if (role.broken !== undefined) return { kind: "deny", rule: role.broken };
  const denied = role.deny.find((pattern) => denies(pattern, server, tool));
  if (denied !== undefined) return deny(`deny ${JSON.stringify(denied.text)}`);
  if (role.allow === undefined || role.allow.some((pattern) => covers(pattern, server, tool))) return ALLOW;
  return deny(role.allow.length === 0 ? "its allow list is empty" : "nothing in its allow list covers this");
}

/** What is wrong with the name of a role that must be one of the config's; undefined where it is. */
export function unknownRole(role: string, known: readonly string[]): Fault | undefined {
  if (known.includes(role)) return undefined;
  const near = nearest(role, known);
  const there = known.length === 0 ? "the config has none" : `the config has ${known.join(", ")}`;
  const hint = near === undefined ? "" : ` Did you mean ${near}?`;
  return new Fault("invalid", `There is no role ${JSON.stringify(role)}: ${there}.${hint}`);
}
