// Tells the words of a command that a verb is given, as `toolway add` is, from the options of the verb itself. They are
// put behind `--`, where no parser takes them for options.

import type { ArgSpec, Command, CommandOption } from "./command.js";

/** The line in that form; unchanged where its verb takes no such words. */
export function setRestApart(argv: readonly string[], commands: readonly Command[]): string[] {
  const command = commands.find(({ metadata }) => metadata.name.split(" ").every((word, i) => word === argv[i]));
  const args: ArgSpec[] = Object.values(command?.args ?? {});
  const place = args.findIndex(({ rest }) => rest !== undefined);
  if (command === undefined || place < 0) return [...argv];
  const verb = command.metadata.name.split(" ");
  const words = argv.slice(verb.length);
  const options = Object.values(command.options);
  const own: string[] = [];
  const operands: string[] = [];
  let at = 0;
  let isSaid = false;
  while (at < words.length && operands.length <= place && !isSaid) {
    const word = words[at++] ?? "";
    if (word === "--") isSaid = true;
    else if (!word.startsWith("-")) operands.push(word);
    else {
      own.push(word);
      if (takesNext(word, options) && at < words.length) own.push(words[at++] ?? "");
    }
  }
  const rest = words.slice(at);
  // After `--` nothing is ours. Else the options at the end are, of those that are meant to stand there.
  const isAlone = args[place]?.rest?.alone.test(operands[place] ?? "") === true;
  const ours = isAlone ? options : options.filter(({ atEnd }) => atEnd === true);
  const end = isSaid ? rest.length : endOfRest(rest, ours);
  const behind = [...operands, ...rest.slice(0, end)];
  return [...verb, ...own, ...rest.slice(end), ...(behind.length > 0 ? ["--", ...behind] : [])];
}

/** Where the options begin that fill the line to its end. */
function endOfRest(rest: readonly string[], options: readonly CommandOption[]): number {
  // Whoever wrote `--` said that nothing behind it is ours.
  if (rest.includes("--")) return rest.length;
  for (let from = 0; from < rest.length; from++) {
    let at = from;
    while (at < rest.length && isOption(rest[at] ?? "", options)) at += takesNext(rest[at] ?? "", options) ? 2 : 1;
    if (at === rest.length) return from;
  }
  return rest.length;
}

function isOption(word: string, options: readonly CommandOption[]): boolean {
  return options.some(({ flag, value }) => word === flag || (value !== undefined && word.startsWith(`${flag}=`)));
}

function takesNext(word: string, options: readonly CommandOption[]): boolean {
  return options.some(({ flag, value }) => word === flag && value !== undefined);
}
