// The servers that a client has by the user's own config, as far as a run must know them: to choose a name that is
// free, and to hide them where that was asked for.

import { dirname } from "node:path";
import { Source } from "../../config/jsonc.js";
import { type ClientFile, type ClientId, clientFiles } from "../import/clients.js";
import { readGroups } from "../import/entries.js";
import { type ClientFields, table } from "../import/values.js";
import { ENTRY_NAME, OTHER_NAME, type RunFacts } from "./plan.js";

/** Clients that look for a project's file in the folders around the one that they are started in, too. */
const LOOKING_UP: ReadonlySet<ClientId> = new Set(["codex", "opencode"]);
/** No path of a project is deeper. */
const MAX_DEPTH = 64;

/** The client's own files, as far as there may be any; of a project first. */
export function ownFiles(id: ClientId, facts: RunFacts, more: readonly string[] = []): ClientFile[] {
  const folders = LOOKING_UP.has(id) ? foldersAround(facts.cwd) : [facts.cwd];
  const files = folders.flatMap((cwd) => clientFiles({ ...facts, cwd }).filter((file) => file.id === id));
  const all = [...files, ...more.flatMap((file) => files.slice(0, 1).map((one) => ({ ...one, file })))];
  // The user's own is found again with each folder around, and goes behind all of them.
  return [...new Map(all.toReversed().map((one) => [one.file, one])).values()].toReversed();
}

/** All that files say of a name, in the order of the files: some clients merge them, and none is to be overlooked. */
export type OwnServers = ReadonlyMap<string, readonly [ClientFields, ...ClientFields[]]>;

/** By name; of several of one name the project's own is the first. */
export function ownServers(id: ClientId, facts: RunFacts, more: readonly string[] = []): OwnServers {
  const found = new Map<string, [ClientFields, ...ClientFields[]]>();
  for (const file of ownFiles(id, facts, more)) {
    const text = facts.read(file.file);
    const groups = text === undefined ? [] : readGroups(text, file);
    // A file that cannot be read is the client's to complain of.
    if (typeof groups === "string") continue;
    for (const { entries, project } of groups) {
      // What a client keeps for other projects does not count here.
      if (project !== undefined && project !== file.project && project !== facts.cwd) continue;
      for (const [name, entry] of Object.entries(entries)) {
        const before = found.get(name);
        if (before === undefined) found.set(name, [table(entry)]);
        else before.push(table(entry));
      }
    }
  }
  return found;
}

function foldersAround(cwd: string): string[] {
  const folders = [cwd];
  for (let folder = dirname(cwd); folder !== folders.at(-1) && folders.length < MAX_DEPTH; folder = dirname(folder)) {
    folders.push(folder);
  }
  return folders;
}

export interface ChosenName {
  readonly name: string;
  readonly notes: readonly string[];
}

/** `isSame` says whether an entry of the user's of our name is of our form, so that ours can stand in its place. */
export function entryName(servers: OwnServers, isSame: (entry: ClientFields) => boolean, title: string): ChosenName {
  const own = servers.get(ENTRY_NAME);
  if (own === undefined || own.every(isSame)) return { name: ENTRY_NAME, notes: [] };
  let name = OTHER_NAME;
  // A client has a few dozen servers: one of so many names and one more is free.
  for (let i = 2; servers.has(name) && i <= servers.size + 1; i++) name = `${OTHER_NAME}_${i}`;
  const why = `${title} has a server "${ENTRY_NAME}" of its own in another form, which stays: in this run Toolway's is "${name}".`;
  return { name, notes: [why] };
}

/** What is said of settings of the user's that ours take the place of, where nothing of them can be taken over. */
export function unreadable(path: string, text: string | undefined, title: string): string[] {
  if (text === undefined || text.trim() === "") return [];
  const source = new Source(text);
  let why: string | undefined;
  source.read((at, offset, message) => {
    if (at.length === 0) why ??= `line ${source.position(offset).line}: ${message}`;
  });
  return why === undefined ? [] : [`${path} cannot be read (${why}): ${title} goes without it in this run.`];
}

/** An entry that names an address, and no program. */
export function isHttp(entry: ClientFields): boolean {
  const hasAddress = typeof entry["url"] === "string" || typeof entry["httpUrl"] === "string";
  return hasAddress && entry["command"] === undefined;
}

/** Whether an option stands among the arguments, before a `--`: `-p`, `--print`, `--print=x`. */
export function hasOption(args: readonly string[], ...flags: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end < 0 ? args : args.slice(0, end)).some((word) =>
    flags.some((flag) => word === flag || (flag.startsWith("--") && word.startsWith(`${flag}=`))),
  );
}

/** What stands behind an option, before a `--`: `--profile x`, `--profile=x`. */
export function valuesOf(args: readonly string[], flag: string): string[] {
  const end = args.indexOf("--");
  const words = end < 0 ? args : args.slice(0, end);
  return words.flatMap((word, at) => {
    if (word === flag) return words[at + 1] ?? [];
    return word.startsWith(`${flag}=`) ? word.slice(flag.length + 1) : [];
  });
}
