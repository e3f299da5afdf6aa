// Makes the commands that texts of ours name ready to be typed where they are read: by the name that the program was
// started by, and with the config and state that this line named. Texts write them as `toolway VERB …`, in backticks; one
// that is for another machine has "at the broker" behind it, and stays as it is: paths of this machine mean nothing there.

import { basename } from "node:path";
import type { Command } from "./command.js";
import { fromHere, type Io, shellPath } from "./io.js";
import type { PlainLine } from "./plain-line.js";

/** By npx, or by npm from a folder where the shell does not find it, it is not called as where it is installed. */
export function programName(started: string | undefined, env: Io["env"]): string {
  const isFound = basename(started ?? "") === "toolway" && env["npm_command"] === undefined;
  return isFound ? "toolway" : "npx toolway";
}

const NAMED_COMMAND = /`toolway ([a-z][^`]*)`(?! at the broker)/g;

/** What puts commands right for whoever typed this line: one by its words, and all that a text names. */
export interface Hints {
  /** `status` becomes `npx toolway status --config ./mine.json`. */
  command(words: string): string;
  text(text: string): string;
}

export function hintsFor(line: PlainLine, commands: readonly Command[], io: Io): Hints {
  const named = namedIn(line, io);
  const program = io.program ?? "toolway";
  const command = (words: string): string => {
    const meant = commandOf(words, commands);
    if (meant === undefined) return `${program} ${words}`;
    const options = optionsFor(meant, words, named);
    // What stands behind a command that takes all the rest would be that command's.
    const at = hasRest(meant) ? meant.metadata.name.length : words.length;
    return `${program} ${words.slice(0, at)}${options}${words.slice(at)}`;
  };
  return {
    command,
    text: (text) => text.replace(NAMED_COMMAND, (_whole, words: string) => `\`${command(words)}\``),
  };
}

interface Named {
  readonly config: string | undefined;
  readonly state: string | undefined;
}

function namedIn({ command, input }: PlainLine, io: Io): Named {
  const arg = Object.keys(command.args).find((name) => command.args[name]?.isConfig === true);
  const path = (value: unknown) =>
    typeof value === "string" && value !== "" ? shellPath(io, fromHere(io, value)) : undefined;
  return { config: path(input[arg ?? "config"]), state: path(input["state"]) };
}

/** The one with the longest name that the words begin with: `pins diff`, not `pins`. */
function commandOf(words: string, commands: readonly Command[]): Command | undefined {
  const fits = commands.filter(({ metadata }) => `${words} `.startsWith(`${metadata.name} `));
  return fits.sort((one, other) => other.metadata.name.length - one.metadata.name.length)[0];
}

function hasRest({ args }: Command): boolean {
  return Object.values(args).some(({ rest }) => rest !== undefined);
}

function optionsFor({ args, options }: Command, words: string, { config, state }: Named): string {
  const takesConfig = "config" in options || Object.values(args).some(({ isConfig }) => isConfig === true);
  // What names a state means another gateway, as what names a config does.
  const isNamed = /--config|--state|\bFILE\b/.test(words);
  const given = config === undefined || !takesConfig || isNamed ? "" : ` --config ${config}`;
  return given + (state === undefined || !("state" in options) || words.includes("--state") ? "" : ` --state ${state}`);
}
