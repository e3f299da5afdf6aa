// What `toolway import` does: takes the servers of the clients on this machine into one config. Shows first, writes when
// asked.

import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { CLIENTS, type ClientId } from "../../agents/import/clients.js";
import { type ImportResult, importConfigs, type Remark } from "../../agents/import/import.js";
import { hideSecrets, literalSecrets, neededVariables } from "../../config/edit/entry-secrets.js";
import { addServers, inputsInText, serversInText } from "../../config/edit/text.js";
import { nearest } from "../../runtime/nearest.js";
import { configPathFor } from "../gateway/source.js";
import { Exit, type ExitCode, usageError } from "../line/errors.js";
import { hinted, type Io, note, print, printJson, shellPath, shortPath, shown } from "../line/io.js";
import { count, type Style, styleOf } from "../text/print.js";
import { readConfigToEdit, writeConfigText } from "./config-file.js";

const CLIENT_IDS = Object.keys(CLIENTS) as ClientId[];

interface ImportInput {
  readonly write: string | undefined;
  readonly from: readonly string[];
  readonly only: readonly string[];
  readonly exclude: readonly string[];
  readonly allProjects: boolean;
  readonly dryRun: boolean;
  readonly json: boolean;
}

export function importServers(input: ImportInput, io: Io): ExitCode {
  const target = resolve(io.cwd, input.write ?? "toolway.json");
  const before = existsSync(target) ? readConfigToEdit(target) : undefined;
  const { home, cwd, env } = io;
  const result = importConfigs({
    home,
    cwd,
    env,
    platform: process.platform,
    from: input.from.flatMap(namesIn).map(clientOf),
    only: input.only.flatMap(namesIn),
    exclude: input.exclude.flatMap(namesIn),
    allProjects: input.allProjects,
    target,
    existing: hasText(before) ? serversInText(before, target) : {},
    existingInputs: hasText(before) ? inputsInText(before, target) : undefined,
  });
  refuseUnmatched(result);
  const write = input.write !== undefined && !input.dryRun;
  const names = Object.keys(result.servers);
  if (write && names.length > 0) writeConfigText(target, addServers(before, result.servers, target, result.inputs));

  const needs = Object.entries(result.servers).map(([name, entry]) => ({
    name,
    variables: neededVariables(entry),
    inputs: result.unanswered[name] ?? [],
    secrets: literalSecrets(entry),
  }));
  if (input.json) {
    const { servers, inputs, taken, skipped, notes } = result;
    const written = write && names.length > 0 ? target : null;
    const looked = result.looked.map(({ client, file }) => ({ client, file }));
    printJson(io, { servers, inputs, taken, skipped, notes, needs, looked, written });
    return Exit.ok;
  }
  const style = styleOf(io);
  const where = shortPath(io, target);
  if (!write && names.length > 0) {
    const hidden = Object.entries(result.servers).map(([name, entry]) => [name, hideSecrets(entry)]);
    print(io, `${before === undefined ? where : `To be added to ${where}`}:\n`);
    const inputs = shown(result.inputs, io.isTTY);
    print(io, addServers(undefined, shown(Object.fromEntries(hidden), io.isTTY), target, inputs));
  }
  const told = shown(result, io.isTTY);
  for (const line of remarks(told, style, io)) print(io, line);
  if (names.length === 0) {
    for (const line of whereLooked(told, io)) print(io, hinted(io, line));
    return Exit.ok;
  }
  for (const line of summary(shown(needs, io.isTTY), { where, write, style, io })) print(io, line);
  if (write) {
    print(io, `\nWrote ${count(names.length, "server")} to ${style.bold(where)}.`);
    const named = configPathFor(undefined, io) === target ? "" : ` --config ${shellPath(io, target)}`;
    print(io, hinted(io, `Next: \`toolway doctor${named}\`, then \`toolway serve${named}\`.`));
  } else {
    const file = target === resolve(io.cwd, "toolway.json") ? [] : [shellPath(io, target)];
    const line = ["toolway import", ...narrowing(input), "--write", ...file].join(" ");
    note(io, `\nNothing was written. \`${line}\` adds ${count(names.length, "server")} to ${where}.`);
  }
  return Exit.ok;
}

/** An empty file is as good as none. */
function hasText(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== "";
}

/** The servers of the clients on this machine, for completion. */
export function importableNames({ home, cwd, env }: Io): readonly string[] {
  return importConfigs({ home, cwd, env, platform: process.platform }).names;
}

/** The words of the line that narrowed it, to be typed once more. */
function narrowing({ from, only, exclude, allProjects }: ImportInput): string[] {
  const option = (flag: string, values: readonly string[]) =>
    values.map((value) => `${flag} ${/^[\w.,@/-]+$/.test(value) ? value : `'${value}'`}`);
  const narrowed = [...option("--from", from), ...option("--only", only), ...option("--exclude", exclude)];
  return allProjects ? [...narrowed, "--all-projects"] : narrowed;
}

function namesIn(text: string): string[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** People write "VS Code", "vs-code" and "vscode". */
function clientOf(word: string): ClientId {
  const letters = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]/g, "");
  const found = CLIENT_IDS.find((id) => letters(id) === letters(word) || letters(CLIENTS[id]) === letters(word));
  if (found !== undefined) return found;
  const near = nearest(word.toLowerCase(), CLIENT_IDS);
  throw usageError(
    `There is no client ${word}.`,
    near === undefined ? `It is one of ${CLIENT_IDS.join(", ")}.` : `Did you mean ${near}?`,
  );
}

/** A misspelt name would take too little, or what was to be left out. */
function refuseUnmatched({ unmatched, names }: ImportResult): void {
  const [word] = unmatched;
  if (word === undefined) return;
  const near = nearest(word, names);
  throw usageError(
    `No client has a server ${word}.`,
    near === undefined ? `There are: ${names.join(", ") || "none"}.` : `Did you mean ${near}?`,
  );
}

function remarks(result: ImportResult, style: Style, io: Io): string[] {
  const lines = result.taken.map(
    ({ client, file, names }) => `${style.green("taken")}    ${client}, ${shortPath(io, file)}: ${names.join(", ")}`,
  );
  for (const [{ client, file, name, reason }, names] of grouped(result.skipped)) {
    const what = name === undefined ? shortPath(io, file) : `${names.join(", ")} in ${shortPath(io, file)}`;
    lines.push(style.dim(`skipped  ${client}, ${what}: ${reason}`));
  }
  for (const { client, name, reason } of result.notes) {
    const whose = [client, name].filter((part) => part !== "" && part !== undefined).join(", ");
    lines.push(style.yellow(`note     ${whose === "" ? "" : `${whose}: `}${hinted(io, reason)}`));
  }
  return lines;
}

/** Those that were passed over in one file for one reason are one line. */
function grouped(list: readonly Remark[]): [Remark, string[]][] {
  const found = new Map<string, [Remark, string[]]>();
  for (const remark of list) {
    const key = JSON.stringify([remark.file, remark.reason, remark.name === undefined]);
    const known = found.get(key) ?? [remark, []];
    found.set(key, known);
    if (remark.name !== undefined) known[1].push(remark.name);
  }
  return [...found.values()];
}

function whereLooked({ looked, skipped }: ImportResult, io: Io): string[] {
  if (skipped.some(({ name }) => name !== undefined)) {
    return ["Nothing to take: what the clients on this machine have is there already, or was passed over."];
  }
  const lines = looked.map(
    ({ client, file }) => `  ${client}: ${shortPath(io, file)}${existsSync(file) ? " (no servers in it)" : ""}`,
  );
  return [
    "No servers were found. It was looked here:",
    ...lines,
    "`toolway add NAME COMMAND…` adds a server by hand; `toolway serve FILE` takes a client's file from elsewhere.",
  ];
}

interface Needs {
  readonly name: string;
  readonly variables: readonly string[];
  /** Variables that answer what would be asked for. */
  readonly inputs: readonly string[];
  readonly secrets: readonly string[];
}

/** What is left for the person to do. */
function summary(
  needs: readonly Needs[],
  { where, write, style, io }: { where: string; write: boolean; style: Style; io: Io },
): string[] {
  const lines: string[] = [];
  const variables = new Map<string, string[]>();
  const asked = new Set(needs.flatMap(({ inputs }) => inputs));
  for (const { name, variables: needed, inputs } of needs) {
    for (const variable of [...needed, ...inputs]) variables.set(variable, [...(variables.get(variable) ?? []), name]);
  }
  if (variables.size > 0) {
    lines.push("", `Variables that the servers need, to be set where the gateway runs:`);
    for (const [variable, names] of variables) {
      const elseAsked = asked.has(variable) ? hinted(io, "; else `toolway doctor` asks for it") : "";
      const unset = (io.env[variable] ?? "") === "" ? style.yellow(` (not set here${elseAsked})`) : "";
      lines.push(`  ${variable}${unset}: ${names.join(", ")}`);
    }
  }
  const copied = needs.filter(({ secrets }) => secrets.length > 0);
  if (copied.length > 0) {
    lines.push("", `Keys that ${write ? "were" : "would be"} copied as they stand:`);
    for (const { name, secrets } of copied) lines.push(`  ${name}: ${secrets.join(", ")}`);
    lines.push(`Keep ${where} out of git, or put \${VAR} in their place.`);
  }
  return lines;
}
