// Where a config's paths lead: the folder they start from, `~`, and what stays for PATH to find.

import { basename, dirname, isAbsolute, join, resolve } from "node:path";

/** Folders that a client keeps in a project for its own files; paths in there mean the project. */
const PROJECT_FOLDERS: ReadonlySet<string> = new Set([
  ".vscode",
  ".cursor",
  ".roo",
  ".gemini",
  ".qwen",
  ".codex",
  ".opencode",
]);

/** The folder that the relative paths of a file start from. */
export function baseFolder(file: string): string {
  const folder = dirname(resolve(file));
  return PROJECT_FOLDERS.has(basename(folder)) ? dirname(folder) : folder;
}

/** Gemini CLI and its relative write `$VAR`; elsewhere that is a text as any other. */
export function expandsBareVariables(file: string): boolean {
  return /^\.(?:gemini|qwen)$/.test(basename(dirname(resolve(file))));
}

export function absolutePath(path: string, base: string, home: string): string {
  const expanded = expandHome(path, home);
  return isAbsolute(expanded) ? expanded : resolve(base, expanded);
}

/** A command without a folder is for PATH to find, and one in a folder below for `cwd`. */
export function commandPath(command: string, base: string, home: string): string {
  return /^(?:~|\.{1,2})[/\\]/.test(command) ? absolutePath(command, base, home) : command;
}

function expandHome(path: string, home: string): string {
  if (path === "~") return home;
  return /^~[/\\]/.test(path) ? join(home, path.slice(2)) : path;
}
