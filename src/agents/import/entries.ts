// Reads the servers out of a client's config file, and brings each entry into the form of our own file: one set of
// keys, paths that hold from anywhere, variables that we expand. It merges nothing; import.ts does.

import { basename } from "node:path";
import { Source } from "../../config/jsonc.js";
import { absolutePath, baseFolder, commandPath } from "../../config/paths.js";
import { isLoopback } from "../../runtime/addresses.js";
import type { ClientFile, ClientFormat } from "./clients.js";
import { parseToml, TomlError } from "./toml.js";

/** An entry as it goes into our file. */
export interface ImportedEntry {
  readonly type?: "sse";
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly envFile?: string;
  readonly cwd?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly connectTimeoutMs?: number;
  readonly callTimeoutMs?: number;
  readonly tools?: Readonly<Record<string, { readonly hide: true }>>;
}

export type Reading =
  | { readonly kind: "entry"; readonly entry: ImportedEntry; readonly note: string | undefined }
  | { readonly kind: "skip"; readonly reason: string };

/** Servers of one file that share a project. */
export interface EntryGroup {
  readonly project: string | undefined;
  readonly entries: Readonly<Record<string, unknown>>;
  /** Names that the client has switched off elsewhere than in the entry. */
  readonly off: ReadonlySet<string>;
}

type Table = Readonly<Record<string, unknown>>;

/** The groups of a file's text; a string says why it cannot be read. */
export function readGroups(text: string, file: ClientFile): EntryGroup[] | string {
  let root: Table;
  if (file.format === "codex") {
    try {
      root = parseToml(text);
    } catch (error) {
      if (error instanceof TomlError) return `not valid TOML: line ${error.line}: ${error.message}`;
      throw error;
    }
  } else {
    const source = new Source(text);
    let wrong: string | undefined;
    const value = source.read((path, offset, message) => {
      if (path.length === 0) wrong = `line ${source.position(offset).line}: ${message}`;
    });
    if (wrong !== undefined) return wrong;
    root = table(value);
  }
  const group = (entries: unknown, project = file.project, off: unknown = []): EntryGroup => ({
    project,
    entries: table(entries),
    off: new Set(strings(off)),
  });
  if (file.format !== "claude-code") return [group(SERVERS_OF[file.format](root))];
  const projects = Object.entries(table(root["projects"])).map(([folder, settings]) =>
    group(table(settings)["mcpServers"], folder, table(settings)["disabledMcpServers"]),
  );
  return [group(root["mcpServers"]), ...projects];
}

const SERVERS_OF: Record<Exclude<ClientFormat, "claude-code">, (root: Table) => unknown> = {
  mcpServers: (root) => root["mcpServers"],
  vscode: (root) => root["servers"],
  "vscode-settings": (root) => table(root["mcp"])["servers"],
  codex: (root) => root["mcp_servers"],
  zed: (root) => root["context_servers"],
  // Version 2 has them one level deeper.
  opencode: (root) => {
    const mcp = table(root["mcp"]);
    const inner = table(mcp["servers"]);
    return typeof inner["type"] === "string" || mcp["servers"] === undefined ? mcp : inner;
  },
};

/** One entry of a client, in our form. */
export function readEntry(raw: unknown, file: ClientFile, project: string | undefined, home: string): Reading {
  const fields = table(raw);
  if (fields["disabled"] === true || fields["enabled"] === false) return skip("it is disabled there");
  const type = String(fields["type"] ?? "");
  if (/^(ws|websocket|sdk|sse-ide|ws-ide)$/i.test(type)) return skip(`its type "${type}" is not supported`);
  if (fields["source"] === "extension") return skip("an extension of the editor starts it");

  const base = project ?? baseFolder(file.file);
  const [command, ...inCommand] = commandOf(fields["command"]);
  const url = [fields["url"], fields["httpUrl"], fields["serverUrl"]].find((value) => typeof value === "string");
  if (command === undefined && url === undefined) return skip("it has neither a command nor an address");
  if (command !== undefined && url !== undefined) return skip("it has both a command and an address");

  const raws = { command, url, args: [...inCommand, ...strings(fields["args"])], ...texts(fields) };
  const problem = untranslatable(JSON.stringify(raws));
  if (problem !== undefined) return skip(problem);
  const words = translate(raws, file, base) as typeof raws;

  const limits = timeouts(fields);
  const { tools, note } = toolLists(fields);
  const hidden = Object.keys(tools).length > 0 ? { tools } : {};
  if (words.url !== undefined) {
    const headers = Object.keys(words.headers).length > 0 ? { headers: words.headers } : {};
    const sse = type === "sse" ? { type: "sse" as const } : {};
    return { kind: "entry", entry: { ...sse, url: words.url, ...headers, ...limits, ...hidden }, note };
  }
  const cwd = words.cwd === undefined ? project : absolutePath(words.cwd, base, home);
  const entry: ImportedEntry = {
    command: commandPath(words.command ?? "", base, home),
    ...(words.args.length > 0 && { args: words.args }),
    ...(Object.keys(words.env).length > 0 && { env: words.env }),
    ...(words.envFile !== undefined && { envFile: absolutePath(words.envFile, base, home) }),
    ...(cwd !== undefined && { cwd }),
    ...limits,
    ...hidden,
  };
  return { kind: "entry", entry, note };
}

/** True for an entry that leads back to a gateway of ours: behind itself it would wait for itself. */
export function isToolway(entry: ImportedEntry): boolean {
  if (entry.url !== undefined) return isOwnUrl(entry.url);
  const program = basename(entry.command ?? "").replace(/\.(cmd|exe|ps1)$/i, "");
  if (program === "toolway") return true;
  const runner = /^(npx|npm|pnpm|pnpx|bunx?|yarn|node|deno)$/.test(program);
  return runner && (entry.args ?? []).some((arg) => /^toolway(@[^/]*)?$|[/\\]toolway[/\\].*\bmain\.js$/.test(arg));
}

/** Where a gateway of ours listens unless it is told otherwise, or is told to listen everywhere. */
function isOwnUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, pathname } = new URL(text);
  if (port !== "7420" || (protocol !== "http:" && protocol !== "https:")) return false;
  return (isLoopback(hostname) || hostname === "0.0.0.0") && /^\/(mcp|sse)\b/i.test(pathname);
}

/** A program and its arguments: a string, opencode's list, or the object of older Zed versions. */
function commandOf(command: unknown): string[] {
  if (typeof command === "string" && command !== "") return [command];
  if (Array.isArray(command)) return strings(command);
  const { path, args } = table(command);
  return typeof path === "string" ? [path, ...strings(args)] : [];
}

/** The named values of an entry, Codex's and opencode's keys included. */
function texts(fields: Table) {
  const env = {
    ...record(table(fields["command"])["env"]),
    ...record(fields["environment"]),
    ...record(fields["env"]),
  };
  // Codex passes these on from its own environment, where they are set.
  for (const name of strings(fields["env_vars"])) env[name] ??= `\${${name}:-}`;
  const headers = { ...record(fields["http_headers"]), ...record(fields["headers"]) };
  for (const [header, name] of Object.entries(record(fields["env_http_headers"]))) headers[header] = `\${${name}}`;
  const bearer = fields["bearer_token_env_var"];
  if (typeof bearer === "string") headers["Authorization"] = `Bearer \${${bearer}}`;
  return { env, headers, cwd: optional(fields["cwd"]), envFile: optional(fields["envFile"]) };
}

function timeouts(fields: Table): Pick<ImportedEntry, "connectTimeoutMs" | "callTimeoutMs"> {
  const start = fields["startup_timeout_sec"];
  const call = fields["tool_timeout_sec"];
  return {
    ...(typeof start === "number" && start > 0 && { connectTimeoutMs: Math.ceil(start * 1000) }),
    ...(typeof call === "number" && call > 0 && { callTimeoutMs: Math.ceil(call * 1000) }),
  };
}

/** Tools that the client hides stay hidden. A list of those it shows cannot be turned round without the server. */
function toolLists(fields: Table): { tools: Record<string, { hide: true }>; note: string | undefined } {
  const tools: Record<string, { hide: true }> = Object.create(null);
  for (const key of ["excludeTools", "disabledTools", "disabled_tools"]) {
    for (const name of strings(fields[key])) tools[name] = { hide: true };
  }
  const shown = ["includeTools", "enabledTools", "enabled_tools"].find((key) => strings(fields[key]).length > 0);
  return { tools, note: shown && `its "${shown}" is not taken over: all its tools are shown` };
}

function untranslatable(all: string): string | undefined {
  const input = /\$\{input:([^}]*)\}/.exec(all);
  if (input !== null) return `it asks for the input "${input[1]}": add it by hand, with \${VAR} in its place`;
  return /\{file:[^}]*\}/.test(all)
    ? `it reads a value from a file: add it by hand, with \${VAR} in its place`
    : undefined;
}

/** Writes every string with our variables. */
function translate(value: unknown, file: ClientFile, base: string): unknown {
  if (typeof value === "string") {
    let text = value
      .replaceAll(/\$\{workspaceFolderBasename\}/g, () => basename(base))
      .replaceAll(/\$\{workspaceFolder(:[^}]*)?\}/g, () => base);
    if (file.format === "opencode") text = text.replaceAll(/\{env:(\w+)\}/g, "$${$1}");
    if (file.client === "Gemini CLI") text = text.replaceAll(/\$([A-Za-z_]\w*)/g, "$${$1}");
    return text;
  }
  if (Array.isArray(value)) return value.map((item) => translate(item, file, base));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, translate(item, file, base)]));
}

function skip(reason: string): Reading {
  return { kind: "skip", reason };
}

function table(value: unknown): Table {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Table) : {};
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function optional(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

function record(value: unknown): Record<string, string> {
  const pairs = Object.entries(table(value)).filter(([, item]) =>
    ["string", "number", "boolean"].includes(typeof item),
  );
  return Object.fromEntries(pairs.map(([key, item]) => [key, String(item)]));
}
