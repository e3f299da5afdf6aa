// What a command may touch of the world outside: streams, environment, folder, the signal to stop. Tests make their
// own.

import type { Readable, Writable } from "node:stream";

export interface Io {
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  /** Whether a person reads stdout, and stderr. */
  readonly isTTY: boolean;
  readonly isErrTTY: boolean;
  /** How wide the terminal is; unknown where stdout is none. */
  readonly columns?: number | undefined;
  /** Fires at the first Ctrl-C or SIGTERM; its reason is a `Stopped`. */
  readonly signal: AbortSignal;
}

/** Why `Io.signal` fired. */
export class Stopped extends Error {
  override readonly name = "Stopped";
  readonly by: "SIGINT" | "SIGTERM";

  constructor(by: "SIGINT" | "SIGTERM") {
    super(by === "SIGINT" ? "Interrupted." : "Told to stop.");
    this.by = by;
  }
}

export function print(io: Io, text: string): void {
  io.stdout.write(`${text}\n`);
}

export function printJson(io: Io, value: unknown): void {
  io.stdout.write(`${JSON.stringify(value, null, 2)}\n`);
}

/** What is said beside the output: notes, warnings, errors. Never mixed into what a script reads. */
export function note(io: Io, text: string): void {
  io.stderr.write(`${text}\n`);
}

/** A path as a person writes it: relative below the current folder, `~` below the home folder. */
export function shortPath(io: Io, path: string): string {
  if (path.startsWith(`${io.cwd}/`)) return `./${path.slice(io.cwd.length + 1)}`;
  return path.startsWith(`${io.home}/`) ? `~/${path.slice(io.home.length + 1)}` : path;
}
