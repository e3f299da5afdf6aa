// Merges the servers of all known clients into one set, and says for each whether it was taken, and why not. It writes
// nothing: `mergeIntoFile` gives the text of the file, and the CLI puts it on disk.

import { readFileSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { applyEdits, type FormattingOptions, modify } from "jsonc-parser";
import { Source } from "../../config/jsonc.js";
import { Report } from "../../config/mistakes.js";
import { type ClientFile, findClientConfigs, type Place } from "./clients.js";
import { type ImportedEntry, isToolway, readEntry, readGroups } from "./entries.js";

export interface ImportResult {
  readonly servers: Readonly<Record<string, ImportedEntry>>;
  readonly taken: readonly { readonly client: string; readonly file: string; readonly names: readonly string[] }[];
  /** `name` is absent where the whole file was passed over. */
  readonly skipped: readonly Remark[];
  /** What is different from the client's own file: new names, lists that could not be taken over. */
  readonly notes: readonly Remark[];
}

interface Remark {
  readonly client: string;
  readonly file: string;
  readonly name: string | undefined;
  readonly reason: string;
}

export interface ImportOptions extends Place {
  /** The files to read. Default: all that exist. */
  readonly files?: readonly ClientFile[];
  /** Servers that the config has already: they keep their names, and equal ones are not taken again. */
  readonly existing?: Readonly<Record<string, unknown>>;
}

export function importConfigs(options: ImportOptions): ImportResult {
  const existing = new Map(Object.entries(options.existing ?? {}));
  const servers = new Map<string, ImportedEntry>();
  const from = new Map<string, string>();
  const taken: ImportResult["taken"][number][] = [];
  const skipped: Remark[] = [];
  const notes: Remark[] = [];

  for (const source of options.files ?? findClientConfigs(options)) {
    const { client, file } = source;
    const names: string[] = [];
    const remark = (list: Remark[], name: string | undefined, reason: string): void => {
      list.push({ client, file, name, reason });
    };
    const groups = readText(source);
    if (typeof groups === "string") {
      remark(skipped, undefined, groups);
      continue;
    }
    for (const { project, entries, off } of groups) {
      for (const [rawName, raw] of Object.entries(entries)) {
        const name = rawName.trim();
        const reading = off.has(rawName) ? undefined : readEntry(raw, source, project, options.home);
        if (reading === undefined || reading.kind === "skip") {
          remark(skipped, name, reading?.reason ?? "it is disabled there");
          continue;
        }
        const { entry, note } = reading;
        if (isToolway(entry)) {
          remark(skipped, name, "it is Toolway itself");
          continue;
        }
        const as = freeName(name, entry, existing, servers);
        if (as === undefined) {
          const first = from.get(name);
          remark(skipped, name, first === undefined ? "the config has it already" : `the same as the one of ${first}`);
          continue;
        }
        if (as !== name) remark(notes, name, `another server has this name: it is called "${as}"`);
        if (note !== undefined) remark(notes, as, note);
        servers.set(as, entry);
        if (!from.has(as)) from.set(as, client);
        names.push(as);
      }
    }
    if (names.length > 0) taken.push({ client, file, names });
  }
  return { servers: Object.fromEntries(servers), taken, skipped, notes };
}

/** The name under which the entry can be added; undefined where it is there already. */
function freeName(
  name: string,
  entry: ImportedEntry,
  existing: ReadonlyMap<string, unknown>,
  servers: ReadonlyMap<string, ImportedEntry>,
): string | undefined {
  const wanted = name === "" ? "server" : name;
  for (let number = 1; ; number++) {
    const candidate = number === 1 ? wanted : `${wanted}-${number}`;
    const there = servers.get(candidate) ?? existing.get(candidate);
    if (there === undefined) return candidate;
    if (isDeepStrictEqual(plain(there), plain(entry))) return undefined;
  }
}

/** Without prototypes and absent keys, which do not survive in a file either. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function readText(source: ClientFile): ReturnType<typeof readGroups> {
  try {
    return readGroups(readFileSync(source.file, "utf8"), source);
  } catch (error) {
    return `it cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
  }
}

/** The file with the servers added, its comments and layout kept. Throws a ConfigError where it is not valid JSON. */
export function mergeIntoFile(
  existingText: string | undefined,
  servers: Readonly<Record<string, unknown>>,
  path = "config",
): string {
  if (existingText === undefined || existingText.trim() === "") {
    return `${JSON.stringify({ mcpServers: servers }, null, 2)}\n`;
  }
  const groups = serversIn(existingText, path);
  const group = groups.includes("mcpServers") || !groups.includes("servers") ? "mcpServers" : "servers";
  const formattingOptions = layoutOf(existingText);
  let text = existingText;
  for (const [name, entry] of Object.entries(servers)) {
    text = applyEdits(text, modify(text, [group, name], entry, { formattingOptions }));
  }
  return text;
}

/** The servers of a config file, as they stand there: for `existing`. Throws a ConfigError where it is not JSON. */
export function existingServers(text: string, path = "config"): Record<string, unknown> {
  const root = readObject(text, path);
  return { ...asObject(root["mcpServers"]), ...asObject(root["servers"]) };
}

function serversIn(text: string, path: string): string[] {
  return Object.keys(readObject(text, path));
}

function readObject(text: string, path: string): Record<string, unknown> {
  const source = new Source(text);
  const report = new Report(path, source);
  const value = source.read((at, offset, message, hint) => report.mistakeAt(at, offset, message, hint));
  if (!report.failed && (typeof value !== "object" || value === null || Array.isArray(value))) {
    report.mistake([], "expected an object");
  }
  report.throwIfFailed();
  return value as Record<string, unknown>;
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
}

function layoutOf(text: string): FormattingOptions {
  const indent = /\n([ \t]+)\S/.exec(text)?.[1] ?? "  ";
  const insertSpaces = !indent.startsWith("\t");
  return { insertSpaces, tabSize: insertSpaces ? indent.length : 1, eol: text.includes("\r\n") ? "\r\n" : "\n" };
}
