// What a command may touch of the world outside: streams, environment, folder, the signal to stop. Tests make their
// own.

import { isAbsolute, resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import { visibleLines } from "../../runtime/visible.js";
import { pause } from "../../runtime/wait.js";
import type { Hints } from "./hints.js";

export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws where the folder is no longer there. */
  readonly cwd: string;
  readonly home: string;
  /** Whether a person reads stdout, and stderr. */
  readonly isTTY: boolean;
  readonly isErrTTY: boolean;
  /** How wide the terminal is; unknown where stdout is none. */
  readonly columns?: number | undefined;
  /** How high it is. */
  readonly rows?: number | undefined;
  /** Fires at the first Ctrl-C or SIGTERM, or when the terminal goes away; its reason is a `Stopped`. */
  readonly signal: AbortSignal;
  /**
   * From this call on, a SIGHUP calls `act` and stops nothing. Undefined on a terminal, whose end a SIGHUP tells there.
   */
  readonly onHangUp?: ((act: () => void) => void) | undefined;
  /**
   * From this call on, signals are `act`'s, and stop nothing here: of the program that runs in the foreground in our
   * place. Undefined where there are none to be had.
   */
  readonly takeSignals?: ((act: (signal: TakenSignal) => void) => void) | undefined;
  /** How a verb that goes on until Ctrl-C waits between two looks. Undefined where it waits as long as it says. */
  readonly pause?: typeof pause | undefined;
  /** How the user calls this program: `toolway`, or `npx toolway`. */
  readonly program?: string | undefined;
  /** Puts the commands that texts of ours name right for whoever typed this line. */
  readonly hints?: Hints | undefined;
}

/** SIGCHLD: something became of the program that is run in our place; it may have stopped. */
export type TakenSignal = "SIGINT" | "SIGQUIT" | "SIGTERM" | "SIGHUP" | "SIGCONT" | "SIGCHLD";

export type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** Why `Io.signal` fired. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly by: StopSignal;

  constructor(by: StopSignal) {
    super(by === "SIGINT" ? "Interrupted." : "Told to stop.");
    this.by = by;
  }
}

/**
 * What a server, an executor or an agent wrote, as it may be shown: on a terminal every hidden character of every text
 * in it is made visible, so that none moves the cursor, changes colours or hides words. Piped, it stays as it is.
 */
export function shown<T>(value: T, isTerminal: boolean): T {
  return isTerminal ? (madeVisible(value) as T) : value;
}

function madeVisible(value: unknown): unknown {
  if (typeof value === "string") return visibleLines(value);
  if (Array.isArray(value)) return value.map(madeVisible);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [visibleLines(key), madeVisible(inner)]));
}

/** Until it is time to look again, or the verb is stopped: whoever asks looks which. */
export function pauseBetweenLooks(io: Io, ms: number): Promise<void> {
  return (io.pause ?? pause)(ms, io.signal);
}

export function print(io: Io, text: string): void {
  io.stdout.write(`${text}\n`);
}

export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/**
 * What is said beside the output: notes, warnings, errors. Never mixed into what a script reads. It has no colours, and
 * often the words of a server.
 */
export function note(io: Io, text: string): void {
  io.stderr.write(`${shown(hinted(io, text), io.isErrTTY)}\n`);
}

/** A text of ours with its commands as they can be typed here. What servers and tools wrote is printed as it is. */
export function hinted(io: Io, text: string): string {
  return io.hints?.text(text) ?? text;
}

/** A command of ours, `status` for instance, as a line that can be pasted here. */
export function pasted(io: Io, words: string): string {
  return io.hints?.command(words) ?? `${io.program ?? "toolway"} ${words}`;
}

/** What a person named: relative to the current folder, which an absolute path does not need. */
export function fromHere(io: Io, path: string): string {
  return isAbsolute(path) ? resolve(path) : resolve(io.cwd, path);
}

/** A path as a person writes it: relative below the current folder, `~` below the home folder. */
export function shortPath(io: Io, path: string): string {
  const cwd = folderOf(io);
  if (cwd !== undefined && path.startsWith(`${cwd}/`)) return `./${path.slice(cwd.length + 1)}`;
  return path.startsWith(`${io.home}/`) ? `~/${path.slice(io.home.length + 1)}` : path;
}

/** Nothing is below a folder that is no longer there. */
function folderOf(io: Io): string | undefined {
  try {
    return io.cwd;
  } catch {
    return undefined;
  }
}

/** The same, so that a shell reads it as one word. */
export function shellPath(io: Io, path: string): string {
  const short = shortPath(io, path);
  if (/^[\w@%+=:,./~-]+$/.test(short)) return short;
  // `~/` must stay outside the quotes to be understood.
  const home = short.startsWith("~/") ? "~/" : "";
  return `${home}'${short.slice(home.length).replaceAll("'", "'\\''")}'`;
}
