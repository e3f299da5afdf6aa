// The person beside a verb that runs for a while: what can be told to them at any time, and what they can be asked.

import { ask, canAsk } from "./ask.js";
import { type Io, note } from "./io.js";

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
