// Makes a command line parser of the commands' data: help, completions of mistakes, every form of an option. The only
// file that knows commander, and loaded only for what plain-line.ts leaves to it.

import { CommanderError, Option, Command as Parser } from "commander";
import { packageVersion } from "../runtime/version.js";
import { commands, groups } from "./commands/index.js";
import { argTerm, type Command, type CommandOption, type OptionSpec } from "./line/command.js";
import { Exit, type ExitCode } from "./line/errors.js";
import { type Io, note } from "./line/io.js";
import { missingOptions, optionValue, type PlainLine } from "./line/plain-line.js";
import { setRestApart } from "./line/rest-words.js";
import { unknownCommand } from "./line/unknown-command.js";

/** What is to be run; or, where help was asked for or the line is wrong, which has been said, the exit code. */
export async function parseLine(argv: readonly string[], io: Io): Promise<PlainLine | ExitCode> {
  // `toolway help call` is what many type first.
  const isHelp = argv[0] === "help";
  const unknown = unknownCommand(isHelp ? argv.slice(1) : argv, commands);
  if (unknown !== undefined) {
    note(io, `toolway: ${unknown}`);
    return Exit.usage;
  }
  let found: PlainLine | undefined;
  const parser = buildParser(io, (command, input) => {
    found = { command, input };
  });
  try {
    const line = isHelp ? [...argv.slice(1), "--help"] : setRestApart(argv, commands);
    await parser.parseAsync(line, { from: "user" });
    return found ?? Exit.ok;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Commander has printed it: the help or version that was asked for, or what is wrong and the usage.
    return error.exitCode === 0 ? Exit.ok : Exit.usage;
  }
}

function buildParser(io: Io, onCommand: (command: Command, input: Record<string, unknown>) => void): Parser {
  const root = prepare(new Parser("toolway"), io)
    .description("Keeps an agent's tools within reach: one MCP endpoint over many servers.")
    .version(packageVersion(), "-V, --version", "Prints the version.")
    .configureHelp({ subcommandTerm: termInHelp })
    .addHelpText("after", ROOT_HELP);
  const parents = new Map<string, Parser>();
  // A group stands in the help where its first verb does.
  const parentOf = (name: string): Parser => {
    const [group, verb] = name.split(" ");
    if (group === undefined || verb === undefined) return root;
    const known = parents.get(group);
    if (known !== undefined) return known;
    const summary = groups[group] ?? "";
    const made = prepare(root.command(group), io).summary(summary).description(summary).helpGroup(sectionOf(group));
    parents.set(group, made);
    return made;
  };
  for (const command of commands) addCommand(parentOf(command.metadata.name), command, io, onCommand);
  return root;
}

/** What the help shows together, each where its first verb stands among the commands. */
const SECTIONS: Readonly<Record<string, readonly string[]>> = {
  "Your agents:": ["run", "setup", "stdio"],
  "The gateway:": [
    "serve",
    "status",
    "ps",
    "down",
    "logs",
    "calls",
    "record",
    "top",
    "metrics",
    "log-level",
    "audit",
    "dashboard",
  ],
  "Tools and calls:": ["tools", "inspect", "call", "pins", "outbox"],
  "Servers:": ["reload", "stop", "start", "login", "logout", "doctor"],
  "The config:": ["import", "add", "list", "remove", "config"],
  "Other machines:": ["executor", "broker", "share", "asks", "join", "mailbox", "engine", "drain"],
  "Who may do what:": ["context", "token"],
  "Toolway itself:": ["state", "completion", "version"],
};

function sectionOf(word: string): string {
  // A verb that has no section yet is shown all the same.
  return Object.keys(SECTIONS).find((heading) => SECTIONS[heading]?.includes(word)) ?? "Commands:";
}

/** Nearly every verb has options: to say so at each would leave half of the width for what it does. */
function termInHelp(command: Parser): string {
  const args = command.registeredArguments.map((arg) => {
    const name = arg.variadic ? `${arg.name()}...` : arg.name();
    return arg.required ? `<${name}>` : `[${name}]`;
  });
  return [command.name(), ...args].join(" ");
}

const ROOT_HELP = `
Start here:
  toolway import --write        makes a toolway.json of your clients' configs
  toolway run claude            runs your agent with its servers, or with a demo
  toolway serve                 one endpoint over them, for agents that are set up
  toolway doctor                starts each server, and says what to fix
  toolway call demo__add --arg a=2 --arg b=3

Exit codes: 0 done, 1 failed or found something wrong, 2 wrong command line or config, 130 interrupted.`;

const HELP_HINT = "(add --help for the options and examples)";

/** Some verbs name the config by its place, and these by an option: one word too many is mostly the file. */
const CONFIG_HINT = "(a config is named by --config FILE)\n";
const SERVER_HINT = "(a server is named by --server NAME)\n";

function prepare(parser: Parser, io: Io, excessHint = ""): Parser {
  return parser
    .exitOverride()
    .showHelpAfterError(HELP_HINT)
    .helpOption("-h, --help", "Shows this help.")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => io.stdout.write(text),
      writeErr: (text) => io.stderr.write(text),
      outputError: (text, write) => {
        const hint = text.startsWith("error: too many arguments") ? excessHint : "";
        write(text.replace(/^error: /, "toolway: ").replace(UNKNOWN_WORD, afterDashes) + hint);
      },
    });
}

/** Ids that others drew may begin so: a mailbox takes any. */
const UNKNOWN_WORD = /unknown option '(-[^-'][^']+)'/;

function afterDashes(said: string, word: string): string {
  return `${said}; if it is an id, put -- before it, as the last word: -- ${word}`;
}

function addCommand(
  parent: Parser,
  command: Command,
  io: Io,
  onCommand: (command: Command, input: Record<string, unknown>) => void,
): void {
  const { metadata, args, options } = command;
  const own = metadata.name.split(" ").at(-1) ?? metadata.name;
  const isDefault = metadata.isDefault === true;
  const excessHint =
    (options["server"] === undefined ? "" : SERVER_HINT) + (options["config"] === undefined ? "" : CONFIG_HINT);
  const parser = prepare(parent.command(own, { hidden: metadata.hidden === true, isDefault }), io, excessHint)
    .summary(metadata.summary)
    .description(metadata.description ?? metadata.summary);
  // Verbs of a group stand below it, and their own help needs no headings.
  if (!metadata.name.includes(" ")) parser.helpGroup(sectionOf(own));
  const argNames = Object.keys(args);
  for (const [name, arg] of Object.entries(args)) parser.argument(argTerm(name, arg), arg.description);
  // All at once: commander names the first of them alone.
  const needed = Object.entries(args).filter(([, { required }]) => required === true);
  const missingArgument = () =>
    missed(
      parser,
      needed.slice(parser.args.length).map(([name, arg]) => argTerm(name, arg)),
    );
  Object.assign(parser, { missingArgument });
  if (metadata.hidden === true) parser.argument("[rest...]").allowUnknownOption().helpOption(false);
  for (const option of Object.values(options)) parser.addOption(toOption(option));
  // Some verbs name the config by its place, others by --config; whoever takes the one for the other is understood.
  const configArg = argNames.find((name) => args[name]?.isConfig === true);
  if (configArg !== undefined) parser.addOption(new Option("--config <FILE>").hideHelp());
  if (command.examples.length > 0) {
    const lines = command.examples.map(({ line, note: text }) => `  ${line}\n      ${text}`);
    parser.addHelpText("after", `\nExamples:\n${lines.join("\n")}`);
  }
  parser.action(() => {
    const values = parser.opts<Record<string, unknown>>();
    const input: Record<string, unknown> = { rest: parser.args.slice(argNames.length) };
    for (const [i, name] of argNames.entries()) {
      input[name] = args[name]?.rest === undefined ? parser.args[i] : parser.args.slice(i);
    }
    if (configArg !== undefined) input[configArg] ??= values["config"];
    for (const [key, option] of Object.entries(options)) input[key] = optionValue(option, givenAs(key, values));
    const missing = missingOptions(command, input);
    if (missing.length > 0) missed(parser, missing);
    onCommand(command, input);
  });
}

function missed(parser: Parser, what: readonly string[]): never {
  return parser.error(`error: ${what.join(" and ")} ${what.length === 1 ? "is" : "are"} missing`);
}

function toOption(option: CommandOption): Option {
  const repeat = option.repeat === true ? " May be repeated." : "";
  const made = new Option(flagTerm(option) + valueTerm(option), option.description + repeat);
  if (option.preset !== undefined) made.preset(option.preset);
  if (option.choices !== undefined && option.repeat !== true) made.choices(option.choices);
  if (option.repeat === true) {
    made.argParser((value: string, before: readonly string[] | undefined) => [...(before ?? []), value]);
  }
  // One that has to be given is missed in the end, by missingOptions: commander names the first of them alone.
  return made;
}

function flagTerm({ flag, short }: CommandOption): string {
  return short === undefined ? flag : `-${short}, ${flag}`;
}

function valueTerm({ value, preset }: OptionSpec): string {
  if (value === undefined) return "";
  return preset === undefined ? ` <${value}>` : ` [${value}]`;
}

/** Commander keeps `--no-auth` as `auth: false`; ours is the switch `noAuth`. */
function givenAs(key: string, values: Record<string, unknown>): unknown {
  const negated = /^no([A-Z])(.*)$/.exec(key);
  return negated === null ? values[key] : values[`${negated[1]?.toLowerCase()}${negated[2]}`] === false;
}
