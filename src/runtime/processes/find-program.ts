// Where a program is, as a shell would find it: what `toolway run` starts, and what `toolway setup` calls installed.

import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";

interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
}

/** The whole path of a program; undefined where there is none. */
export function findProgram(word: string, { env, cwd }: Surroundings): string | undefined {
  if (word.includes("/")) return isProgram(resolve(cwd, word)) ? resolve(cwd, word) : undefined;
  const folders = (env["PATH"] ?? "").split(delimiter);
  return folders
    .map((folder) => (isAbsolute(folder) ? join(folder, word) : resolve(cwd, folder, word)))
    .find((path) => isProgram(path));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
