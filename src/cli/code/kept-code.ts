// What V8 made of a script at an earlier start, as a file in a folder of the user's own. It is code that we run: a file that
// anybody else could have written is not read, and one that is damaged is none.

import { createHash } from "node:crypto";
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { MIB } from "../../runtime/sizes.js";
import { stateRootFor } from "../../runtime/state-dir.js";

const FOLDER = "code";
const ENDING = ".code";
/** SHA-256 of the rest, at the beginning: V8 itself trusts what it is given, and a damaged file would be a crash. */
const DIGEST_BYTES = 32;
/** A start has 2 MiB in all its files; what is much more is not ours. */
const MAX_BYTES = 32 * MIB;
/** Of each version and each Node there are a few files; those that were written first go. */
const MAX_FILES = 40;

/** Where the code of a script is kept. `tag` is V8's own: another version, other flags or another processor, another file. */
export function codePath(script: string, tag: number, env = process.env, home = homedir()): string {
  return join(stateRootFor(env, home), FOLDER, `${script}.${tag.toString(16)}${ENDING}`);
}

/** Undefined where there is none that can be trusted. */
export function readCode(path: string): Buffer | undefined {
  let file: number | undefined;
  try {
    if (!isOurs(lstatSync(dirname(path)), "folder")) return undefined;
    // Windows has no such flag.
    file = openSync(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
    const stat = fstatSync(file);
    if (!isOurs(stat, "file") || stat.size > MAX_BYTES) return undefined;
    const bytes = readFileSync(file);
    const code = bytes.subarray(DIGEST_BYTES);
    return digestOf(code).equals(bytes.subarray(0, DIGEST_BYTES)) ? code : undefined;
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/**
 * The state root is there already: each gateway that runs is listed in it. Where nothing can be written, the next start is as
 * long as this one was.
 */
export function writeCode(path: string, code: Buffer): void {
  const folder = dirname(path);
  try {
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    if (!isOurs(lstatSync(folder), "folder")) return;
    makeRoom(folder);
  } catch {
    return;
  }
  const made = `${path}.${process.pid}`;
  try {
    writeFileSync(made, Buffer.concat([digestOf(code), code]), { mode: 0o600, flag: "wx" });
    renameSync(made, path);
  } catch {
    removeIfThere(made);
  }
}

function removeIfThere(path: string): void {
  try {
    rmSync(path, { force: true });
  } catch {
    // A disk that can no longer be written keeps it; it is none that is looked for.
  }
}

function isOurs(stat: Stats, kind: "file" | "folder"): boolean {
  if (kind === "file" ? !stat.isFile() : !stat.isDirectory()) return false;
  const uid = process.getuid?.();
  return uid === undefined || (stat.uid === uid && (stat.mode & 0o077) === 0);
}

function digestOf(code: Buffer): Buffer {
  return createHash("sha256").update(code).digest();
}

function makeRoom(folder: string): void {
  const names = readdirSync(folder);
  if (names.length < MAX_FILES) return;
  const aged = names.map((name) => ({ path: join(folder, name), ms: statSync(join(folder, name)).mtimeMs }));
  aged.sort((a, b) => a.ms - b.ms);
  for (const { path } of aged.slice(0, names.length - MAX_FILES + 1)) rmSync(path, { force: true });
}
