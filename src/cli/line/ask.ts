// Asks the person at the terminal, and reads one line. What is secret is not shown while it is typed.

import { Writable } from "node:stream";
import { usageError } from "./errors.js";
import { type Io, Stopped } from "./io.js";

/** Whether somebody is there to be asked: a person who can type, and who sees the question. */
export function canAsk({ stdin, isErrTTY }: Io): boolean {
  return isErrTTY && (stdin as { isTTY?: boolean }).isTTY === true;
}

/**
 * The line without its end; undefined where there is none, at Ctrl-D. The question goes to stderr, so that what a script
 * reads stays as it is. Rejects with a Stopped at Ctrl-C.
 */
export async function ask(
  io: Io,
  question: string,
  options: { readonly isHidden: boolean },
): Promise<string | undefined> {
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
