// Which test files cite which promise, read from the names of their tests.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** In the name of a test, before its words or after them: it("[bounded] …", describe("… [bounded] [host-8]". */
const NAMED = /\b(?:it|test|describe)\b|^\s*\]\)\(/;
const IDS = /(?<=["'`])(?:\[[a-z]+(?:-[a-z0-9]+)*\] )+|(?: \[[a-z]+(?:-[a-z0-9]+)*\])+(?=["'`])/g;

/** Id of a promise → the files below `root` whose tests cite it, as paths from there. */
export function citationsIn(root: string, folders: readonly string[], ending: string): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const file of folders.flatMap((folder) => filesIn(root, folder, ending))) {
    const names = readFileSync(join(root, file), "utf8")
      .split("\n")
      .filter((line) => NAMED.test(line));
    for (const ids of names.flatMap((line) => line.match(IDS) ?? [])) {
      for (const id of ids.match(/[a-z0-9-]+/g) ?? []) found.set(id, (found.get(id) ?? new Set()).add(file));
    }
  }
  return found;
}

function filesIn(root: string, folder: string, ending: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(ending))
    .map((file) => join(folder, file));
}
