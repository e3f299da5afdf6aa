// What a run says of its situation, for the menus of the config: the client, the folder, its repository and branch, and
// whatever the line says otherwise. Pure.

import { repositoryAt } from "../../agents/run/repository.js";
import { RunError } from "./run-error.js";

/** As long as a value of a context may be. */
const MAX_CHARS = 256;

interface Situation {
  readonly client: string;
  readonly cwd: string;
  /** `KEY=VALUE` of the line. */
  readonly said: readonly string[];
  readonly read: (path: string) => string | undefined;
}

interface RunContext {
  /** Null where a run of before may have set what is not so now. */
  readonly context: Readonly<Record<string, string | null>>;
  readonly notes: readonly string[];
}

export function contextOf({ client, cwd, said, read }: Situation): RunContext {
  const { repo = null, branch = null } = repositoryAt(cwd, read);
  const context: Record<string, string | null> = { client, cwd, repo, branch };
  const notes: string[] = [];
  for (const [key, value] of Object.entries(context)) {
    if (value === null || value.length <= MAX_CHARS) continue;
    context[key] = null;
    notes.push(`${key} has more than ${MAX_CHARS} characters, and is left out of the context.`);
  }
  for (const fact of said) {
    const at = fact.indexOf("=");
    if (at < 1)
      throw new RunError(`--context ${fact}: expected KEY=VALUE.`, {
        hint: "For instance: --context phase=review",
        isUsage: true,
      });
    context[fact.slice(0, at)] = fact.slice(at + 1);
  }
  return { context, notes };
}
