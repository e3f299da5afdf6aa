// `toolway import`: takes the servers of the clients on this machine into one config. Shows first, writes when asked.

import { existsSync, readFileSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import type { ImportResult } from "../../agents/import/import.js";
import type { SecretSource } from "../../runtime/redact/secrets-of.js";
import { defineCommand, jsonOption } from "../line/command.js";
import { Exit, UserError } from "../line/errors.js";
import { type Io, note, print, printJson, shortPath, shown } from "../line/io.js";
import { count, type Style, styleOf } from "../text/print.js";

/** Entries may hold keys in `env` and `headers`. */
const PRIVATE_FILE = 0o600;

export const importConfigs = defineCommand({
  metadata: {
    name: "import",
    summary: "Takes the servers of your clients into one config.",
    description:
      "Finds the configs of the clients on this machine (Claude Code and Desktop, Cursor, VS Code, Codex, Gemini CLI, " +
      "opencode, Windsurf, Zed and others), in this folder and in your home, and shows the servers that it would take. " +
      "Nothing is written without --write; the clients' own files are never changed. The preview hides the values of " +
      "env and headers; the written file and --json have them.",
  },
  args: {},
  options: {
    write: {
      value: "FILE",
      preset: "toolway.json",
      description: "Adds them to this file, which need not exist. Default: ./toolway.json.",
      completes: "file",
    },
    dryRun: { description: "Shows what --write would do, and does not." },
    ...jsonOption,
  },
  examples: [
    { line: "toolway import", note: "what is there, and what the config would be" },
    { line: "toolway import --write", note: "into ./toolway.json; what it has stays" },
  ],
  async handler(input, io) {
    const config = await import("../../agents/import/import.js");
    const target = resolve(io.cwd, input.write ?? "toolway.json");
    const before = existsSync(target) ? read(target) : undefined;
    const existing = before === undefined ? {} : config.existingServers(before, target);
    const { home, cwd, env } = io;
    const result = config.importConfigs({ home, cwd, env, platform: process.platform, existing });
    const write = input.write !== undefined && !input.dryRun;
    const names = Object.keys(result.servers);
    if (write && names.length > 0) save(target, config.mergeIntoFile(before, result.servers, target));

    if (input.json) {
      printJson(io, { ...result, written: write && names.length > 0 ? target : null });
      return Exit.ok;
    }
    const style = styleOf(io);
    print(io, summary(shown(result, io.isTTY), style, io));
    if (names.length === 0) return Exit.ok;
    const where = shortPath(io, target);
    if (write) {
      print(io, `\nWrote ${count(names.length, "server")} to ${style.bold(where)}.`);
      print(io, "Next: toolway doctor, then toolway serve.");
      return Exit.ok;
    }
    print(io, `\n${before === undefined ? where : `${where}, with them added`}:\n`);
    const { redactorFor } = await import("../../runtime/redact/secrets-of.js");
    io.stdout.write(config.mergeIntoFile(undefined, hideValues(result.servers, redactorFor)));
    note(io, `\nNothing was written. \`toolway import --write\` adds ${count(names.length, "server")} to ${where}.`);
    return Exit.ok;
  },
});

function summary(result: ImportResult, style: Style, io: Io): string {
  const lines: string[] = [];
  for (const { client, file, names } of result.taken) {
    lines.push(`${style.green("taken")}    ${client}, ${shortPath(io, file)}: ${names.join(", ")}`);
  }
  for (const { client, file, name, reason } of result.skipped) {
    const what = name === undefined ? shortPath(io, file) : `${name} in ${shortPath(io, file)}`;
    lines.push(style.dim(`skipped  ${client}, ${what}: ${reason}`));
  }
  for (const { client, name, reason } of result.notes) {
    lines.push(style.yellow(`note     ${client}${name === undefined ? "" : `, ${name}`}: ${reason}`));
  }
  if (result.taken.length === 0)
    lines.push("Nothing to take: the clients on this machine have no server that is not there already.");
  return lines.join("\n");
}

type RedactorFor = (entry: SecretSource) => { redact(text: string): string };

const VARIABLE = /\$\{[^}]+\}/;

/** What goes to a screen, or a chat with an agent, must not show a key; `${VAR}` is none. */
function hideValues(servers: ImportResult["servers"], redactorFor: RedactorFor): Record<string, unknown> {
  // Keys are in arguments and addresses as well. A text that names a variable holds none.
  const withoutKeys = (text: string, entry: ImportResult["servers"][string]): string =>
    VARIABLE.test(text) ? text : redactorFor(entry).redact(text);
  const hide = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, /^(\S+ )?\$\{[^}]+\}$/.test(value) ? value : "(hidden)"]),
    );
  return Object.fromEntries(
    Object.entries(servers).map(([name, entry]) => [
      name,
      {
        ...entry,
        ...(entry.args === undefined ? {} : { args: entry.args.map((arg) => withoutKeys(arg, entry)) }),
        ...(entry.url === undefined ? {} : { url: withoutKeys(entry.url, entry) }),
        ...(entry.env === undefined ? {} : { env: hide(entry.env) }),
        ...(entry.headers === undefined ? {} : { headers: hide(entry.headers) }),
      },
    ]),
  );
}

function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    throw new UserError(`${path} cannot be read: ${(cause as NodeJS.ErrnoException).code}.`, { cause });
  }
}

/** Whole or not at all: a gateway may be watching the file. A link stays a link. */
function save(path: string, text: string): void {
  const real = existsSync(path) ? realpathSync(path) : path;
  const temporary = `${real}.${process.pid}.tmp`;
  try {
    writeFileSync(temporary, text, { mode: existsSync(real) ? statSync(real).mode : PRIVATE_FILE, flag: "wx" });
    renameSync(temporary, real);
  } catch (cause) {
    rmSync(temporary, { force: true });
    throw new UserError(`${path} cannot be written: ${(cause as NodeJS.ErrnoException).code}.`, { cause });
  }
}
