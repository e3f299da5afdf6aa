// What is known of the folder in which an agent is started: its repository and branch, read from Git's own files. Pure:
// whoever asks reads the files.

import { dirname, join, resolve } from "node:path";

type Read = (path: string) => string | undefined;

interface Repository {
  /** Owner and name, as `origin` has them. */
  readonly repo: string | undefined;
  /** Undefined where no branch is checked out. */
  readonly branch: string | undefined;
}

/** No path of a project is deeper. */
const MAX_DEPTH = 64;

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
