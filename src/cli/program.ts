// Makes a command line parser of the commands' data, runs the command that was asked for, and turns whatever comes
// of it into an exit code and a message. The only file that knows commander; it never ends the process.

import { CommanderError, Option, Command as Parser } from "commander";
import { packageVersion } from "../runtime/version.js";
import { argTerm, type Command, flagOf, type OptionSpec } from "./command.js";
import { commands, groups } from "./commands/index.js";
import { Exit, type ExitCode, UserError } from "./errors.js";
import { type Io, note, Stopped } from "./io.js";

export async function runCli(argv: readonly string[], io: Io): Promise<ExitCode> {
  let code: ExitCode = Exit.ok;
  const parser = buildParser(io, async (command, input) => {
    code = await command.run(input, io);
  });
  try {
    // `toolway help call` is what many type first.
    const line = argv[0] === "help" ? [...argv.slice(1), "--help"] : [...argv];
    await parser.parseAsync(line, { from: "user" });
    return code;
  } catch (error) {
    return explain(error, io);
  }
}

function buildParser(io: Io, onCommand: (command: Command, input: Record<string, unknown>) => Promise<void>): Parser {
  const root = prepare(new Parser("toolway"), io)
    .description("Keeps an agent's tools within reach: one MCP endpoint over many servers.")
    .version(packageVersion(), "-V, --version", "Prints the version.")
    .addHelpText("after", ROOT_HELP);
  const parents = new Map<string, Parser>();
  // A group stands in the help where its first verb does.
  const parentOf = (name: string): Parser => {
    const [group, verb] = name.split(" ");
    if (group === undefined || verb === undefined) return root;
    const known = parents.get(group);
    if (known !== undefined) return known;
    const summary = groups[group] ?? "";
    const made = prepare(root.command(group), io).summary(summary).description(summary);
    parents.set(group, made);
    return made;
  };
  for (const command of commands) addCommand(parentOf(command.metadata.name), command, io, onCommand);
  return root;
}

const ROOT_HELP = `
Start here:
  toolway serve                 one endpoint over the servers of ./toolway.json, or a demo
  toolway import --write        makes a toolway.json of your clients' configs
  toolway doctor                starts each server, and says what to fix
  toolway call demo__add --arg a=2 --arg b=3

Exit codes: 0 done, 1 failed, 2 wrong command line or config, 130 interrupted.`;

const HELP_HINT = "(add --help for the options and examples)";

function prepare(parser: Parser, io: Io): Parser {
  return parser
    .exitOverride()
    .showHelpAfterError(HELP_HINT)
    .helpOption("-h, --help", "Shows this help.")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => write(text.replace(/^error: /, "toolway: ")),
    });
}

function addCommand(
  parent: Parser,
  command: Command,
  io: Io,
  onCommand: (command: Command, input: Record<string, unknown>) => Promise<void>,
): void {
  const { metadata, args, options } = command;
  const own = metadata.name.split(" ").at(-1) ?? metadata.name;
  const isDefault = metadata.isDefault === true;
  const parser = prepare(parent.command(own, { hidden: metadata.hidden === true, isDefault }), io)
    .summary(metadata.summary)
    .description(metadata.description ?? metadata.summary);
  const argNames = Object.keys(args);
  for (const [name, arg] of Object.entries(args)) parser.argument(argTerm(name, arg), arg.description);
  if (metadata.hidden === true) parser.argument("[rest...]").allowUnknownOption().helpOption(false);
  for (const [key, option] of Object.entries(options)) parser.addOption(toOption(key, option));
  // Some verbs name the config by its place, others by --config; whoever takes the one for the other is understood.
  const configArg = argNames.find((name) => args[name]?.isConfig === true);
  if (configArg !== undefined) parser.addOption(new Option("--config <FILE>").hideHelp());
  if (options["config"] !== undefined) parser.showHelpAfterError(`${HELP_HINT}\n(a config is named by --config FILE)`);
  if (command.examples.length > 0) {
    const lines = command.examples.map(({ line, note: text }) => `  ${line}\n      ${text}`);
    parser.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
  }
  parser.action(async () => {
    const values = parser.opts<Record<string, unknown>>();
    const input: Record<string, unknown> = { rest: parser.args.slice(argNames.length) };
    for (const [i, name] of argNames.entries()) input[name] = parser.args[i];
    if (configArg !== undefined) input[configArg] ??= values["config"];
    for (const [key, option] of Object.entries(options)) input[key] = optionValue(key, option, values);
    await onCommand(command, input);
  });
}

function toOption(key: string, option: OptionSpec): Option {
  const made = new Option(flagOf(key) + valueTerm(option), option.description);
  if (option.preset !== undefined) made.preset(option.preset);
  if (option.choices !== undefined && option.repeat !== true) made.choices(option.choices);
  if (option.repeat === true) {
    made.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]);
  }
  return made.makeOptionMandatory(option.required === true);
}

function valueTerm({ value, preset }: OptionSpec): string {
  if (value === undefined) return "";
  return preset === undefined ? ` <${value}>` : ` [${value}]`;
}

/** Commander keeps `--no-auth` as `auth: false`; ours is the switch `noAuth`. */
function optionValue(key: string, option: OptionSpec, values: Record<string, unknown>): unknown {
  const negated = /^no([A-Z])(.*)$/.exec(key);
  if (negated !== null) return values[`${negated[1]?.toLowerCase()}${negated[2]}`] === false;
  const value = values[key];
  if (option.value === undefined) return value === true;
  return option.repeat === true ? (value ?? []) : value;
}

/** Errors of the gateway whose message is made for people. */
const EXPECTED: ReadonlySet<string> = new Set([
  "Fault",
  "CallError",
  "ControlError",
  "StateDirError",
  "StoreError",
  "TokenError",
]);

/** One message for each kind of end; a stack only for faults of ours, and only when asked for. */
function explain(error: unknown, io: Io): ExitCode {
  if (error instanceof CommanderError) {
    // Commander has printed it: the help or version that was asked for, or what is wrong and the usage.
    return error.exitCode === 0 ? Exit.ok : Exit.usage;
  }
  if (io.signal.aborted && (error === io.signal.reason || isAbort(error))) {
    return io.signal.reason instanceof Stopped && io.signal.reason.by === "SIGTERM" ? Exit.failure : Exit.interrupted;
  }
  const debug = (io.env["TOOLWAY_DEBUG"] ?? "") !== "";
  if (error instanceof UserError) {
    note(io, `toolway: ${error.message}${error.hint === undefined ? "" : `\n  ${error.hint}`}`);
    if (debug && error.cause !== undefined) note(io, stackOf(error.cause));
    return error.exitCode;
  }
  // By name: the classes live in what only some verbs load.
  const name = error instanceof Error ? error.name : "";
  if (name === "ConfigError") {
    note(io, error instanceof Error ? error.message : "");
    return Exit.usage;
  }
  if (EXPECTED.has(name)) {
    note(io, `toolway: ${error instanceof Error ? error.message : ""}`);
    if (debug) note(io, stackOf(error));
    return Exit.failure;
  }
  const said = fileTrouble(error);
  if (said !== undefined) {
    note(io, `toolway: ${said}`);
    if (debug) note(io, stackOf(error));
    return Exit.failure;
  }
  note(io, `toolway: unexpected fault: ${error instanceof Error ? error.message : String(error)}`);
  note(io, debug ? stackOf(error) : "  Set TOOLWAY_DEBUG=1 to see where it arose.");
  return Exit.failure;
}

/** What the system says of a path, in words. */
const TROUBLE: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOENT: "it does not exist",
  EEXIST: "a file is in the way",
  ENOTDIR: "a part of the path is a file",
  EISDIR: "it is a folder",
  ENAMETOOLONG: "the path is too long",
};

/** A path that cannot be used is the user's to put right, and no fault of ours. */
function fileTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code?.startsWith("ERR_OSSL_") === true) {
    return `The TLS certificate or its key cannot be used: both are PEM files, and belong together (${code}).`;
  }
  const trouble = code === undefined ? undefined : TROUBLE[code];
  return trouble === undefined || typeof path !== "string" ? undefined : `${path} cannot be used: ${trouble}.`;
}

function isAbort(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "AbortError" || error.name === "Stopped" || ("code" in error && error.code === "cancelled");
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
