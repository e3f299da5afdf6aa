// Edits the servers in the text of a config: adds one, takes one out. What it does not have to touch stays as it is,
// byte for byte: comments, order, layout, commas at the end of a list. Reads and writes no file.

import { isDeepStrictEqual } from "node:util";
import { isObject } from "../../runtime/words/json-object.js";
import { jsonCopy } from "../../runtime/words/json-values.js";
import { FOREIGN_GROUPS } from "../clients/foreign-keys.js";
import { Source } from "../jsonc.js";
import { Report } from "../mistakes.js";
import { appendItem, insertMember, memberOf, removeMember, replaceValue, treeOf, valueNode } from "./members.js";

type Groups = "mcpServers" | "servers";

/** The servers of a config, as they stand there. Throws a ConfigError where the text is not JSON. */
export function serversInText(text: string, path = "config"): Record<string, unknown> {
  const root = readRoot(text, path);
  return { ...asObject(root["mcpServers"]), ...asObject(root["servers"]) };
}

/** What people are asked for, as VS Code's files declare it; undefined where the config declares none. */
export function inputsInText(text: string, path = "config"): unknown {
  return readRoot(text, path)["inputs"];
}

/** The text with the servers added, and the inputs that they use. Without a text, one that has them alone. */
export function addServers(
  before: string | undefined,
  servers: Readonly<Record<string, unknown>>,
  path = "config",
  inputs: readonly unknown[] = [],
): string {
  if (before === undefined || before.trim() === "") {
    const config = { ...(inputs.length > 0 && { inputs }), mcpServers: servers };
    return `${JSON.stringify(config, null, 2)}\n`;
  }
  let text = inputs.length === 0 ? before : addInputs(before, inputs, path);
  for (const [name, entry] of Object.entries(servers)) text = addServer(text, name, entry, path);
  return text;
}

function addInputs(text: string, inputs: readonly unknown[], path: string): string {
  const root = readRoot(text, path);
  const known = root["inputs"] ?? [];
  if (!Array.isArray(known)) {
    const report = new Report(path, new Source(text));
    report.mistake(["inputs"], "expected a list with an input in each place");
    report.throwIfFailed();
    return text;
  }
  const held = memberOf(treeOf(text), "inputs");
  let edited = text;
  if (held === undefined) edited = insertMember(text, treeOf(text), "inputs", inputs);
  else if (known.length === 0) edited = replaceValue(text, held, inputs);
  else for (const input of inputs) edited = appendItem(edited, "inputs", input);
  return checked(edited, { ...root, inputs: [...known, ...inputs] }, path);
}

function addServer(text: string, name: string, entry: unknown, path: string): string {
  const root = readRoot(text, path);
  const group: Groups = "mcpServers" in root || !("servers" in root) ? "mcpServers" : "servers";
  if (root[group] !== undefined && !isObject(root[group])) {
    const report = new Report(path, new Source(text));
    report.mistake([group], "expected an object with a server under each name");
    report.throwIfFailed();
  }
  const held = memberOf(treeOf(text), group);
  const edited =
    held === undefined
      ? insertMember(text, treeOf(text), group, { [name]: entry })
      : insertMember(text, valueNode(held), name, entry);
  return checked(edited, { ...root, [group]: { ...asObject(root[group]), [name]: entry } }, path);
}

/**
 * The text without that server; undefined where it has none of that name. Its own comments go with it: on its
 * line, and directly above it unless it is the first.
 */
export function removeServer(before: string, name: string, path = "config"): string | undefined {
  const root = readRoot(before, path);
  for (const group of ["mcpServers", "servers"] as const) {
    const rawName = Object.keys(asObject(root[group])).find((raw) => raw === name || raw.trim() === name);
    const held = memberOf(treeOf(before), group);
    if (rawName === undefined || held === undefined) continue;
    const { [rawName]: _removed, ...rest } = asObject(root[group]);
    return checked(removeMember(before, valueNode(held), rawName), { ...root, [group]: rest }, path);
  }
  return undefined;
}

function readRoot(text: string, path: string): Record<string, unknown> {
  const source = new Source(text);
  const report = new Report(path, source);
  const value = source.read((at, offset, message, hint) => report.mistakeAt(at, offset, message, hint));
  if (!report.failed && !isObject(value)) report.mistake([], "expected an object");
  else if (isObject(value) && !("mcpServers" in value || "servers" in value)) {
    const foreign = FOREIGN_GROUPS.find((key) => isObject(value[key]));
    if (foreign !== undefined) {
      report.mistake([foreign], 'expected the servers under "mcpServers": this is the form of another client', {
        hint: "run `toolway import` to bring its servers over",
        onKey: true,
      });
    }
  }
  report.throwIfFailed();
  return value as Record<string, unknown>;
}

/** A file is the user's: an edit that does not say what it should is an error here, and never written. */
function checked(text: string, expected: unknown, path: string): string {
  if (!isDeepStrictEqual(jsonCopy(readRoot(text, path)), jsonCopy(expected))) {
    throw new Error("The edited config does not say what it should. Nothing was written.");
  }
  return text;
}

function asObject(value: unknown): Record<string, unknown> {
  return isObject(value) ? { ...value } : {};
}
