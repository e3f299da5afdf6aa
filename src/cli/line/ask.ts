// The person at the terminal: asked for one line, of which nothing is shown while it is typed where it is secret; and beside
// a verb that runs for a while, told things at any time.

import { Writable } from "node:stream";
import { Exit, type ExitCode, usageError } from "./errors.js";
import { type Io, note, Stopped } from "./io.js";

/** Whether somebody is there to be asked: a person who can type, and who sees the question. */
export function canAsk({ stdin, isErrTTY }: Io): boolean {
  return isErrTTY && (stdin as { isTTY?: boolean }).isTTY === true;
}

interface AskOptions {
  readonly isHidden: boolean;
  /** What was typed before the question was shown answers another one, and is dropped. */
  readonly isFresh?: boolean;
}

/**
 * The line without its end; undefined where there is none, at Ctrl-D. The question goes to stderr, so that what a script
 * reads stays as it is. Rejects with a Stopped at Ctrl-C.
 */
export async function ask(io: Io, question: string, options: AskOptions): Promise<string | undefined> {
  if (options.isFresh === true && (await dropTyped(io.stdin)) === "ended") return undefined;
  const { createInterface } = await import("node:readline");
  let isMuted = false;
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      if (!isMuted) io.stderr.write(chunk);
      done();
    },
  });
  // As a terminal: it echoes what is typed itself, so that it can leave it out.
  const lines = createInterface({ input: io.stdin, output, terminal: true, historySize: 0 });
  const { promise, resolve, reject } = deferredLine();
  const stop = () => reject(io.signal.reason as Error);
  io.signal.addEventListener("abort", stop, { once: true });
  try {
    io.signal.throwIfAborted();
    lines.once("close", () => resolve(undefined));
    lines.once("SIGINT", () => reject(new Stopped("SIGINT")));
    lines.question(question, resolve);
    isMuted = options.isHidden;
    return await promise;
  } finally {
    io.signal.removeEventListener("abort", stop);
    lines.close();
    if (isMuted) io.stderr.write("\n");
  }
}

/** Turns of the event loop in which all that waits is read: streams begin to flow in the first. */
const DROP_TURNS = 3;

/** A stream that has ended says so once, and whoever asks afterwards would wait for ever. */
async function dropTyped(stdin: Io["stdin"]): Promise<"dropped" | "ended"> {
  const terminal = stdin as Io["stdin"] & { setRawMode?(isRaw: boolean): unknown };
  const drop = () => {};
  // Else a line without its end stays in the terminal, and would begin the answer.
  terminal.setRawMode?.(true);
  stdin.on("data", drop);
  stdin.resume();
  for (let turn = 0; turn < DROP_TURNS; turn++) await new Promise((done) => setImmediate(done));
  stdin.off("data", drop);
  stdin.pause();
  if (!stdin.readableEnded) return "dropped";
  terminal.setRawMode?.(false);
  return "ended";
}

/**
 * Whether the person wants it. `isAgreed`: they said so in the line. Where nobody can be asked, nothing is done that
 * nobody agreed to.
 */
export async function confirm(io: Io, question: string, isAgreed: boolean): Promise<boolean> {
  if (isAgreed) return true;
  if (!canAsk(io)) throw usageError(`${question} Nobody can be asked here.`, "Say --yes if that is what you want.");
  const answer = await ask(io, `${question} [y/N] `, { isHidden: false });
  return /^y(es)?$/i.test(answer?.trim() ?? "");
}

/** The person did not want it. */
export function declined(io: Io): ExitCode {
  note(io, "Nothing was changed.");
  return Exit.failure;
}

interface DeferredLine {
  readonly promise: Promise<string | undefined>;
  readonly resolve: (line: string | undefined) => void;
  readonly reject: (error: Error) => void;
}

function deferredLine(): DeferredLine {
  let settle: Pick<DeferredLine, "resolve" | "reject"> | undefined;
  const promise = new Promise<string | undefined>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...(settle as unknown as Pick<DeferredLine, "resolve" | "reject">) };
}

/** The person beside a verb that runs for a while. */
export interface Terminal {
  /** Somebody reads what is written. */
  readonly isRead: boolean;
  /** Somebody is there to be asked, too. */
  readonly canAsk: boolean;
  /** How wide it is now; undefined or 0 where it does not say. */
  columns(): number | undefined;
  /** Writes as it is, without an end of line. */
  write(text: string): void;
  /** Writes a line, in which nothing is hidden. */
  note(text: string): void;
  /** What was typed; undefined at Ctrl-D. Rejects with a Stopped at Ctrl-C, and with the signal's reason. */
  ask(question: string, signal: AbortSignal): Promise<string | undefined>;
}

/** On stderr, so that what a script reads of stdout stays as it is. */
export function terminalOf(io: Io): Terminal {
  return {
    isRead: io.isErrTTY,
    canAsk: canAsk(io),
    columns: () => (io.stderr as { columns?: number }).columns,
    write: (text) => void io.stderr.write(text),
    note: (text) => note(io, text),
    ask: (question, signal) =>
      ask({ ...io, signal: AbortSignal.any([io.signal, signal]) }, question, { isHidden: false }),
  };
}
