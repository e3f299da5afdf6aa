// One pattern of a role: "server", "server/tool", with `*` for any run of characters.

import type { OwnToolName } from "../contracts/names.js";
import { fits, type Glob, readGlob } from "../runtime/glob.js";

/** Names are shorter, and a longer pattern is a mistake worth telling. */
const MAX_PATTERN = 512;

export interface Pattern {
  readonly text: string;
  /** The whole text, for servers whose name has a "/". */
  readonly whole: Glob;
  readonly server: Glob;
  /** Undefined where the whole server is meant, with its prompts, its resources and all else. */
  readonly tool: Glob | undefined;
}

/** Undefined for what is no pattern. The tool is what stands behind the first "/". */
export function parsePattern(text: unknown): Pattern | undefined {
  if (typeof text !== "string" || text === "" || text.length > MAX_PATTERN) return undefined;
  const slash = text.indexOf("/");
  const server = slash < 0 ? text : text.slice(0, slash);
  const tool = slash < 0 ? undefined : text.slice(slash + 1);
  if (server === "" || tool === "") return undefined;
  return { text, whole: readGlob(text), server: readGlob(server), tool: toolGlob(tool) };
}

function toolGlob(tool: string | undefined): Glob | undefined {
  return tool === undefined || /^\*+$/.test(tool) ? undefined : readGlob(tool);
}

/** `tool` undefined asks for what is no tool: only a pattern for the whole server covers that. */
export function covers(pattern: Pattern, server: string, tool: OwnToolName | undefined): boolean {
  if (fits(pattern.server, server)) return coversTool(pattern.tool, tool);
  // A server with a "/" in its name is named in full, followed by "/": "a/b" stays tool b of server a.
  if (!server.includes("/") || !pattern.text.startsWith(`${server}/`)) return false;
  return coversTool(toolGlob(pattern.text.slice(server.length + 1)), tool);
}

/** Does as covers(); but where a "/" in the server's name makes a pattern ambiguous, every reading of it denies. */
export function denies(pattern: Pattern, server: string, tool: OwnToolName | undefined): boolean {
  if (covers(pattern, server, tool)) return true;
  if (!server.includes("/")) return false;
  return fits(pattern.whole, server) || fits(pattern.whole, `${server}/${tool ?? ""}`);
}

/** Whether it covers something of the server. */
export function touches(pattern: Pattern, server: string): boolean {
  return fits(pattern.server, server) || (server.includes("/") && pattern.text.startsWith(`${server}/`));
}

function coversTool(glob: Glob | undefined, tool: OwnToolName | undefined): boolean {
  return glob === undefined || (tool !== undefined && fits(glob, tool));
}
