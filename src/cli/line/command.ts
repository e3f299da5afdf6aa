// A command as data: its words, its arguments and options, examples, and the function that runs it. parser.ts makes a
// parser of it, completion.ts the shells' scripts, and a test the page in docs/. This file knows none of them.

import type { ExitCode } from "./errors.js";
import type { Io } from "./io.js";

/**
 * What a shell can offer for a value: files, names that a running gateway, the config (`entry`, `role`), the clients of this
 * machine (`importable`) or its pairings (`paired`) know, or fixed words.
 */
export type Completes =
  | "file"
  | "folder"
  | "tool"
  | "argument"
  | "server"
  | "pinned"
  | "mailbox"
  | "gateway"
  | "receipt"
  | "token"
  | "role"
  | "paired"
  | "entry"
  | "importable"
  | readonly string[];

export interface ArgSpec {
  readonly description: string;
  readonly required?: true;
  /** It is the config; it may also be given as `--config`, as other verbs have it. */
  readonly isConfig?: true;
  /**
   * It takes all the words that follow, options of another program among them; the last argument only. A first word
   * that fits `alone` has none: what follows it are options.
   */
  readonly rest?: { readonly alone: RegExp };
  readonly completes?: Completes;
}

export interface OptionSpec {
  readonly description: string;
  /** One letter: `f` for `-f`. */
  readonly short?: string;
  /** The word for the value in the help. An option without one is a switch. */
  readonly value?: string;
  /** The value may be left out, and is then this. */
  readonly preset?: string;
  /** May be given more than once. */
  readonly repeat?: true;
  readonly required?: true;
  /** Required where the option of this key is not given. */
  readonly requiredUnless?: string;
  /** Understood at the end of the line, too, behind the words of an argument that takes the rest. */
  readonly atEnd?: true;
  /** Its value is one of these. */
  readonly choices?: readonly string[];
  readonly completes?: Completes;
}

/** An option of a defined command, with its flag. */
export interface CommandOption extends OptionSpec {
  /** The option's key in kebab case: `tlsCert` is `--tls-cert`. */
  readonly flag: string;
}

export type Args = Readonly<Record<string, ArgSpec>>;
export type Options = Readonly<Record<string, OptionSpec>>;

type ArgValue<A extends ArgSpec> = A extends { rest: object }
  ? readonly string[]
  : A extends { required: true }
    ? string
    : string | undefined;

type OptionValue<O extends OptionSpec> = O extends { value: string }
  ? O extends { repeat: true }
    ? readonly string[]
    : O extends { choices: readonly (infer C)[] }
      ? C | undefined
      : O extends { required: true }
        ? string
        : string | undefined
  : boolean;

type Input<A extends Args, O extends Options> = { readonly [K in keyof A]: ArgValue<A[K]> } & {
  readonly [K in keyof O]: OptionValue<O[K]>;
};

interface Metadata {
  /** `serve`, or `token create` for a verb in a group. */
  readonly name: string;
  /** One line, for lists of commands. */
  readonly summary: string;
  /** More, for its own help. */
  readonly description?: string;
  /** What the group does when no verb is given: `toolway pins` is `toolway pins list`. */
  readonly isDefault?: true;
  /** It runs until it is stopped, so that Ctrl-C ends it with 0: always, or with this option. */
  readonly lasts?: true | string;
  /** For our own scripts; not listed. */
  readonly hidden?: true;
}

interface Example {
  readonly line: string;
  readonly note: string;
}

export interface Command {
  readonly metadata: Metadata;
  readonly args: Args;
  readonly options: Readonly<Record<string, CommandOption>>;
  readonly examples: readonly Example[];
  run(input: Readonly<Record<string, unknown>>, io: Io): Promise<ExitCode>;
}

interface CommandSpec<A extends Args, O extends Options> {
  readonly metadata: Metadata;
  readonly args: A;
  readonly options: O;
  readonly examples: readonly Example[];
  /** Imports what it does itself, so that `toolway --help` and every other verb load none of it. */
  handler(input: Input<A, O>, io: Io): Promise<ExitCode>;
}

export function defineCommand<const A extends Args, const O extends Options>(spec: CommandSpec<A, O>): Command {
  const { metadata, args, examples } = spec;
  const options: Record<string, CommandOption> = {};
  for (const [key, option] of Object.entries(spec.options)) options[key] = { ...option, flag: flagOf(key) };
  // The one place where the types are taken on trust: parser.ts and plain-line.ts fill `input` from these very specs.
  const run: Command["run"] = (input, io) => spec.handler(input as Input<A, O>, io);
  return { metadata, args, options, examples, run };
}

function flagOf(key: string): string {
  return `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** `<tool>`, `[json]` or `<command...>`. */
export function argTerm(name: string, arg: ArgSpec): string {
  const term = arg.rest === undefined ? name : `${name}...`;
  return arg.required === true ? `<${term}>` : `[${term}]`;
}

/** A config that a verb names by its place. */
export const configArg = (description: string) => ({ description, isConfig: true, completes: "file" }) as const;

/** A file, or a folder, that an option names. */
export const fileOption = (description: string) => ({ value: "FILE", description, completes: "file" }) as const;
export const folderOption = (description: string) => ({ value: "DIR", description, completes: "folder" }) as const;

/** The state directory of a gateway that runs. */
export const stateOption = {
  state: folderOption("Its state directory, if it is not the usual one."),
} as const satisfies Options;

/** The options that every verb about a running gateway has. */
export const gatewayOptions = {
  config: fileOption("The config whose gateway is meant."),
  ...stateOption,
} as const satisfies Options;

export const jsonOption = { json: { description: "Prints JSON, for scripts." } } as const satisfies Options;
