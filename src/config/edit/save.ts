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

/** A link stays a link, and the file keeps its mode; a new one is its owner's alone. Throws what the system says. */
export function saveConfig(path: string, text: string): void {
  const real = existsSync(path) ? realpathSync(path) : path;
  const mode = existsSync(real) ? statSync(real).mode & 0o7777 : PRIVATE_FILE;
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
