// What `toolway add` does: makes an entry of the words of a line, has the server tried, and writes it into the file.

// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { existsSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { isToolway } from "../../agents/import/entries.js";
import type { Config } from "../../config/config.js";
import { literalSecrets, neededVariables } from "../../config/edit/entry-secrets.js";
import { addServers, serversInText } from "../../config/edit/text.js";
import { nameProblem } from "../../config/entries.js";
import { parseConfig } from "../../config/load.js";
import { baseFolder, commandPath } from "../../config/paths.js";
import type { ServerSpec } from "../../contracts/server-spec.js";
import { shellWord } from "../../runtime/words/shell-word.js";
import type { GatewaySource, Probe } from "../gateway/port.js";
import { configPathFor, sourceFor } from "../gateway/source.js";
import { Exit, type ExitCode, UserError, usageError } from "../line/errors.js";
import { hinted, type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { count, duration, type Style, styleOf } from "../text/print.js";
import { readConfigToEdit, writeConfigText } from "./config-file.js";
import { isServed } from "./entries.js";

interface NewEntry {
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly mailbox?: string;
  readonly broker?: string;
  readonly token?: string;
}

interface AddInput {
  readonly name: string;
  readonly command: readonly string[];
  /** The command is none, and alone. */
  readonly isAddress: boolean;
  readonly env: readonly string[];
  readonly header: readonly string[];
  readonly mailbox: string | undefined;
  readonly token: string | undefined;
  readonly noCheck: boolean;
  readonly config: string | undefined;
  readonly json: boolean;
}

/** What was seen of a server that was tried. */
interface Examined {
  readonly spec: { readonly name: string };
  readonly probe: Probe;
  readonly advice: readonly string[];
}

/** How `doctor` tries servers, and tells of one. */
interface Doctor<E extends Examined> {
  examineAll(specs: readonly ServerSpec[], how: { config: Config; source: GatewaySource }, io: Io): Promise<E[]>;
  detail(found: E, style: Style): string;
}

export async function addToConfig<E extends Examined>(input: AddInput, io: Io, doctor: Doctor<E>): Promise<ExitCode> {
  const path =
    input.config === undefined
      ? (configPathFor(undefined, io) ?? resolve(io.cwd, "toolway.json"))
      : resolve(io.cwd, input.config);
  const name = input.name.trim();
  const entry = entryFor(name, input, path, io);
  const needed = neededVariables(entry);
  const spec = specOf(textWith(name, entry, path, io), { name, path, needed, io });
  const where = shortPath(io, path);

  noteMeantForUs(input.command.slice(1), io);

  let check: E | undefined;
  if (!input.noCheck) {
    refuseUnset(name, needed, io);
    if (!input.json && io.isErrTTY) note(io, `Starting ${name} …`);
    const source = await sourceFor({ config: existsSync(path) ? path : undefined, state: undefined }, io);
    [check] = await doctor.examineAll([spec.server], { config: spec.config, source }, io);
    if (check !== undefined && !check.probe.ok) {
      if (input.json) printJson(io, { config: path, name, added: false, check: check.probe, advice: check.advice });
      else
        note(io, doctor.detail({ ...check, probe: shown(check.probe, io.isErrTTY) }, styleOf({ ...io, isTTY: false })));
      if (input.json) return Exit.failure;
      throw new UserError(`${name} was not added to ${where}, since it does not work.`, {
        hint: check.probe.error?.reason === "oauth" ? loginAfter(name) : ANYWAY,
      });
    }
  }
  const isNew = !existsSync(path);
  // Once more from the file: it may have been edited while the server was tried.
  writeConfigText(path, textWith(name, entry, path, io));
  const running = await isServed(path, io);
  const secrets = literalSecrets({ ...entry });
  if (input.json) {
    printJson(io, { config: path, name, added: true, check: check?.probe ?? null, secrets, gateway: running });
    return Exit.ok;
  }
  print(io, `${isNew ? "Made" : "Added"} ${isNew ? `${where} with ${name}` : `${name} to ${where}`}${outcome(check)}.`);
  if (secrets.length > 0) print(io, secretsText(secrets, where));
  print(io, hinted(io, running ? takenUp(needed) : "Next: `toolway serve`."));
  return Exit.ok;
}

const ANYWAY = "Put it right, or add it all the same with --no-check.";

/** It cannot work before there is a login, and there is none before it is in the config. */
function loginAfter(name: string): string {
  return `Add it all the same with --no-check, write "auth": "oauth" into its entry, and then \`toolway login ${shellWord(name)}\`.`;
}

/** Options of ours that servers have, too, and that are theirs behind the command. */
const MAY_BE_OURS = ["--config", "--no-check", "--json"];

/** It may be right so, and if not, nobody would see why. */
function noteMeantForUs(args: readonly string[], io: Io): void {
  const flags = MAY_BE_OURS.filter((flag) => args.some((arg) => arg === flag || arg.startsWith(`${flag}=`)));
  for (const flag of flags) {
    note(io, `${flag} after the command is an argument of the server; if it was meant for toolway, put it before.`);
  }
}

/** What a gateway that runs makes of the entry. Which variables it has, nobody here knows. */
function takenUp(needed: readonly string[]): string {
  if (needed.length === 0) return "The gateway that runs for it starts the server by itself.";
  const names = needed.join(" and ");
  return `The gateway that runs for it starts the server by itself if ${names} ${needed.length > 1 ? "are" : "is"} set there; else \`toolway status\` shows it as misconfigured until the gateway is restarted with ${needed.length > 1 ? "them" : "it"}.`;
}

function entryFor(name: string, input: AddInput, path: string, io: Io): NewEntry {
  const { command, isAddress, env, header, mailbox, token } = input;
  const [first = "", ...args] = command;
  const isBroker = isAddress && /^wss?:/i.test(first);
  const wrong = nameProblem(name, "server");
  if (wrong !== undefined) throw usageError(`The name of the server is wrong: ${wrong}.`);
  if (!isBroker && (mailbox !== undefined || token !== undefined)) {
    throw usageError("--mailbox and --token go with the address of a broker.", "It begins with ws:// or wss://.");
  }
  if (isAddress) {
    if (args.length > 0)
      throw usageError("An address takes no arguments.", "Options of toolway are in `toolway add --help`.");
    if (env.length > 0) throw usageError("--env is for programs.", "An address takes --header 'NAME: VALUE'.");
    if (isBroker) {
      if (header.length > 0) throw usageError("--header is for HTTP servers.", "A broker takes --token.");
      return { mailbox: mailbox ?? name, broker: first, ...(token !== undefined && { token }) };
    }
    const headers = Object.fromEntries(header.map(headerOf));
    return refuseItself({ url: first, ...(header.length > 0 && { headers }) });
  }
  if (header.length > 0) throw usageError("--header is for addresses.", "A program takes --env NAME=VALUE.");
  if (first === "") throw usageError("The command is empty.");
  if (/\s/.test(first) && args.length === 0 && !existsSync(resolve(io.cwd, first))) {
    throw usageError(
      "The command and its arguments are one word here.",
      `Without the quotes: \`toolway add ${name} ${first}\``,
    );
  }
  // What is relative is meant from here, and read from the folder of the config.
  const isElsewhere = baseFolder(path) !== io.cwd;
  return refuseItself({
    command: isElsewhere ? commandPath(first, io.cwd, io.home) : first,
    ...(args.length > 0 && { args }),
    ...(env.length > 0 && { env: Object.fromEntries(env.map(variableOf)) }),
    ...(isElsewhere && args.some((arg) => isPathFrom(arg, io.cwd)) && { cwd: io.cwd }),
  });
}

function isPathFrom(arg: string, folder: string): boolean {
  if (arg === "" || arg.startsWith("-") || isAbsolute(arg)) return false;
  return /^\.{1,2}(?:[/\\]|$)/.test(arg) || existsSync(resolve(folder, arg));
}

function refuseItself(entry: NewEntry): NewEntry {
  if (!isToolway({ ...entry })) return entry;
  throw usageError(
    "This is Toolway itself.",
    "Behind itself it would wait for itself: name the servers that it shall run.",
  );
}

function variableOf(text: string): [string, string] {
  const at = text.indexOf("=");
  const name = at < 0 ? text : text.slice(0, at);
  if (!/^[A-Za-z_]\w*$/.test(name)) throw usageError("--env takes NAME=VALUE.", "For instance --env REGION=eu.");
  return [name, at < 0 ? `\${${name}}` : text.slice(at + 1)];
}

function headerOf(text: string): [string, string] {
  const [, name, value] = /^([^:=\s]+)\s*[:=]\s*(\S.*)$/.exec(text) ?? [];
  if (name !== undefined && value !== undefined) return [name, value];
  throw usageError("--header takes 'NAME: VALUE'.", "For instance --header 'Authorization: Bearer ${TOKEN}'.");
}

/** The file with the entry in it, or the text of a new one. */
function textWith(name: string, entry: NewEntry, path: string, io: Io): string {
  const before = existsSync(path) ? readConfigToEdit(path) : undefined;
  const isThere = before !== undefined && before.trim() !== "" && Object.hasOwn(serversInText(before, path), name);
  if (!isThere) return addServers(before, { [name]: entry }, path);
  throw new UserError(`${shortPath(io, path)} has a server ${name} already.`, {
    hint: `Choose another name, or take it out first: \`toolway remove ${name}\``,
  });
}

/** Whether the entry can be used at all, whatever its variables hold. */
function specOf(
  text: string,
  { name, path, needed, io }: { name: string; path: string; needed: readonly string[]; io: Io },
) {
  const env = { ...Object.fromEntries(needed.map((variable) => [variable, "unset"])), ...io.env };
  const config = parseConfig(text, { path, env, home: io.home, wrongEntries: "keep" });
  const server: ServerSpec | undefined = config.servers.find((one) => one.name === name);
  if (server !== undefined) return { server, config };
  const why = config.misconfigured.find((one) => one.name === name)?.why ?? "it cannot be read";
  throw usageError(`${name} was not added: ${why}`);
}

function refuseUnset(name: string, needed: readonly string[], io: Io): void {
  const unset = needed.filter((variable) => io.env[variable] === undefined);
  if (unset.length === 0) return;
  throw new UserError(
    `${name} cannot be tried, since ${unset.join(" and ")} ${unset.length > 1 ? "are" : "is"} not set.`,
    {
      hint: "Set it here, or add --no-check: then it must be set where the gateway runs.",
    },
  );
}

function outcome(check: Examined | undefined): string {
  if (check === undefined) return ", without a check";
  const { tools, readyMs } = check.probe;
  return `: ${count(tools.length, "tool")}${readyMs === undefined ? "" : `, ready in ${duration(readyMs)}`}`;
}

function secretsText(secrets: readonly string[], where: string): string {
  const has = (part: string) => secrets.some((key) => key.startsWith(`${part}.`));
  const how = [
    ...(has("env") ? ["--env NAME alone does that"] : []),
    ...(has("headers") ? ["--header 'NAME: ${VAR}', in single quotes, does that"] : []),
    ...(secrets.includes("token") ? ["--token '${VAR}', in single quotes, does that"] : []),
  ];
  const does = how.length === 0 ? "" : `: ${how.join(", ")}`;
  return `Keys stand in ${where} as they are: ${secrets.join(", ")}. Keep it out of git, or let \${VAR} stand for them${does}.`;
}
