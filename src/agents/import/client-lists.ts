// The lists that clients keep beside their entries: which servers are switched off, and which are allowed at all. What
// a client would not start is not taken from it.

import { existsSync, readFileSync, statSync } from "node:fs";
import { dirname, posix, win32 } from "node:path";
import { readClientServerLists } from "../../config/clients/foreign-keys.js";
import { Source } from "../../config/jsonc.js";
import { fits as fitsGlob, readGlob } from "../../runtime/glob.js";
import { textsOf } from "../../runtime/words/json-values.js";
import { type ClientFile, clientFiles, geminiFolder, type Place } from "./clients.js";
import { type ClientFields, commandOf, table } from "./values.js";

/** Why the client would not start that server; undefined where it would. */
export type ClientRefusal = (name: string, fields: ClientFields, file: ClientFile) => string | undefined;

export interface ClientLists {
  readonly refuse: ClientRefusal;
  /** Lists that are there and cannot be read: nobody knows what they switch off. */
  readonly unreadable: readonly string[];
}

export function readClientLists(place: Place): ClientLists {
  const unreadable: string[] = [];
  const read = (file: string): ClientFields => {
    if (!existsSync(file)) return {};
    try {
      // To open a pipe that nobody writes into waits for ever, and hears no signal meanwhile.
      if (!statSync(file).isFile()) throw new Error("It is no ordinary file.");
      const source = new Source(readFileSync(file, "utf8"));
      let isWrong = false;
      const value = source.read((path) => {
        isWrong ||= path.length === 0;
      });
      if (!isWrong) return table(value);
    } catch {
      // It is told below.
    }
    unreadable.push(file);
    return {};
  };
  const claude = claudeLists(place, read);
  const gemini = geminiLists(place, "gemini", read);
  const qwen = geminiLists(place, "qwen", read);
  const refuse: ClientRefusal = (name, fields, file) => {
    if (file.id === "claude-code") return claude(name, fields, file);
    if (file.id === "gemini") return gemini(name, fields, file);
    return file.id === "qwen" ? qwen(name, fields, file) : undefined;
  };
  return { refuse, unreadable };
}

/** The folder of the repository that `cwd` is in; `cwd` where it is in none. */
export function projectFolder({ cwd, platform }: Pick<Place, "cwd" | "platform">): string {
  const { join } = platform === "win32" ? win32 : posix;
  for (let folder = cwd; ; folder = dirname(folder)) {
    if (existsSync(join(folder, ".git"))) return folder;
    if (dirname(folder) === folder) return cwd;
  }
}

/** Its settings, from the administrator's to the project's own, and what it keeps of the project in ~/.claude.json. */
function claudeLists(place: Place, read: (file: string) => ClientFields): ClientRefusal {
  const { join } = place.platform === "win32" ? win32 : posix;
  const { home, cwd, env, platform } = place;
  const own = env["CLAUDE_CONFIG_DIR"] || join(home, ".claude");
  const settings = [
    read(managedSettings(platform)),
    read(join(own, "settings.json")),
    read(join(cwd, ".claude", "settings.json")),
    read(join(cwd, ".claude", "settings.local.json")),
  ];
  const state = read(join(env["CLAUDE_CONFIG_DIR"] || home, ".claude.json"));
  const projects = table(state["projects"]);
  const here = [cwd, projectFolder(place)].map((folder) => table(projects[folder]));
  const all = (tables: readonly ClientFields[], key: string) => tables.flatMap((one) => textsOf(one[key]));

  const disabled = new Set(all(here, "disabledMcpServers"));
  const rejected = new Set(all([...settings, ...here], "disabledMcpjsonServers"));
  const approved = new Set(all([...settings, ...here], "enabledMcpjsonServers"));
  const approvesAll = [...settings, ...here].some((one) => one["enableAllProjectMcpServers"] === true);
  const denied = settings.flatMap((one) => rules(one["deniedMcpServers"]));
  const allowed = settings.some((one) => Array.isArray(one["allowedMcpServers"]))
    ? settings.flatMap((one) => rules(one["allowedMcpServers"]))
    : undefined;

  return (name, fields, { format }) => {
    if (disabled.has(name)) return DISABLED;
    if (denied.some((rule) => fits(rule, name, fields))) return 'its "deniedMcpServers" has it';
    if (allowed !== undefined && !isAllowed(allowed, name, fields)) return 'its "allowedMcpServers" does not have it';
    // The rest is about .mcp.json, which others may have written.
    if (format === "claude-code") return undefined;
    if (rejected.has(name)) return DISABLED;
    const asks = approved.size > 0 && !approvesAll && !approved.has(name);
    return asks ? "it was not approved there" : undefined;
  };
}

export const DISABLED = "it is disabled there";

function managedSettings(platform: NodeJS.Platform): string {
  if (platform === "darwin") return "/Library/Application Support/ClaudeCode/managed-settings.json";
  return platform === "win32"
    ? "C:\\Program Files\\ClaudeCode\\managed-settings.json"
    : "/etc/claude-code/managed-settings.json";
}

function rules(value: unknown): ClientFields[] {
  return Array.isArray(value) ? value.map(table) : [];
}

/** A rule names a server, its address (with stars), or its command to the last argument. */
function fits(rule: ClientFields, name: string, fields: ClientFields): boolean {
  const { serverName, serverUrl, serverCommand } = rule;
  if (typeof serverName === "string") return serverName === name;
  if (typeof serverUrl === "string") return fitsGlob(readGlob(serverUrl), String(fields["url"] ?? ""));
  return Array.isArray(serverCommand) && sameWords(textsOf(serverCommand), commandWords(fields));
}

/** Where the list has commands or addresses, a name alone does not let a server of that kind in. */
function isAllowed(list: readonly ClientFields[], name: string, fields: ClientFields): boolean {
  const kind = fields["url"] === undefined ? "serverCommand" : "serverUrl";
  const ofKind = list.filter((rule) => rule[kind] !== undefined);
  return (ofKind.length > 0 ? ofKind : list).some((rule) => fits(rule, name, fields));
}

function commandWords(fields: ClientFields): string[] {
  return [...commandOf(fields["command"]), ...textsOf(fields["args"])];
}

function sameWords(left: readonly string[], right: readonly string[]): boolean {
  return left.length === right.length && left.every((word, index) => word === right[index]);
}

/** Gemini CLI and its relatives: lists in the settings, and a file of what was switched off by command. */
function geminiLists(place: Place, id: "gemini" | "qwen", read: (file: string) => ClientFields): ClientRefusal {
  const { join } = place.platform === "win32" ? win32 : posix;
  const settings = clientFiles(place)
    .filter((file) => file.id === id)
    .map(({ file }) => read(file));
  const off = id === "gemini" ? read(join(geminiFolder(place), "mcp-server-enablement.json")) : {};
  const lists = settings.map(readClientServerLists);
  return (name) => {
    const isExcluded = lists.some(({ excluded }) => excluded.has(name));
    if (table(off[name.trim().toLowerCase()])["enabled"] === false || isExcluded) return DISABLED;
    return lists.every(({ allowed }) => allowed?.has(name) !== false)
      ? undefined
      : 'its list of allowed servers ("mcp.allowed") does not have it';
  };
}
