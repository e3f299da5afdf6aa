// What a run says of its situation, for the menus of the config: the client, the folder, its repository and branch, which are
// read from Git's own files, and whatever the line says otherwise. Pure: whoever asks reads the files.

import { dirname, join, resolve } from "node:path";
import { RunError } from "./run-error.js";

/** As long as a value of a context may be. */
const MAX_CHARS = 256;
/** No path of a project is deeper. */
const MAX_DEPTH = 64;

type Read = (path: string) => string | undefined;

interface Situation {
  readonly client: string;
  readonly cwd: string;
  /** `KEY=VALUE` of the line. */
  readonly said: readonly string[];
  readonly read: Read;
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
  const facts = said.map((fact) => {
    const at = fact.indexOf("=");
    if (at < 1)
      throw new RunError(`--context ${fact}: expected KEY=VALUE.`, {
        hint: "For instance: --context phase=review",
        isUsage: true,
      });
    return [fact.slice(0, at), fact.slice(at + 1)] as const;
  });
  // No key of theirs is one of the object itself: what is none is refused by the gateway, by its name.
  return { context: { ...context, ...Object.fromEntries(facts) }, notes };
}

interface Repository {
  /** Owner and name, as `origin` has them. */
  readonly repo: string | undefined;
  /** Undefined where no branch is checked out. */
  readonly branch: string | undefined;
}

export function repositoryAt(cwd: string, read: Read): Repository {
  const git = gitFolder(cwd, read);
  if (git === undefined) return { repo: undefined, branch: undefined };
  const branch = /^ref: refs\/heads\/(.+)$/m.exec(read(join(git, "HEAD")) ?? "")?.[1]?.trim();
  // A work tree of its own has its config in the repository that it belongs to.
  const common = read(join(git, "commondir"))?.trim();
  const config = read(join(common === undefined ? git : resolve(git, common), "config")) ?? "";
  return { repo: repositoryName(originIn(config)), branch };
}

function gitFolder(cwd: string, read: Read): string | undefined {
  let folder = resolve(cwd);
  for (let depth = 0; depth < MAX_DEPTH; depth++) {
    const git = join(folder, ".git");
    if (read(join(git, "HEAD")) !== undefined) return git;
    const elsewhere = /^gitdir: (.+)$/m.exec(read(git) ?? "")?.[1]?.trim();
    if (elsewhere !== undefined) return resolve(folder, elsewhere);
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
  return undefined;
}

function originIn(config: string): string | undefined {
  let isOrigin = false;
  for (const line of config.split("\n")) {
    if (/^\s*\[/.test(line)) isOrigin = /^\s*\[remote "origin"\]/.test(line);
    const url = isOrigin ? /^\s*url\s*=\s*(.+?)\s*$/.exec(line)?.[1] : undefined;
    if (url !== undefined) return url;
  }
  return undefined;
}

/** `git@host:owner/name.git` and `https://host/owner/name`: the last two parts, without what could be a password. */
function repositoryName(url: string | undefined): string | undefined {
  const path = url?.replace(/[?#].*$/, "").replace(/^[a-z+]+:\/\/[^/]*\/|^[^/:]*:/i, "");
  const parts = path?.split("/").filter((part) => part !== "") ?? [];
  const [owner, name] = parts.slice(-2);
  return owner === undefined || name === undefined ? undefined : `${owner}/${name.replace(/\.git$/, "")}`;
}
