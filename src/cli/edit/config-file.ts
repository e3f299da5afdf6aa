// The file of a config as the verbs that edit it use it: read and written whole, with what the system says in words.

import { saveConfig } from "../../config/edit/save.js";
import { readTextFile } from "../../runtime/text-file.js";
import { fileTrouble, UserError } from "../line/errors.js";

export function readConfigText(path: string): string {
  try {
    return readTextFile(path);
  } catch (cause) {
    throw new UserError(`${path} cannot be read: ${fileTrouble(cause)}.`, { cause });
  }
}

export function writeConfigText(path: string, text: string): void {
  try {
    saveConfig(path, text);
  } catch (cause) {
    throw new UserError(`${path} cannot be written: ${fileTrouble(cause)}.`, { cause });
  }
}
