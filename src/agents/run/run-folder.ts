// A run's folder in the state directory: files for its agent, and for Gemini a home whose children lead to the user's
// own. When the run is over, by whatever, what the agent made new or replaced there goes back, and the folder goes.

import { isUtf8 } from "node:buffer";
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { GIVE_BACK_FILE } from "../../contracts/runs.js";
import type { AgentPlan } from "./plan.js";
import { settingsGivenBack } from "./settings-changes.js";

/** Says what goes back. It is there before anything that could. */
const MANIFEST = GIVE_BACK_FILE;
const SETTINGS = "settings.json";

interface Manifest {
  /** The user's folder, and the run's in its place. */
  readonly from: string;
  readonly to: string;
  readonly entry: string;
  /** The settings as the agent was given them. */
  readonly given: string;
  /** How each child of the user's folder was, to see whether it is the same later. */
  readonly children: Readonly<Record<string, string>>;
}

/** Writes what a plan says. `secret` is put where a file has its mark. */
export function makeRunFolder(folder: string, plan: AgentPlan, secret: string): void {
  if (plan.files.length === 0) return;
  mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
  mkdirSync(folder, { mode: 0o700 });
  if (plan.home !== undefined) makeHome(folder, plan, plan.home);
  for (const { path, text, secretAt } of plan.files) {
    const file = join(folder, path);
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    const whole = secretAt === undefined ? text : text.replaceAll(secretAt, secret);
    writeFileSync(file, whole, { mode: 0o600, flag: "wx" });
  }
}

function makeHome(folder: string, plan: AgentPlan, { from, to, entry }: NonNullable<AgentPlan["home"]>): void {
  const names = existsSync(from) ? readdirSync(from).filter((name) => name !== SETTINGS) : [];
  const children = Object.fromEntries(names.map((name) => [name, markOf(join(from, name))]));
  const given = plan.files.find(({ path }) => join(folder, path) === join(to, SETTINGS))?.text ?? "{}";
  const manifest: Manifest = { from, to, entry, given, children };
  writeFileSync(join(folder, MANIFEST), JSON.stringify(manifest), { mode: 0o600 });
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const name of names) symlinkSync(join(from, name), join(to, name));
}

/**
 * Gives back what is the user's, and removes the folder. Done again after half of it, it does the other half. Returns what
 * is to be said of what did not go back.
 */
export function endRunFolder(folder: string): string[] {
  const manifest = manifestIn(folder);
  const isOurs = manifest !== undefined && isOwnFolder(folder, manifest.to);
  const notes = isOurs ? giveBack(manifest, basename(folder)) : [];
  rmSync(folder, { recursive: true, force: true });
  return notes;
}

/** Whether it is where it was made: behind a link that somebody put there stands what is not of this run. */
function isOwnFolder(folder: string, to: string): boolean {
  if (!existsSync(to)) return false;
  const within = relative(folder, to);
  return !within.startsWith("..") && realpathSync(to) === join(realpathSync(folder), within);
}

function manifestIn(folder: string): Manifest | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, MANIFEST), "utf8")) as Manifest;
  } catch {
    return undefined;
  }
}

/** What cannot be given back keeps nothing else from it. Throws at the end: then the folder stays, for another try. */
function giveBack(manifest: Manifest, run: string): string[] {
  const { from, to, children } = manifest;
  const notes: string[] = [];
  let failure: unknown;
  for (const name of readdirSync(to)) {
    try {
      const [made, own] = [join(to, name), join(from, name)];
      if (name === SETTINGS) notes.push(...giveSettingsBack(made, own, manifest, run));
      else if (!isLinkTo(made, own)) giveChildBack(made, own, children[name] ?? MISSING, run);
    } catch (error) {
      failure ??= error;
    }
  }
  if (failure !== undefined) throw failure;
  return notes;
}

/** `before` is how the user's own was when the run began: what it got or changed meanwhile is newer than what the run knew of. */
function giveChildBack(made: string, own: string, before: string, run: string): void {
  // Pipes and sockets end with who made them; to open one could wait for ever.
  if (!isKept(made)) return;
  const [is, there] = [lstatSync(made), statSync(own, { throwIfNoEntry: false })];
  if (there?.isDirectory() === true) {
    // The link to it was replaced: what is new in the one goes into the other.
    const names = is.isDirectory() ? readdirSync(made) : [];
    for (const name of names) giveChildBack(join(made, name), join(own, name), MISSING, run);
    return;
  }
  // A file gives way to a file alone: no link or folder stands for what was in it.
  if (markOf(own) === before && (there === undefined || is.isFile())) moveTo(made, own, run);
}

function giveSettingsBack(made: string, own: string, { given, entry }: Manifest, run: string): string[] {
  // No client makes a link of its settings, and one could lead to what is not for them.
  if (!lstatSync(made).isFile()) return [];
  const there = statSync(own, { throwIfNoEntry: false });
  if (there !== undefined && !there.isFile()) return [];
  const bytes = there === undefined ? Buffer.alloc(0) : readFileSync(own);
  const user = bytes.toString("utf8");
  const now = readFileSync(made, "utf8");
  if (!isUtf8(bytes)) {
    // Written again, it would not be what it was.
    return now === given
      ? []
      : [`${own} is not in UTF-8 and was left as it is: settings that changed in the run are lost.`];
  }
  const ours = [
    ["mcpServers", entry],
    ["security", "environmentVariableRedaction"],
  ];
  const text = settingsGivenBack(user, given, now, ours);
  if (text === (user.trim() === "" ? "{}" : user)) return [];
  // A link stays one: people keep their settings elsewhere.
  const file = existsSync(own) ? realpathSync(own) : own;
  const mode = existsSync(file) ? statSync(file).mode & 0o777 : 0o600;
  const fresh = freshName(file, run);
  writeFileSync(fresh, text, { mode });
  chmodSync(fresh, mode);
  renameSync(fresh, file);
  return [];
}

/** Into its place at once, also from another file system. */
function moveTo(made: string, own: string, run: string): void {
  mkdirSync(dirname(own), { recursive: true, mode: 0o700 });
  const fresh = freshName(own, run);
  rmSync(fresh, { recursive: true, force: true });
  cpSync(made, fresh, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true, filter: isKept });
  if (lstatSync(made).isFile()) chmodSync(fresh, lstatSync(made).mode & 0o777);
  renameSync(fresh, own);
  rmSync(made, { recursive: true, force: true });
}

/** The same for each try of one run: what one left that was killed in between is found by the next. */
function freshName(path: string, run: string): string {
  return `${path}.toolway-${run}`;
}

const MISSING = "missing";

/** Which file it is, and whether it was written since. Of a folder: which one, since its children come and go. */
function markOf(path: string): string {
  const stat = statSync(path, { throwIfNoEntry: false, bigint: true });
  if (stat === undefined) return MISSING;
  return stat.isDirectory() ? `folder ${stat.ino}` : `file ${stat.ino} ${stat.size} ${stat.mtimeNs}`;
}

/** Whether it is something that a copy can be made of. */
function isKept(path: string): boolean {
  const stat = lstatSync(path);
  return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink();
}

function isLinkTo(path: string, target: string): boolean {
  return lstatSync(path).isSymbolicLink() && readlinkSync(path) === target;
}
