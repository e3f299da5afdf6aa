// Which patterns of roles fit no tool: a typo in `deny` would let everything through, and nobody would see it. Only
// servers whose tools are known are judged. Pure: lists are passed in.

import type { OwnToolName } from "../contracts/names.js";
import type { RoleRules } from "../contracts/settings.js";
import { nearest } from "../runtime/nearest.js";
import { covers, denies, type Pattern, parsePattern, touches } from "./pattern.js";

/** A server of the config; `tools` is undefined where its list has never been read. */
export interface KnownTools {
  readonly name: string;
  readonly tools: readonly OwnToolName[] | undefined;
}

/** So many are told: whoever has more has one cause for them. */
const MAX_TOLD = 50;

/** Longer names are not compared letter by letter: a server could make that take long. */
const MAX_COMPARED = 64;

/** One sentence for each, ready to print. */
export function unusedPatterns(
  roles: Readonly<Record<string, RoleRules>>,
  servers: readonly KnownTools[],
): readonly string[] {
  const told: string[] = [];
  for (const [role, { allow = [], deny = [] }] of Object.entries(roles)) {
    for (const [list, texts] of Object.entries({ allow, deny })) {
      for (const text of texts) {
        const pattern = parsePattern(text);
        // What is meant for a whole server fits it, whatever it lists; the config says where there is no such server.
        if (pattern?.tool === undefined) continue;
        const why = judge(pattern, list === "deny", servers);
        if (why !== undefined) told.push(`role ${JSON.stringify(role)}, "${list}": ${why}`);
        if (told.length >= MAX_TOLD) return told;
      }
    }
  }
  return told;
}

function judge(pattern: Pattern, isDeny: boolean, servers: readonly KnownTools[]): string | undefined {
  const meant = servers.filter(({ name }) => touches(pattern, name));
  if (meant.length === 0) return undefined;
  const names: string[] = [];
  for (const { name, tools } of meant) {
    if (tools === undefined) return undefined;
    for (const tool of tools) {
      if (isDeny ? denies(pattern, name, tool) : covers(pattern, name, tool)) return undefined;
      if (tool.length <= MAX_COMPARED) names.push(`${name}/${tool}`);
    }
  }
  const near = pattern.text.length > MAX_COMPARED ? undefined : nearest(pattern.text, names);
  const where = meant.length === 1 ? `server ${JSON.stringify(meant[0]?.name)}` : `the servers that it names`;
  const hint = near === undefined ? "" : ` Did you mean ${JSON.stringify(near)}?`;
  const effect = isDeny ? "denies" : "allows";
  return `${JSON.stringify(pattern.text)} fits no tool of ${where}, so it ${effect} nothing.${hint}`;
}
