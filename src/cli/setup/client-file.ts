// A client's config as a file: read, and written whole, with what it was before beside it.

import { mkdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { saveConfig } from "../../config/edit/save.js";
import { readTextFile } from "../../runtime/text-file.js";
import { UserError } from "../line/errors.js";

/** Undefined where there is no file. */
export function readClientFile(path: string): string | undefined {
  try {
    // One that nobody writes to, a pipe for instance, would be waited for.
    if (!statSync(path).isFile()) throw Object.assign(new Error("not a file"), { code: "it is not an ordinary file" });
    return readTextFile(path);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") return undefined;
    throw new UserError(`${path} cannot be read: ${code}. It was left as it is.`, { cause });
  }
}

/** The file of a project is for all who have the project; no secret is written into it. */
const SHARED_FILE = 0o644;

interface WriteOptions {
  /** It is for all who have the project. */
  readonly isShared: boolean;
  /** What is there now is what it was before us: it is kept beside the file. */
  readonly isFirst: boolean;
}

/** Without a text, the file goes. Returns where it keeps what was there before us; undefined where that did not change. */
export function writeClientFile(
  path: string,
  text: string | undefined,
  { isShared, isFirst }: WriteOptions,
): string | undefined {
  const before = isFirst ? readClientFile(path) : undefined;
  const backup = before === undefined ? undefined : backupOf(path);
  try {
    mkdirSync(dirname(path), { recursive: true, ...(isShared ? {} : { mode: 0o700 }) });
    if (before !== undefined && backup !== undefined) saveConfig(backup, before, { modeOf: path });
    // A link stays a link.
    if (text === undefined) rmSync(realpathSync(path));
    else saveConfig(path, text, isShared ? { mode: SHARED_FILE } : {});
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UserError(`${path} cannot be written: ${code}. It was left as it is.`, { cause });
  }
  return backup;
}

/** What a file of a client was before our entry came in. Undefined where there was none, or nothing is known. */
export function readBackup(path: string): string | undefined {
  try {
    return readClientFile(backupOf(path));
  } catch {
    return undefined;
  }
}

function backupOf(path: string): string {
  return `${path}.toolway.bak`;
}
