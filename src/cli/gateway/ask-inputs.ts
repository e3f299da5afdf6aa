// Asks the person at the terminal for inputs of a config that nobody has answered, and keeps the answers, sealed.

import type { Input } from "../../config/inputs/inputs.js";
import { readTextFile } from "../../runtime/text-file.js";
import { ask } from "../line/ask.js";
import { UserError } from "../line/errors.js";
import { type Io, note, shortPath, shown } from "../line/io.js";
import { type GatewaySource, gatewayPort } from "./port.js";

/** So often a person may choose what is none of the options, before the input stays unanswered. */
const MAX_TRIES = 3;

/** The answers that are kept for a config that has inputs; for one that has none, nothing of a gateway is loaded. */
export async function answersFor(source: GatewaySource): Promise<() => ReadonlyMap<string, string>> {
  const answers = usesInputs(source.configPath)
    ? await (await gatewayPort()).answers(source)
    : new Map<string, string>();
  return () => answers;
}

function usesInputs(path: string | undefined): boolean {
  try {
    return path !== undefined && readTextFile(path).includes("{input:");
  } catch {
    // What is wrong with the file is told when it is loaded.
    return false;
  }
}

/** How many were answered and kept. */
export async function askForInputs(
  inputs: readonly Input[],
  source: Pick<GatewaySource, "stateDir">,
  io: Io,
): Promise<number> {
  const port = await gatewayPort();
  let kept = 0;
  for (const input of inputs) {
    const answer = await askForOne(input, io);
    if (answer === undefined || answer === "") {
      note(io, `${shown(input.id, true)} stays unanswered; ${input.variable} would answer it, too.`);
      continue;
    }
    try {
      await port.keepAnswer(source, input.id, answer);
    } catch (error) {
      throw new UserError(`The answer could not be kept: ${(error as Error).message}`, {
        hint: `Set ${input.variable} instead.`,
      });
    }
    kept++;
  }
  if (kept > 0) {
    note(
      io,
      `Kept, sealed, in ${shortPath(io, source.stateDir)}. A gateway that runs takes it up by \`toolway reload\`.`,
    );
  }
  return kept;
}

async function askForOne({ id, description, isPassword, options }: Input, io: Io): Promise<string | undefined> {
  const choices = options.length === 0 ? "" : ` (${options.join(", ")})`;
  const question = `${shown(`${description ?? "The config asks for an input"} [${id}]${choices}`, true)}: `;
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const answer = await ask(io, question, { isHidden: isPassword });
    if (answer === undefined || answer === "" || options.length === 0 || options.includes(answer)) return answer;
    note(io, `Expected one of ${shown(options.join(", "), true)}.`);
  }
  return undefined;
}
