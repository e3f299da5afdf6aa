// Names for completion that no gateway need run for: of the entries of a config, and of the servers of the clients.

import { importConfigs } from "../../agents/import/import.js";
import { serversInText } from "../../config/edit/text.js";
import type { Io } from "../line/io.js";
import { readConfigText } from "./config-file.js";

export function entryNames(path: string | undefined): string[] {
  return path === undefined ? [] : Object.keys(serversInText(readConfigText(path))).filter(isWord);
}

export function importableNames({ home, cwd, env }: Io): string[] {
  return importConfigs({ home, cwd, env, platform: process.platform }).names.filter(isWord);
}

/** A name with a blank or a control character is no word to complete. */
function isWord(name: string): boolean {
  return !/[\s\p{C}]/u.test(name);
}
