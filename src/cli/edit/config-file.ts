// The file of a config as the verbs that edit it use it: read and written whole, with what the system says in words.

import { saveConfig } from "../../config/edit/save.js";
import { NOT_UTF8, readTextFile, readUtf8File } from "../../runtime/text-file.js";
import { fileTrouble, UserError } from "../line/errors.js";

export function readConfigText(path: string): string {
  try {
    return readTextFile(path);
  } catch (cause) {
    throw new UserError(`${path} cannot be read: ${fileTrouble(cause)}.`, { cause });
  }
}

/** To be written again. What is not UTF-8 would not be what it was, and is refused. */
export function readConfigToEdit(path: string): string {
  try {
    return readUtf8File(path);
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    if (code !== NOT_UTF8) throw new UserError(`${path} cannot be read: ${fileTrouble(cause)}.`, { cause });
    throw new UserError(`${path} was left as it is, since ${message}.`, {
      kind: "config",
      hint: "Save it as UTF-8, and try again.",
    });
  }
}

export function writeConfigText(path: string, text: string): void {
  try {
    saveConfig(path, text);
  } catch (cause) {
    throw new UserError(`${path} cannot be written: ${fileTrouble(cause)}.`, { cause });
  }
}
