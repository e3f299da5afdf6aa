// Puts the text of a config on disk, whole or not at all: a gateway may be watching the file.

import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";

/** Entries may hold keys in `env` and `headers`. */
const PRIVATE_FILE = 0o600;

interface SaveOptions {
  /** Of a new file, before the umask. By default it is its owner's alone. */
  readonly mode?: number;
  /** The file gets the mode of that one, whatever its own was. */
  readonly modeOf?: string;
  /** A link in its place gives way: where it leads was said by nobody whose word counts. */
  readonly replacesLink?: boolean;
}

/** A link stays a link, unless it is to give way, and the file keeps its mode; a new one is its owner's alone. Throws what the system says. */
export function saveConfig(path: string, text: string, options: SaveOptions = {}): void {
  const real = options.replacesLink !== true && existsSync(path) ? realpathSync(path) : path;
  const like = options.modeOf ?? real;
  const fresh = (options.mode ?? PRIVATE_FILE) & ~process.umask();
  const mode = existsSync(like) ? statSync(like).mode & 0o7777 : fresh;
  const temporary = `${real}.${process.pid}.tmp`;
  try {
    const file = openSync(temporary, "wx", PRIVATE_FILE);
    try {
      writeFileSync(file, text);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    // By itself, since what `open` is told loses what the umask takes away.
    chmodSync(temporary, mode);
    renameSync(temporary, real);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
