// Entries in TOML, as Codex has it: a table of their own, which is edited as lines. Nothing else of the text is written
// anew, so its comments, order and quotes stay.

import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../../config/mistakes.js";
import { isObject } from "../../runtime/words/json-object.js";
import { jsonCopy } from "../../runtime/words/json-values.js";
import { parseToml, TomlError, type TomlTable } from "../import/toml.js";
import {
  type ClientEntry,
  type ClientEntryPlace,
  type EntryText,
  type EntryValue,
  refuseWrongEdit,
} from "./entry-text.js";

export const tomlEntry: EntryText = {
  read(text, place) {
    return entryOf(parsed(text, place), place);
  },

  put(before, place, entry, owned) {
    const text = before ?? "";
    const eol = text.includes("\r\n") ? "\r\n" : "\n";
    const old = tomlEntry.read(text, place);
    const edited =
      old === undefined ? appended(text, place, entry, eol) : changed(text, place, fieldsOf(old), entry, owned, eol);
    const kept = Object.entries(fieldsOf(old)).filter(([key]) => !owned.includes(key) && !(key in entry));
    check(text, edited, place, { ...Object.fromEntries(kept), ...entry });
    return edited;
  },

  // A table is there by its entries alone.
  hasGroup: () => false,

  take(text, place) {
    if (tomlEntry.read(text, place) === undefined) return text;
    const lines = text.split("\n");
    for (const { first, last } of [...ownTables(text, place)].reverse()) {
      const isBlank = (at: number) => (lines[at] ?? "").trim() === "";
      // The empty line that parts it from the table above goes with it.
      const from = first > 1 && isBlank(first - 2) && isBlank(last) ? first - 2 : first - 1;
      lines.splice(from, last - from);
    }
    const edited = lines.join("\n");
    check(text, edited, place, undefined);
    return edited;
  },
};

interface TableLines {
  readonly path: readonly string[];
  /** Of its header, and of its last pair. */
  readonly first: number;
  last: number;
  readonly pairs: { readonly path: readonly string[]; readonly first: number; readonly last: number }[];
}

function parsed(text: string, { file }: ClientEntryPlace, tables?: TableLines[]): TomlTable {
  try {
    if (tables === undefined) return parseToml(text);
    return parseToml(text, {
      table: (path, line) => tables.push({ path, first: line, last: line, pairs: [] }),
      pair: (path, first, last) => {
        if (tables.length === 0) tables.push({ path: [], first: 0, last: 0, pairs: [] });
        const table = tables.at(-1) as TableLines;
        table.pairs.push({ path, first, last });
        table.last = last;
      },
    });
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    throw mistake(file, error.line, `not valid TOML: ${error.message}`);
  }
}

/** The table of the entry, and those below it. Throws where it is written in another form than as a table. */
function ownTables(text: string, place: ClientEntryPlace): TableLines[] {
  const tables: TableLines[] = [];
  parsed(text, place, tables);
  const own = tables.filter(({ path }) => path[0] === place.group && path[1] === place.name);
  if (own[0]?.path.length === 2) return own;
  const inline = tables.flatMap(({ path, pairs }) =>
    pairs.filter((pair) => startsLike([...path, ...pair.path], [place.group, place.name])),
  );
  const line = inline[0]?.first ?? own[0]?.first ?? 1;
  const header = `[${place.group}.${place.name}]`;
  throw mistake(
    place.file,
    line,
    `expected ${place.name} as a table of its own`,
    `write it as ${header}, or take it out`,
  );
}

/** Whether the shorter of both is the beginning of the longer. */
function startsLike(path: readonly string[], wanted: readonly string[]): boolean {
  return wanted.every((key, at) => at >= path.length || path[at] === key);
}

function appended(text: string, place: ClientEntryPlace, entry: ClientEntry, eol: string): string {
  const tables: TableLines[] = [];
  const root = parsed(text, place, tables);
  const { group } = place;
  // A table that is written in one line, or as a list, takes no further ones.
  const closed = tables.find(
    ({ path, pairs }) => path.length === 0 && pairs.some((pair) => isDeepStrictEqual(pair.path, [group])),
  );
  if (closed !== undefined || Array.isArray(root[group])) {
    const line = closed?.pairs.find((pair) => pair.path[0] === group)?.first ?? 1;
    throw mistake(place.file, line, `${group} is written in one line`, `write each server as a table: [${group}.NAME]`);
  }
  const gap = text.trim() === "" ? "" : (text.endsWith("\n") ? "" : eol) + eol;
  const lines = [
    `[${group}.${place.name}]`,
    ...Object.entries(entry).map(([key, value]) => `${key} = ${tomlValue(value)}`),
  ];
  return `${text}${gap}${lines.join(eol)}${eol}`;
}

function changed(
  text: string,
  place: ClientEntryPlace,
  old: TomlTable,
  entry: ClientEntry,
  owned: readonly string[],
  eol: string,
): string {
  const [table] = ownTables(text, place);
  if (table === undefined) return text;
  const lines = text.split("\n");
  const end = eol === "\r\n" ? "\r" : "";
  const lineOf = (key: string) => `${key} = ${tomlValue(entry[key] as EntryValue)}${end}`;
  for (const { path, first, last } of [...table.pairs].reverse()) {
    const [key = ""] = path;
    const isOurs = path.length === 1 && (key in entry || owned.includes(key));
    if (!isOurs || (key in entry && isDeepStrictEqual(old[key], entry[key]))) continue;
    lines.splice(first - 1, last - first + 1, ...(key in entry ? [lineOf(key)] : []));
  }
  const fresh = Object.keys(entry).filter((key) => !(key in old));
  lines.splice(table.first, 0, ...fresh.map(lineOf));
  return lines.join("\n");
}

function check(before: string, after: string, place: ClientEntryPlace, entry: TomlTable | undefined): void {
  const expected = jsonCopy(parsed(before, place)) as TomlTable;
  const servers = fieldsOf(expected[place.group]);
  if (entry === undefined) delete servers[place.name];
  else servers[place.name] = entry;
  // A table without members is as good as none.
  if (Object.keys(servers).length === 0) delete expected[place.group];
  else expected[place.group] = servers;
  const found = jsonCopy(parsed(after, place)) as TomlTable;
  if (Object.keys(fieldsOf(found[place.group])).length === 0) delete found[place.group];
  refuseWrongEdit(isDeepStrictEqual(found, jsonCopy(expected)), place);
}

function entryOf(root: TomlTable, { group, name }: ClientEntryPlace): unknown {
  return fieldsOf(root[group])[name];
}

function fieldsOf(value: unknown): TomlTable {
  return isObject(value) ? value : {};
}

/** Strings of JSON are strings of TOML, but for the one control character that JSON lets stand. */
function tomlValue(value: EntryValue): string {
  if (typeof value === "string") return JSON.stringify(value).replaceAll("\x7f", "\\u007F");
  if (typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(", ")}]`;
  return `{ ${Object.entries(value)
    .map(([key, item]) => `${JSON.stringify(key)} = ${tomlValue(item)}`)
    .join(", ")} }`;
}

function mistake(file: string, line: number, message: string, hint?: string): ConfigError {
  return new ConfigError([{ file, line, column: undefined, key: "", message, hint }]);
}
