// Which patterns of roles and menus, and which names in the entries of servers, fit no tool: a typo in `deny` or `hide` would
// let everything through, and nobody would see it. Only servers whose tools are known are judged. Pure: lists are passed in.

import type { OwnToolName } from "../contracts/names.js";
import type { MenuRule, RoleRules } from "../contracts/settings.js";
import { fits, readGlob } from "../runtime/glob.js";
import { nearest } from "../runtime/nearest.js";
import { covers, denies, type Pattern, parsePattern, touches } from "./pattern.js";

/** A server of the config; `tools` is undefined where its list has never been read. */
export interface KnownTools {
  readonly name: string;
  readonly tools: readonly OwnToolName[] | undefined;
  /** The tools that its entry says something of. */
  readonly settings?: readonly string[];
  /** The patterns of its entry's `only`. */
  readonly only?: readonly string[] | undefined;
}

/** So many are told: whoever has more has one cause for them. */
const MAX_TOLD = 50;

/** Longer names are not compared letter by letter: a server could make that take long. */
const MAX_COMPARED = 64;

/** One sentence for each, ready to print. */
export function unusedPatterns(
  roles: Readonly<Record<string, RoleRules>>,
  servers: readonly KnownTools[],
  menus: readonly MenuRule[] = [],
): readonly string[] {
  const told: string[] = [];
  for (const { where, effect, isDeny, texts } of [...listsOfRoles(roles), ...listsOfMenus(menus)]) {
    for (const text of texts) {
      const pattern = parsePattern(text);
      // What is meant for a whole server fits it, whatever it lists; the config says where there is no such server.
      if (pattern?.tool === undefined) continue;
      const why = judge(pattern, isDeny, effect, servers);
      if (why !== undefined) told.push(`${where}: ${why}`);
      if (told.length >= MAX_TOLD) return told;
    }
  }
  for (const server of servers) told.push(...unusedOf(server));
  return told.slice(0, MAX_TOLD);
}

/** What the entry of one server names that it does not have. */
function unusedOf({ name, tools, settings = [], only = [] }: KnownTools): string[] {
  if (tools === undefined) return [];
  const own = new Set<string>(tools);
  const typed = settings.filter((tool) => !own.has(tool));
  const unfitting = only.filter((text) => {
    const glob = readGlob(text);
    return !tools.some((tool) => fits(glob, tool));
  });
  const where = `server ${JSON.stringify(name)}`;
  return [
    ...typed.map(
      (tool) => `${where}, settings of a tool: ${unfit(tool, tools)}, so they change nothing.${hint(tool, tools)}`,
    ),
    ...unfitting.map((text) => `${where}, "only": ${unfit(text, tools)}, so it shows nothing.${hint(text, tools)}`),
  ];
}

function unfit(text: string, { length }: readonly OwnToolName[]): string {
  return `${JSON.stringify(text)} fits ${length === 0 ? "no tool: it has none" : "none of its tools"}`;
}

function hint(typed: string, tools: readonly OwnToolName[]): string {
  const near = typed.length > MAX_COMPARED ? undefined : nearestTool(typed, tools.filter(isShort));
  return near === undefined ? "" : ` Did you mean ${JSON.stringify(near)}?`;
}

function isShort(tool: string): boolean {
  return tool.length <= MAX_COMPARED;
}

/** Patterns that do one thing. */
interface PatternList {
  /** Where they stand in the config. */
  readonly where: string;
  /** What one does that fits. */
  readonly effect: string;
  readonly isDeny: boolean;
  readonly texts: readonly string[];
}

function listsOfRoles(roles: Readonly<Record<string, RoleRules>>): PatternList[] {
  return Object.entries(roles).flatMap(([role, { allow = [], deny = [] }]) => [
    { where: `role ${JSON.stringify(role)}, "allow"`, effect: "allows", isDeny: false, texts: allow },
    { where: `role ${JSON.stringify(role)}, "deny"`, effect: "denies", isDeny: true, texts: deny },
  ]);
}

function listsOfMenus(menus: readonly MenuRule[]): PatternList[] {
  return menus.flatMap(({ show = [], hide = [] }, at) => [
    { where: `menus[${at}], "show"`, effect: "shows", isDeny: false, texts: show },
    { where: `menus[${at}], "hide"`, effect: "hides", isDeny: true, texts: hide },
  ]);
}

function judge(pattern: Pattern, isDeny: boolean, effect: string, servers: readonly KnownTools[]): string | undefined {
  const meant = servers.filter(({ name }) => touches(pattern, name));
  if (meant.length === 0) return undefined;
  for (const { name, tools } of meant) {
    if (tools === undefined) return undefined;
    for (const tool of tools) {
      if (isDeny ? denies(pattern, name, tool) : covers(pattern, name, tool)) return undefined;
    }
  }
  const near = pattern.text.length > MAX_COMPARED ? undefined : nearestPattern(pattern, meant);
  const where = meant.length === 1 ? `server ${JSON.stringify(meant[0]?.name)}` : `the servers that it names`;
  const meantText = near === undefined ? "" : ` Did you mean ${JSON.stringify(near)}?`;
  return `${JSON.stringify(pattern.text)} fits no tool of ${where}, so it ${effect} nothing.${meantText}`;
}

/** The pattern that may have been meant. Tools alone are compared: a server's name in front would hide how far they are. */
function nearestPattern(pattern: Pattern, meant: readonly KnownTools[]): string | undefined {
  for (const { name, tools = [] } of meant) {
    const server = pattern.text.startsWith(`${name}/`) ? name : pattern.text.slice(0, pattern.text.indexOf("/"));
    const typed = pattern.text.slice(server.length + 1);
    const near = nearestTool(typed, tools.filter(isShort));
    if (near !== undefined) return `${server}/${near}`;
  }
  return undefined;
}

/** With a star at one end or at both, the beginnings, ends or words of the names are compared. */
function nearestTool(typed: string, tools: readonly string[]): string | undefined {
  const [, before = "", text = "", after = ""] = /^(\*?)([^*]+)(\*?)$/.exec(typed) ?? [];
  if (text === "") return undefined;
  const words = tools.map(wordsOf);
  const parts = words.flatMap((some) => {
    if (before === "" && after === "") return [some.join("")];
    return some.map((word, i) =>
      before === "" ? some.slice(0, i + 1).join("") : after === "" ? some.slice(i).join("") : word,
    );
  });
  const near = nearest(text, [...new Set(parts)]);
  return near === undefined ? undefined : `${before}${near}${after}`;
}

/** `read_`, `all_`, `notes` of `read_all_notes`; `read`, `All` of `readAll`. */
function wordsOf(tool: string): string[] {
  return tool.split(/(?<=[_./-])|(?<=[a-z])(?=[A-Z])/);
}
