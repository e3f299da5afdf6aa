// Runs the command that was asked for, and turns whatever comes of it into an exit code and a message. It never ends
// the process.

import { ExpectedError, type ExpectedKind, messageOf, stackOf } from "../runtime/expected-error.js";
import { commands } from "./commands/index.js";
import { Exit, type ExitCode, FILE_TROUBLE, UserError } from "./line/errors.js";
import { hintsFor } from "./line/hints.js";
import { type Io, note, Stopped } from "./line/io.js";
import { type PlainLine, readPlainLine } from "./line/plain-line.js";

export async function runCli(argv: readonly string[], given: Io): Promise<ExitCode> {
  let io = given;
  try {
    // The parser takes longer to load than most verbs to run; a line without a mistake needs none of it.
    const line = readPlainLine(argv, commands) ?? (await (await import("./parser.js")).parseLine(argv, io));
    if (typeof line === "number") return line;
    io = withHints(line, given);
    return await line.command.run(line.input, io);
  } catch (error) {
    return explain(error, io);
  }
}

/** The same, and getters stay getters: to open stdin costs a stream. */
function withHints(line: PlainLine, io: Io): Io {
  const hints = { value: hintsFor(line, commands, io), enumerable: true };
  return Object.defineProperties({}, { ...Object.getOwnPropertyDescriptors(io), hints }) as Io;
}

/** How the CLI ends by an expected error. A new kind does not compile until it has a line here. */
const ENDINGS: Readonly<Record<ExpectedKind, { readonly exit: ExitCode; readonly prefix: string }>> = {
  usage: { exit: Exit.usage, prefix: "toolway: " },
  // Each of its lines begins with the file.
  config: { exit: Exit.usage, prefix: "" },
  failed: { exit: Exit.failure, prefix: "toolway: " },
  cancelled: { exit: Exit.failure, prefix: "toolway: " },
};

/** One message for each kind of end; a stack only when it is asked for. */
function explain(error: unknown, io: Io): ExitCode {
  if (io.signal.aborted && (error === io.signal.reason || isAbort(error))) {
    return io.signal.reason instanceof Stopped && io.signal.reason.by !== "SIGINT" ? Exit.failure : Exit.interrupted;
  }
  // A question on the terminal takes Ctrl-C for itself, and no signal comes of it.
  if (error instanceof Stopped && error.by === "SIGINT") return Exit.interrupted;
  const debug = (io.env["TOOLWAY_DEBUG"] ?? "") !== "";
  if (error instanceof ExpectedError) {
    const { exit, prefix } = ENDINGS[error.kind];
    const hint = error instanceof UserError && error.hint !== undefined ? `\n  ${error.hint}` : "";
    note(io, `${prefix}${error.message}${hint}`);
    if (debug) noteStack(error, io);
    return exit;
  }
  const said = fileTrouble(error);
  if (said !== undefined) {
    note(io, `toolway: ${said}`);
    if (debug) note(io, stackOf(error));
    return Exit.failure;
  }
  note(io, `toolway: unexpected fault: ${messageOf(error)}`);
  note(io, debug ? stackOf(error) : "  Set TOOLWAY_DEBUG=1 to see where it arose.");
  return Exit.failure;
}

/** A path that cannot be used is the user's to put right, and no fault of ours. */
function fileTrouble(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code, path } = error as NodeJS.ErrnoException;
  if (code?.startsWith("ERR_OSSL_") === true) {
    return `The TLS certificate or its key cannot be used: both are PEM files, and belong together (${code}).`;
  }
  const trouble = code === undefined ? undefined : FILE_TROUBLE[code];
  return trouble === undefined || typeof path !== "string" ? undefined : `${path} cannot be used: ${trouble}.`;
}

function isAbort(error: unknown): boolean {
  if (error instanceof ExpectedError) return error.kind === "cancelled";
  // Node's own has no class to ask for.
  return error instanceof Stopped || (error instanceof Error && error.name === "AbortError");
}

/** A mistake of the user has no stack that helps; what was behind it has. */
function noteStack(error: ExpectedError, io: Io): void {
  if (error.kind === "failed" || error.kind === "cancelled") note(io, stackOf(error));
  if (error.cause !== undefined) note(io, stackOf(error.cause));
}
