// Reads a command line that is plainly right by the commands' data alone. Anything else (help, abbreviations, what is
// wrong or unusual) is left to parser.ts, which knows every form and says what it expects; where both can read a line,
// they read it alike.

import type { Command, OptionSpec } from "./command.js";

export interface PlainLine {
  readonly command: Command;
  readonly input: Readonly<Record<string, unknown>>;
}

export function readPlainLine(argv: readonly string[], commands: readonly Command[]): PlainLine | undefined {
  const command = commands.find(({ metadata }) => metadata.name.split(" ").every((word, i) => word === argv[i]));
  if (command === undefined || command.metadata.hidden === true) return undefined;
  if (Object.values(command.args).some(({ rest }) => rest !== undefined)) return undefined;
  const words = argv.slice(command.metadata.name.split(" ").length);
  const argNames = Object.keys(command.args);
  const configArg = argNames.find((name) => command.args[name]?.isConfig === true);
  const values = new Map<string, unknown>();
  const positional: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? "";
    if (!word.startsWith("-")) {
      positional.push(word);
      continue;
    }
    const key = keyOf(word, command, configArg);
    if (key === undefined) return undefined;
    const option = command.options[key] ?? CONFIG;
    if (option.value === undefined) {
      values.set(key, true);
      continue;
    }
    const value = words[++i];
    if (value === undefined || !isPlainValue(value, option)) return undefined;
    values.set(key, option.repeat === true ? [...((values.get(key) as string[] | undefined) ?? []), value] : value);
  }
  const needed = argNames.filter((name) => command.args[name]?.required === true).length;
  if (positional.length > argNames.length || positional.length < needed) return undefined;
  const input: Record<string, unknown> = { rest: [] };
  for (const [i, name] of argNames.entries()) input[name] = positional[i];
  if (configArg !== undefined) input[configArg] ??= values.get(CONFIG_KEY);
  for (const [key, option] of Object.entries(command.options)) {
    input[key] = optionValue(option, values.get(key));
  }
  return missingOptions(command, input).length === 0 ? { command, input } : undefined;
}

/** All that have to be given and were not, as they are written. */
export function missingOptions({ options }: Command, input: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(options).flatMap(([key, { flag, value, required, requiredUnless }]) => {
    const isNeeded = required === true || (requiredUnless !== undefined && input[requiredUnless] === undefined);
    if (!isNeeded || input[key] !== undefined) return [];
    const instead = requiredUnless === undefined ? undefined : options[requiredUnless];
    return [`${flag} ${value}${instead === undefined ? "" : ` (or ${instead.flag} ${instead.value})`}`];
  });
}

/** A switch is a boolean, and what may be given more than once a list. */
export function optionValue(option: OptionSpec, value: unknown): unknown {
  if (option.value === undefined) return value === true;
  return option.repeat === true ? (value ?? []) : value;
}

/** Verbs that name the config by its place take it as an option too. */
const CONFIG_KEY = "config";
const CONFIG_FLAG = "--config";
const CONFIG: OptionSpec = { value: "FILE", description: "" };

function keyOf(word: string, { options }: Command, configArg: string | undefined): string | undefined {
  const own = Object.entries(options).find(([, { flag, short }]) => flag === word || word === `-${short}`)?.[0];
  return own ?? (configArg !== undefined && word === CONFIG_FLAG ? CONFIG_KEY : undefined);
}

/** One that might be an option itself, or is none of the choices, or may be left out, is the parser's to judge. */
function isPlainValue(value: string, option: OptionSpec): boolean {
  if (value.startsWith("-") || option.preset !== undefined) return false;
  return option.choices === undefined || option.repeat === true || option.choices.includes(value);
}
