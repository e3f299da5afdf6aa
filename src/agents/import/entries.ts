// Reads the servers out of a client's config file, and brings each entry into the form of our own file: one set of
// keys, paths that hold from anywhere, variables that we expand. It merges nothing; import.ts does.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { basename } from "node:path";
import { readForeign } from "../../config/clients/foreign-keys.js";
import { inputVariable } from "../../config/inputs/inputs.js";
import { Source } from "../../config/jsonc.js";
import { absolutePath, baseFolder, commandPath } from "../../config/paths.js";
import { isLoopback } from "../../runtime/addresses.js";
import { textsOf } from "../../runtime/words/json-values.js";
import { DISABLED } from "./client-lists.js";
import type { ClientFile, ClientFormat } from "./clients.js";
import { inputsOf, renameInputs, type TakenInputs, usualAnswer } from "./inputs.js";
import { parseToml, TomlError } from "./toml.js";
import { type ClientFields, commandOf, filled, record, table } from "./values.js";

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
  readonly only?: readonly string[];
  readonly tools?: Readonly<Record<string, { readonly hide: true }>>;
  /** What the client does to sign in or to shut the server in, as it stands there. */
  readonly [foreign: string]: unknown;
}

export type Reading =
  | { readonly kind: "entry"; readonly entry: ImportedEntry; readonly notes: readonly string[] }
  | { readonly kind: "skip"; readonly reason: string };

/** Servers of one file that share a project. */
export interface EntryGroup {
  readonly project: string | undefined;
  readonly entries: Readonly<Record<string, unknown>>;
  /** Names that the file itself has switched off elsewhere than in the entry. */
  readonly off: ReadonlySet<string>;
  /** What VS Code would ask for, by its id. */
  readonly inputs: ReadonlyMap<string, ClientFields>;
}

/** The groups of a file's text; a string says why it cannot be read. */
export function readGroups(text: string, file: ClientFile): EntryGroup[] | string {
  let root: ClientFields;
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
  const inputs = inputsOf((file.format === "vscode-settings" ? table(root["mcp"]) : root)["inputs"]);
  const group = (entries: unknown, project = file.project, off: Iterable<string> = []): EntryGroup => ({
    project,
    entries: table(entries),
    off: new Set(off),
    inputs,
  });
  if (file.format === "opencode") {
    const entries = SERVERS_OF.opencode(root);
    return [group(entries, file.project, hiddenServers(root, Object.keys(table(entries))))];
  }
  if (file.format !== "claude-code") return [group(SERVERS_OF[file.format](root))];
  const projects = Object.entries(table(root["projects"])).map(([folder, settings]) =>
    group(table(settings)["mcpServers"], folder, textsOf(table(settings)["disabledMcpServers"])),
  );
  return [group(root["mcpServers"]), ...projects];
}

const SERVERS_OF: Record<Exclude<ClientFormat, "claude-code">, (root: ClientFields) => unknown> = {
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

/** Servers all of whose tools opencode hides or denies, by patterns of its own names: `"files_*": false`. */
function hiddenServers(root: ClientFields, names: readonly string[]): string[] {
  const patterns = [
    ...Object.entries(table(root["tools"])).filter(([, shown]) => shown === false),
    ...Object.entries(table(root["permission"])).filter(([, answer]) => answer === "deny"),
  ].map(([pattern]) => pattern);
  return names.filter((name) => patterns.some((pattern) => pattern === `${name}*` || pattern === `${name}_*`));
}

/** Where an entry stands. */
export interface EntryPlace {
  readonly file: ClientFile;
  readonly group: EntryGroup;
  readonly home: string;
  readonly inputs: TakenInputs;
}

/** One entry of a client, in our form. */
export function readEntry(raw: unknown, { file, group, home, inputs }: EntryPlace): Reading {
  const { project } = group;
  const fields = table(raw);
  if (fields["disabled"] === true || fields["enabled"] === false) return skip(DISABLED);
  const type = String(fields["type"] ?? "");
  if (/^(ws|websocket|sdk|sse-ide|ws-ide)$/i.test(type)) return skip(`its type "${type}" is not supported`);
  if (fields["source"] === "extension") return skip("an extension of the editor starts it");

  const base = project ?? baseFolder(file.file);
  const [command, ...inCommand] = commandOf(fields["command"]);
  const url = [fields["url"], fields["httpUrl"], fields["serverUrl"]].find((value) => typeof value === "string");
  if (command === undefined && url === undefined) return skip("it has neither a command nor an address");
  if (command !== undefined && url !== undefined) return skip("it has both a command and an address");

  const args = argumentsOf(fields["args"]);
  // One that is left out would change what the others mean.
  if (args === undefined) return skip('an item of its "args" is no text: write it as one');
  const raws = { command, url, args: [...inCommand, ...args], ...texts(fields) };
  const problem = untranslatable(JSON.stringify(raws));
  if (problem !== undefined) return skip(problem);
  const notes: string[] = [];
  const words = translate(raws, { file, base, declared: group.inputs, inputs, notes }) as typeof raws;
  const rest = foreignParts(fields, file, notes);
  if (typeof rest === "string") return skip(rest);
  if (words.url !== undefined) {
    const headers = Object.keys(words.headers).length > 0 ? { headers: words.headers } : {};
    const sse = type === "sse" ? { type: "sse" as const } : {};
    return { kind: "entry", entry: { ...sse, url: words.url, ...headers, ...rest }, notes };
  }
  const cwd = words.cwd === undefined ? project : pathOf(words.cwd, base, home);
  const entry: ImportedEntry = {
    command: commandPath(words.command ?? "", base, home),
    ...(words.args.length > 0 && { args: words.args }),
    ...(Object.keys(words.env).length > 0 && { env: words.env }),
    ...(words.envFile !== undefined && { envFile: pathOf(words.envFile, base, home) }),
    ...(cwd !== undefined && { cwd }),
    ...rest,
  };
  return { kind: "entry", entry, notes };
}

/** A number or a switch is what it looks like; undefined where an item is neither that nor a text. */
function argumentsOf(args: unknown): string[] | undefined {
  const items: unknown[] = Array.isArray(args) ? args : [];
  return items.every((item) => ["string", "number", "boolean"].includes(typeof item)) ? items.map(String) : undefined;
}

/** A path in the new file. What begins with a variable has no folder yet that it could be relative to. */
function pathOf(path: string, base: string, home: string): string {
  return path.startsWith("$") ? path : absolutePath(path, base, home);
}

/** True for an entry that leads back to a gateway of ours: behind itself it would wait for itself. */
export function isToolway(entry: ImportedEntry): boolean {
  if (entry.url !== undefined) return isOwnUrl(entry.url);
  const program = basename(entry.command ?? "").replace(/\.(cmd|exe|ps1)$/i, "");
  if (program === "toolway") return true;
  const runner = /^(npx|npm|pnpm|pnpx|bunx?|yarn|node|deno)$/.test(program);
  return runner && (entry.args ?? []).some((arg) => /^toolway(@[^/]*)?$|[/\\]toolway[/\\].*\bmain\.js$/.test(arg));
}

/** True for an entry that `toolway setup` made: it names the principal of a client, or the variable of its token. */
export function isSetUp(raw: unknown): boolean {
  return /token header --id setup-|"--as","setup-|\bTOOLWAY_[A-Z_]+_TOKEN\b/.test(JSON.stringify(raw) ?? "");
}

/** Where a gateway of ours listens unless it is told otherwise, or is told to listen everywhere. */
function isOwnUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, port, pathname } = new URL(text);
  if (port !== "7420" || (protocol !== "http:" && protocol !== "https:")) return false;
  return (isLoopback(hostname) || hostname === "0.0.0.0") && /^\/(mcp|sse)\b/i.test(pathname);
}

/** The named values of an entry, Codex's and opencode's keys included. */
function texts(fields: ClientFields) {
  const env = {
    ...record(table(fields["command"])["env"]),
    ...record(fields["environment"]),
    ...record(fields["env"]),
  };
  // Codex passes these on from its own environment, where they are set.
  for (const name of textsOf(fields["env_vars"])) env[name] ??= `\${${name}:-}`;
  const headers = { ...record(fields["http_headers"]), ...record(fields["headers"]) };
  for (const [header, name] of Object.entries(record(fields["env_http_headers"]))) headers[header] = `\${${name}}`;
  const bearer = fields["bearer_token_env_var"];
  if (typeof bearer === "string") headers["Authorization"] = `Bearer \${${bearer}}`;
  return { env, headers, cwd: filled(fields["cwd"]), envFile: filled(fields["envFile"]) };
}

/** What else the entry says, in our words; a string says why nobody can tell what it means. */
function foreignParts(fields: ClientFields, { file }: ClientFile, notes: string[]): Partial<ImportedEntry> | string {
  const { only, hidden, connectTimeoutMs, callTimeoutMs, remarks } = readForeign(fields, file);
  const kept: Record<string, unknown> = {};
  for (const { key, kind, message, hint } of remarks) {
    // A list of tools that is wrong might show all of them. A sandbox that is missed is told again by the config.
    if (kind === "mistake" && key !== "sandboxEnabled") return `its "${key}" cannot be taken over: ${message}`;
    kept[key] = fields[key];
    notes.push(`"${key}" is kept: ${message}; ${hint}`);
  }
  const tools: Record<string, { hide: true }> = Object.create(null);
  for (const name of hidden) tools[name] = { hide: true };
  return {
    ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    ...(callTimeoutMs !== undefined && { callTimeoutMs }),
    ...(only !== undefined && !only.includes("*") && { only }),
    ...(hidden.length > 0 && { tools }),
    ...kept,
  };
}

function untranslatable(all: string): string | undefined {
  const asked = /\$\{(?:command|config):[^}]*\}/.exec(all);
  if (asked !== null) return `its editor fills in ${asked[0]}: add it by hand, with \${VAR} in its place`;
  return /\{file:[^}]*\}/.test(all)
    ? `it reads a value from a file: add it by hand, with \${VAR} in its place`
    : undefined;
}

interface Translation {
  readonly file: ClientFile;
  readonly base: string;
  /** The inputs of its own file. */
  readonly declared: ReadonlyMap<string, ClientFields>;
  readonly inputs: TakenInputs;
  readonly notes: string[];
}

/** Writes every string with our variables. */
function translate(value: unknown, how: Translation): unknown {
  if (typeof value === "string") {
    const { file, base } = how;
    let text = value
      .replaceAll(/\$\{workspaceFolderBasename\}/g, () => basename(base))
      .replaceAll(/\$\{workspaceFolder(:[^}]*)?\}/g, () => base);
    text = renameInputs(text, (id) => askedFor(id, how));
    if (file.format === "opencode") text = text.replaceAll(/\{env:(\w+)\}/g, "$${$1}");
    if (file.id === "gemini" || file.id === "qwen") text = text.replaceAll(/\$([A-Za-z_]\w*)/g, "$${$1}");
    return text;
  }
  if (Array.isArray(value)) return value.map((item) => translate(item, how));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, translate(item, how)]));
}

/** What an editor asks a person for stays an input: its id in the new file. */
function askedFor(id: string, { declared, inputs, notes }: Translation): string {
  const input = declared.get(id);
  const as = inputs.idFor(id, input);
  const usual = usualAnswer(input) === undefined ? "" : ", else its own default";
  const called = as === id ? "" : `, and is called "${as}" here, since another input has its id`;
  const note = `its editor asks for "${id}"${called}: here ${inputVariable(as)} answers it, or what \`toolway doctor\` is told${usual}`;
  if (!notes.includes(note)) notes.push(note);
  return as;
}

function skip(reason: string): Reading {
  return { kind: "skip", reason };
}
