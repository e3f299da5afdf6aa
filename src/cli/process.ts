// `toolway` as a process: gives its streams and signals to the CLI, and ends it. The only file that exits.

import { homedir } from "node:os";
import { isatty } from "node:tty";
import { Exit, usageError } from "./line/errors.js";
import { programName } from "./line/hints.js";
import { type Io, Stopped, type StopSignal, type TakenSignal } from "./line/io.js";
import { runCli } from "./program.js";

/** A reader of the log that is stuck does not keep us: what it was not given by then is lost. */
const LAST_WORDS_MS = 1_000;

const stop = new AbortController();

/** Asked at the start: a terminal that is gone is none any more. */
const hasTerminal = [0, 1, 2].some((descriptor) => isatty(descriptor));
let hungUp: (() => void) | undefined;

/** Of a program that runs in our place. */
let taken: ((signal: TakenSignal) => void) | undefined;

function onSignal(by: StopSignal): void {
  if (taken !== undefined) {
    taken(by);
    return;
  }
  // The second Ctrl-C: whoever presses it does not want to wait for the drain.
  if (stop.signal.aborted && by === "SIGINT") process.exit(Exit.interrupted);
  stop.abort(new Stopped(by));
}

process.on("SIGINT", () => onSignal("SIGINT"));
process.on("SIGTERM", () => onSignal("SIGTERM"));
process.on("SIGHUP", () => (hungUp === undefined || taken !== undefined ? onSignal("SIGHUP") : hungUp()));
// Node would open its inspector at the first, and die of the second. Neither means anything here; what is started from
// here has handlers of its own.
process.on("SIGUSR1", () => {});
process.on("SIGUSR2", () => {});

// `toolway tools | head -1`: the reader has what it wanted.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A terminal that is gone: what is under way still gets its time to end.
  if (error.code === "EIO") return;
  process.exit(error.code === "EPIPE" ? Exit.ok : Exit.failure);
});
// Nobody reads it any more, which is no reason to end.
process.stderr.on("error", () => {});

let folder: string | undefined;

function currentFolder(): string {
  try {
    return process.cwd();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw usageError("The folder that this was started in no longer exists.", "cd to another one, and try again.");
  }
}

const io: Io = {
  // Made when first asked for: most verbs read nothing, and opening it costs a stream.
  get stdin() {
    return process.stdin;
  },
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
  // Asked for by those who need it: the folder may have been deleted meanwhile.
  get cwd() {
    folder ??= currentFolder();
    return folder;
  },
  home: homedir(),
  isTTY: process.stdout.isTTY === true,
  isErrTTY: process.stderr.isTTY === true,
  columns: process.stdout.isTTY === true ? process.stdout.columns : undefined,
  rows: process.stdout.isTTY === true ? process.stdout.rows : undefined,
  signal: stop.signal,
  program: programName(process.argv[1], process.env),
  takeSignals: (act) => {
    taken = act;
    for (const signal of ["SIGQUIT", "SIGCONT", "SIGCHLD"] as const) process.on(signal, () => act(signal));
  },
  onHangUp: hasTerminal
    ? undefined
    : (act) => {
        hungUp = act;
      },
};

/** Runs what the command line says, and exits. */
export async function runProcess(): Promise<void> {
  const code = await runCli(process.argv.slice(2), io);
  // Whatever a library left open must not keep a finished command alive; what was written gets out first.
  process.stdout.write("", () => {
    setTimeout(() => process.exit(code), LAST_WORDS_MS);
    process.stderr.write("", () => process.exit(code));
  });
}
