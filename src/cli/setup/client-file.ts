// A client's config as a file: read, and written whole, with what it was before beside it; and what a change of it looks like.

import { lstatSync, mkdirSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { saveConfig } from "../../config/edit/save.js";
import { readTextFile } from "../../runtime/text-file.js";
import { UserError } from "../line/errors.js";
import { type Change, lineDiff } from "../text/line-diff.js";

/** What stands in a text for bytes that are no character. */
const UNKNOWN = "\uFFFD";

/** Undefined where there is no file. */
export function readClientFile(path: string): string | undefined {
  try {
    // One that nobody writes to, a pipe for instance, would be waited for.
    if (!statSync(path).isFile()) throw Object.assign(new Error("not a file"), { code: "it is not an ordinary file" });
    const text = readTextFile(path);
    // It is written again, and what is not in UTF-8 would not be what it was.
    if (text.includes(UNKNOWN) && !Buffer.from(text).equals(readFileSync(path))) {
      throw Object.assign(new Error("not in UTF-8"), { code: "it is not in UTF-8, and would not stay what it is" });
    }
    return text;
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT") {
      const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
      if (!isLink) return undefined;
      // A file in its place would cut somebody's settings off from where they keep them.
      throw new UserError(`${path} is a link to ${readlinkSync(path)}, which is not there. It was left as it is.`, {
        hint: "Make that file, or remove the link, and try again.",
        cause,
      });
    }
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
    if (before !== undefined && backup !== undefined) {
      // A project may come with a link of that name, to a file of the user's.
      saveConfig(backup, before, { modeOf: path, replacesLink: true });
    }
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

/** A longer line is a file without line breaks: of it, what is the same at both ends is left out. */
const LONG_LINE = 100;

/**
 * The lines that go and come, and nothing around them: a config of a client holds keys of other servers, which belong on no
 * screen.
 */
export function showChange(before: string, after: string): string[] {
  const changes = lineDiff(linesOf(before), linesOf(after));
  const shown: string[] = [];
  let line = 1;
  for (let at = 0; at < changes.length; at++) {
    const from = at;
    while (changes[at] !== undefined && changes[at]?.kind !== "same") at++;
    const block = changes.slice(from, at);
    if (block.length > 0) shown.push(...blockText(block, line));
    line += block.filter(({ kind }) => kind === "new").length + 1;
  }
  return shown;
}

function blockText(block: readonly Change[], line: number): string[] {
  let old = block.filter(({ kind }) => kind === "old").map((change) => change.line);
  let fresh = block.filter(({ kind }) => kind === "new").map((change) => change.line);
  let first = line;
  // A line that only got or lost its comma is somebody else's, and may hold a key.
  if (old[0] !== undefined && fresh[0] !== undefined && middles(old[0], fresh[0]).join("").replace(",", "") === "") {
    [old, fresh, first] = [old.slice(1), fresh.slice(1), first + 1];
  }
  const [gone, come] = [old[0] ?? "", fresh[0] ?? ""];
  if (old.length > 0 && fresh.length > 0 && Math.max(gone.length, come.length) > LONG_LINE) {
    const [was, is] = middles(gone, come);
    old = [...(was === "" ? [] : [`… ${was} …`]), ...old.slice(1)];
    fresh = [...(is === "" ? [] : [`… ${is} …`]), ...fresh.slice(1)];
  }
  if (old.length + fresh.length === 0) return [];
  return [`@@ line ${first} @@`, ...old.map((text) => `- ${text}`), ...fresh.map((text) => `+ ${text}`)];
}

/** What is left of both without their common beginning and end. */
function middles(one: string, other: string): [string, string] {
  const most = Math.min(one.length, other.length);
  let start = 0;
  while (start < most && one[start] === other[start]) start++;
  let end = 0;
  while (end < most - start && one.at(-1 - end) === other.at(-1 - end)) end++;
  return [one.slice(start, one.length - end), other.slice(start, other.length - end)];
}

function linesOf(text: string): string[] {
  return text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/);
}
