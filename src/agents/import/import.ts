// Merges the servers of all known clients into one set, and says for each whether it was taken, and why not. It writes
// nothing: config/edit makes the text of the file, and the CLI puts it on disk.

import { statSync } from "node:fs";
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { fits, readGlob } from "../../runtime/glob.js";
import { readTextFile } from "../../runtime/text-file.js";
import { jsonCopy } from "../../runtime/words/json-values.js";
import { DISABLED, projectFolder, readClientLists } from "./client-lists.js";
import { type ClientFile, type ClientId, clientFiles, findClientConfigs, type Place } from "./clients.js";
import {
  type EntryGroup,
  type ImportedEntry,
  isSetUp,
  isToolway,
  type Reading,
  readEntry,
  readGroups,
} from "./entries.js";
import { inputsOf, TakenInputs } from "./inputs.js";
import { type ClientFields, table } from "./values.js";

export interface ImportResult {
  readonly servers: Readonly<Record<string, ImportedEntry>>;
  /** What the servers ask a person for, as their files declare it, where the config has not declared the same. */
  readonly inputs: readonly ClientFields[];
  /** The variables that answer what a server asks for and nothing else stands for, by the server's name. */
  readonly unanswered: Readonly<Record<string, readonly string[]>>;
  readonly taken: readonly { readonly client: string; readonly file: string; readonly names: readonly string[] }[];
  /** `name` is absent where the whole file was passed over. */
  readonly skipped: readonly Remark[];
  /** What is different from the client's own file: new names, lists that could not be taken over. */
  readonly notes: readonly Remark[];
  /** Names and patterns of `only` and `exclude` that no server has, of those that are in the files. */
  readonly unmatched: readonly string[];
  /** The names in the files, taken or not. */
  readonly names: readonly string[];
  /** Where it was looked, whether there is a file or not. */
  readonly looked: readonly ClientFile[];
}

export interface Remark {
  readonly client: string;
  readonly file: string;
  readonly name: string | undefined;
  readonly reason: string;
}

export interface ImportOptions extends Place {
  /** Those clients only. Default: all. */
  readonly from?: readonly ClientId[];
  /** The servers of these names only; `*` stands for any letters. Default: all. */
  readonly only?: readonly string[];
  /** Never the servers of these names. */
  readonly exclude?: readonly string[];
  /** Takes also what a client keeps for other projects than the one of `cwd`. */
  readonly allProjects?: boolean;
  /** The file that they are taken into: where it is a client's own, it is not read. */
  readonly target?: string;
  /** Servers that the config has already: they keep their names, and equal ones are not taken again. */
  readonly existing?: Readonly<Record<string, unknown>>;
  /** The inputs that the config has. */
  readonly existingInputs?: unknown;
}

export function importConfigs(options: ImportOptions): ImportResult {
  const { from = [], only = [], exclude = [] } = options;
  const isAsked = ({ id }: { readonly id: ClientId }): boolean => from.length === 0 || from.includes(id);
  const existing = new Map(Object.entries(options.existing ?? {}));
  const servers = new Map<string, ImportedEntry>();
  const origin = new Map<string, string>();
  const taken: ImportResult["taken"][number][] = [];
  const skipped: Remark[] = [];
  const notes: Remark[] = [];
  const names = new Set<string>();
  const inputs = new TakenInputs(inputsOf(options.existingInputs), options.existing);
  const refuse = listsOf(options, notes);

  for (const source of findClientConfigs(options).filter(isAsked)) {
    if (source.file === options.target) continue;
    const { client, file } = source;
    const takenHere: string[] = [];
    const remark = (list: Remark[], name: string | undefined, reason: string): void => {
      list.push({ client, file, name, reason });
    };
    const groups = readText(source);
    if (typeof groups === "string") {
      remark(skipped, undefined, groups);
      continue;
    }
    for (const group of groups) {
      for (const [rawName, raw] of Object.entries(group.entries)) {
        const name = rawName.trim();
        names.add(name);
        if (!isWanted(name, only, exclude)) continue;
        const reading = refuseFirst(rawName, raw, group, source);
        if (reading.kind === "skip") {
          remark(skipped, name, reading.reason);
          continue;
        }
        const { as, isThere } = freeName(name, reading.entry, existing, servers);
        if (isThere) {
          const first = origin.get(as);
          remark(skipped, name, first === undefined ? "the config has it already" : `the same as the one of ${first}`);
          continue;
        }
        if (as !== name) {
          const why = name === "" ? "its name is empty" : "another server has this name";
          remark(notes, name, `${why}: it is called "${as}"`);
        }
        for (const note of reading.notes) remark(notes, as, note);
        servers.set(as, reading.entry);
        if (!origin.has(as)) origin.set(as, client);
        takenHere.push(as);
      }
    }
    if (takenHere.length > 0) taken.push({ client, file, names: takenHere });
  }
  return {
    servers: Object.fromEntries(servers),
    inputs: inputs.toDeclare([...servers.values()]),
    unanswered: Object.fromEntries([...servers].map(([name, entry]) => [name, inputs.unanswered(entry)])),
    taken,
    skipped,
    notes,
    unmatched: [...only, ...exclude].filter((pattern) => ![...names].some((name) => isNamed(name, [pattern]))),
    names: [...names],
    looked: clientFiles(options).filter(isAsked),
  };

  function refuseFirst(rawName: string, raw: unknown, group: EntryGroup, file: ClientFile): Reading {
    const refused = otherProject(group, file, options) ?? refuse(rawName, table(raw), file);
    if (refused !== undefined) return { kind: "skip", reason: refused };
    if (group.off.has(rawName)) return { kind: "skip", reason: DISABLED };
    const reading = readEntry(raw, { file, group, home: options.home, inputs });
    return reading.kind === "entry" && (isToolway(reading.entry) || isSetUp(raw))
      ? { kind: "skip", reason: "it is Toolway itself" }
      : reading;
  }
}

function listsOf(options: ImportOptions, notes: Remark[]) {
  const { refuse, unreadable } = readClientLists(options);
  // Of a client's own file that cannot be read it is told anyway.
  const own = new Set(clientFiles(options).map(({ file }) => file));
  for (const file of unreadable.filter((one) => !own.has(one))) {
    const reason = `${file} cannot be read, and may switch servers off: look at what is taken`;
    notes.push({ client: "", file, name: undefined, reason });
  }
  return refuse;
}

/** A client that keeps servers by project would not start them in another. */
function otherProject({ project }: EntryGroup, { format }: ClientFile, options: ImportOptions): string | undefined {
  if (project === undefined || format !== "claude-code" || options.allProjects === true) return undefined;
  return project === options.cwd || project === projectFolder(options)
    ? undefined
    : "it belongs to another project; --all-projects takes it";
}

function isWanted(name: string, only: readonly string[], exclude: readonly string[]): boolean {
  return (only.length === 0 || isNamed(name, only)) && !isNamed(name, exclude);
}

function isNamed(name: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) => fits(readGlob(pattern), name));
}

/** The name under which the entry can be added, or is there already. */
function freeName(
  name: string,
  entry: ImportedEntry,
  existing: ReadonlyMap<string, unknown>,
  servers: ReadonlyMap<string, ImportedEntry>,
): { readonly as: string; readonly isThere: boolean } {
  const wanted = name === "" ? "server" : name;
  for (let number = 1; ; number++) {
    const as = number === 1 ? wanted : `${wanted}-${number}`;
    const there = servers.get(as) ?? existing.get(as);
    if (there === undefined) return { as, isThere: false };
    if (isSame(table(there), entry)) return { as, isThere: true };
  }
}

/** What fetches its program from elsewhere does the same in any folder, unless an argument is a path in it. */
const FETCHES = /^(?:npx|bunx|pnpx|uvx|pipx|docker|podman)(?:\.cmd|\.exe)?$/i;
const RELATIVE = /^\.{1,2}(?:[/\\:]|$)|^\.env\b|=\.{1,2}(?:[/\\]|$)/;

function isSame(there: Readonly<Record<string, unknown>>, entry: ImportedEntry): boolean {
  if (isDeepStrictEqual(jsonCopy(there), jsonCopy(entry))) return true;
  const isFetched =
    FETCHES.test(basename(entry.command ?? "")) && !(entry.args ?? []).some((arg) => RELATIVE.test(arg));
  return isFetched && isDeepStrictEqual(jsonCopy({ ...there, cwd: undefined }), jsonCopy({ ...entry, cwd: undefined }));
}

/** Claude Code keeps what was said in its file: tens of megabytes were seen. */
const MAX_CLIENT_BYTES = 64 * 1024 * 1024;

function readText(source: ClientFile): ReturnType<typeof readGroups> {
  try {
    // To open a pipe that nobody writes into waits for ever, and hears no signal meanwhile.
    if (!statSync(source.file).isFile()) return "it cannot be read: it is not an ordinary file";
    return readGroups(readTextFile(source.file, MAX_CLIENT_BYTES), source);
  } catch (error) {
    return `it cannot be read: ${(error as NodeJS.ErrnoException).code ?? String(error)}`;
  }
}
