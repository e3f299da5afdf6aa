// Runs the command that was asked for, and turns whatever comes of it into an exit code and a message. It never ends
// the process.

import { commands } from "./commands/index.js";
import { Exit, type ExitCode, UserError } from "./line/errors.js";
import { type Io, note, Stopped } from "./line/io.js";
import { readPlainLine } from "./line/plain-line.js";

export async function runCli(argv: readonly string[], io: Io): Promise<ExitCode> {
  try {
    // The parser takes longer to load than most verbs to run; a line without a mistake needs none of it.
    const line = readPlainLine(argv, commands) ?? (await (await import("./parser.js")).parseLine(argv, io));
    return typeof line === "number" ? line : await line.command.run(line.input, io);
  } catch (error) {
    return explain(error, io);
  }
}

/** Errors of the gateway whose message is made for people. */
const EXPECTED: ReadonlySet<string> = new Set([
  "Fault",
  "CallError",
  "ControlError",
  "StateDirError",
  "StoreError",
  "TokenError",
]);

/** One message for each kind of end; a stack only for faults of ours, and only when asked for. */
function explain(error: unknown, io: Io): ExitCode {
  if (io.signal.aborted && (error === io.signal.reason || isAbort(error))) {
    return io.signal.reason instanceof Stopped && io.signal.reason.by === "SIGTERM" ? Exit.failure : Exit.interrupted;
  }
  const debug = (io.env["TOOLWAY_DEBUG"] ?? "") !== "";
  if (error instanceof UserError) {
    note(io, `toolway: ${error.message}${error.hint === undefined ? "" : `\n  ${error.hint}`}`);
    if (debug && error.cause !== undefined) note(io, stackOf(error.cause));
    return error.exitCode;
  }
  // By name: the classes live in what only some verbs load.
  const name = error instanceof Error ? error.name : "";
  if (name === "ConfigError") {
    note(io, error instanceof Error ? error.message : "");
    return Exit.usage;
  }
  if (EXPECTED.has(name)) {
    note(io, `toolway: ${error instanceof Error ? error.message : ""}`);
    if (debug) note(io, stackOf(error));
    return Exit.failure;
  }
  const said = fileTrouble(error);
  if (said !== undefined) {
    note(io, `toolway: ${said}`);
    if (debug) note(io, stackOf(error));
    return Exit.failure;
  }
  note(io, `toolway: unexpected fault: ${error instanceof Error ? error.message : String(error)}`);
  note(io, debug ? stackOf(error) : "  Set TOOLWAY_DEBUG=1 to see where it arose.");
  return Exit.failure;
}

/** What the system says of a path, in words. */
const TROUBLE: Readonly<Record<string, string>> = {
  EACCES: "permission denied",
  EPERM: "permission denied",
  EROFS: "the file system is read-only",
  ENOSPC: "the disk is full",
  EDQUOT: "the disk quota is used up",
  ENOENT: "it does not exist",
  EEXIST: "a file is in the way",
  ENOTDIR: "a part of the path is a file",
  EISDIR: "it is a folder",
  ENAMETOOLONG: "the path is too long",
};

/** A path that cannot be used is the user's to put right, and no fault of ours. */
function fileTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code?.startsWith("ERR_OSSL_") === true) {
    return `The TLS certificate or its key cannot be used: both are PEM files, and belong together (${code}).`;
  }
  const trouble = code === undefined ? undefined : TROUBLE[code];
  return trouble === undefined || typeof path !== "string" ? undefined : `${path} cannot be used: ${trouble}.`;
}

function isAbort(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.name === "AbortError" || error.name === "Stopped" || ("code" in error && error.code === "cancelled");
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
