// The clients that can be set up: in which file of theirs our entry stands, and how it reads there. Pure: what is on the
// disk is for those who ask.

import { CLIENTS, type ClientId, clientFiles, type Place } from "../import/clients.js";
import { isSetUp } from "../import/entries.js";
import type { ClientEntry, ClientEntryPlace, EntryText } from "./entry-text.js";
import { jsonEntry } from "./json-entry.js";
import { tomlEntry } from "./toml-entry.js";

export type SetupScope = "user" | "project";

/** How a client is let in: by a program that prints its header, by a variable, or by starting `toolway stdio`. */
export type Way = "helper" | "variable" | "program";

/** What an entry says of a gateway. */
export interface EntryFacts {
  readonly url: string;
  /** The variable that the header refers to. */
  readonly variable: string;
  /** A line for a shell that prints the header. */
  readonly helper: string;
  /** `toolway stdio` with all that it needs. */
  readonly program: readonly string[];
}

export interface SetupClient {
  readonly id: string;
  readonly name: string;
  /** The programs by which it is known to be installed. */
  readonly programs: readonly string[];
  /** An app with windows, which need not be on the PATH: its folder says that it is installed. */
  readonly isApp?: true;
  readonly text: EntryText;
  /** The key that holds its servers. */
  readonly group: string;
  /** The ways that it takes, the best first. */
  readonly ways: readonly Way[];
  entry(way: Way, facts: EntryFacts): ClientEntry;
  /** Its file of that scope, those first that it would rather have; none where it is not known to have one. */
  files(scope: SetupScope, place: Place): readonly string[];
  /** What has to be known beyond the entry. */
  readonly remark?: string;
}

/** The name under which every client has us. */
export const ENTRY_NAME = "toolway";

/** Who a client that is set up is. */
export function principalOf({ id }: Pick<SetupClient, "id">): string {
  return `setup-${id}`;
}

/** With TOKEN in its name, which filters of clients hide from their shells. */
export function variableOf({ id }: Pick<SetupClient, "id">): string {
  return `TOOLWAY_${id.toUpperCase().replaceAll("-", "_")}_TOKEN`;
}

export function entryPlace(client: SetupClient, file: string): ClientEntryPlace {
  return { file, group: client.group, name: ENTRY_NAME };
}

/** The keys that our entries of any way have: what is left of another way goes. */
export function ownedKeys(client: SetupClient): string[] {
  const facts: EntryFacts = { url: "", variable: "", helper: "", program: [] };
  return [...new Set(client.ways.flatMap((way) => Object.keys(client.entry(way, facts))))];
}

/**
 * Whether an entry of our name is ours to change: a set-up made it, the lines did that `toolway serve` prints, or it leads
 * to this gateway.
 */
export function isOurs(entry: unknown, url: string | undefined): boolean {
  const text = JSON.stringify(entry) ?? "";
  return isSetUp(entry) || /\bTOOLWAY_TOKEN\b/.test(text) || (url !== undefined && text.includes(JSON.stringify(url)));
}

const bearer = (reference: string) => ({ Authorization: `Bearer ${reference}` });

/** `{ command, args }`, as most clients have programs. */
function started([command = "", ...args]: readonly string[]): ClientEntry {
  return { command, args };
}

type Files = SetupClient["files"];

/** Where `toolway import` looks for the client, too. */
function known(id: ClientId, fits: (file: string) => boolean = () => true): Files {
  return (scope, place) =>
    clientFiles(place)
      .filter((file) => file.id === id && (file.project !== undefined) === (scope === "project") && fits(file.file))
      .map(({ file }) => file);
}

const geminiLike = (id: "gemini" | "qwen"): SetupClient => ({
  id,
  name: CLIENTS[id],
  programs: [id],
  text: jsonEntry,
  group: "mcpServers",
  ways: ["variable", "program"],
  entry: (way, { url, variable, program }) =>
    way === "program" ? started(program) : { httpUrl: url, headers: bearer(`\${${variable}}`) },
  files: known(id),
  remark:
    'It offers no tools of a server without "trust": true when it runs without a terminal; setup does not add that.',
});

/** Of these, it is not known that a header of theirs can refer to a variable. */
const programOnly = (client: Omit<SetupClient, "ways" | "entry" | "text">): SetupClient => ({
  ...client,
  text: jsonEntry,
  ways: ["program"],
  entry: (_way, { program }) => started(program),
});

export const SETUP_CLIENTS: readonly SetupClient[] = [
  {
    id: "claude",
    name: CLIENTS["claude-code"],
    programs: ["claude"],
    text: jsonEntry,
    group: "mcpServers",
    ways: ["helper", "variable", "program"],
    entry(way, { url, variable, helper, program }) {
      if (way === "program") return { type: "stdio", ...started(program) };
      const header = way === "helper" ? { headersHelper: helper } : { headers: bearer(`\${${variable}}`) };
      return { type: "http", url, ...header };
    },
    files: known("claude-code"),
  },
  programOnly({
    id: "claude-desktop",
    name: CLIENTS["claude-desktop"],
    programs: ["claude-desktop"],
    isApp: true,
    group: "mcpServers",
    files: known("claude-desktop"),
  }),
  {
    id: "codex",
    name: CLIENTS.codex,
    programs: ["codex"],
    text: tomlEntry,
    group: "mcp_servers",
    ways: ["helper", "variable", "program"],
    entry(way, { url, variable, helper, program }) {
      if (way === "program") return started(program);
      return way === "helper" ? { url, http_headers_helper: helper } : { url, bearer_token_env_var: variable };
    },
    files: known("codex"),
  },
  geminiLike("gemini"),
  {
    id: "opencode",
    name: CLIENTS.opencode,
    programs: ["opencode"],
    text: jsonEntry,
    group: "mcp",
    ways: ["variable", "program"],
    entry: (way, { url, variable, program }) =>
      way === "program"
        ? { type: "local", command: program }
        : // Else it asks the gateway for OAuth where a token is refused.
          { type: "remote", url, oauth: false, headers: bearer(`{env:${variable}}`) },
    // Its own `mcp add` writes the one with comments.
    files: (scope, place) => [...known("opencode")(scope, place)].sort((a, b) => rank(a) - rank(b)),
  },
  {
    id: "cursor",
    name: CLIENTS.cursor,
    programs: ["cursor", "cursor-agent"],
    isApp: true,
    text: jsonEntry,
    group: "mcpServers",
    ways: ["variable", "program"],
    entry: (way, { url, variable, program }) =>
      way === "program" ? started(program) : { url, headers: bearer(`\${env:${variable}}`) },
    files: known("cursor"),
  },
  {
    id: "vscode",
    name: CLIENTS.vscode,
    programs: ["code"],
    isApp: true,
    text: jsonEntry,
    group: "servers",
    ways: ["variable", "program"],
    entry: (way, { url, variable, program }) =>
      way === "program"
        ? { type: "stdio", ...started(program) }
        : { type: "http", url, headers: bearer(`\${env:${variable}}`) },
    files: known("vscode", (file) => !file.endsWith("settings.json")),
  },
  programOnly({
    id: "windsurf",
    name: CLIENTS.windsurf,
    programs: ["windsurf"],
    isApp: true,
    group: "mcpServers",
    files: known("windsurf"),
  }),
  {
    ...programOnly({
      id: "zed",
      name: CLIENTS.zed,
      programs: ["zed", "zeditor"],
      isApp: true,
      group: "context_servers",
      files: known("zed"),
    }),
    // Versions of 2025 want the word; later ones pass it over.
    entry: (_way, { program }) => ({ source: "custom", ...started(program) }),
  },
  {
    id: "copilot",
    name: CLIENTS.copilot,
    programs: ["copilot"],
    text: jsonEntry,
    group: "mcpServers",
    ways: ["variable", "program"],
    entry: (way, { url, variable, program }) => ({
      ...(way === "program"
        ? { type: "local", ...started(program) }
        : { type: "http", url, headers: bearer(`\${${variable}}`) }),
      tools: ["*"],
    }),
    files: known("copilot"),
  },
  geminiLike("qwen"),
  programOnly({
    id: "amp",
    name: "Amp",
    programs: ["amp"],
    group: "amp.mcpServers",
    files: (scope, { home, env }) =>
      scope === "user" ? [`${env["XDG_CONFIG_HOME"] || `${home}/.config`}/amp/settings.json`] : [],
  }),
];

/** A project's file with comments, then without, then the one in a folder of its own. */
function rank(file: string): number {
  if (file.includes(".opencode")) return 2;
  return file.endsWith(".jsonc") ? 0 : 1;
}

/** Other words for a client that people use. */
const OTHER_WORDS: Readonly<Record<string, string>> = { "claude-code": "claude", code: "vscode" };

export function setupClient(word: string): SetupClient | undefined {
  return SETUP_CLIENTS.find(({ id }) => id === (OTHER_WORDS[word] ?? word));
}
