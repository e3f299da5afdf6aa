// A line that is shown until Ctrl-C: rewritten in place on a terminal, and elsewhere printed again when it counts otherwise.

import { Exit, type ExitCode } from "../line/errors.js";
import { type Io, pauseBetweenLooks, print } from "../line/io.js";

/** Often enough to watch. */
const LOOK_MS = 500;
/** A terminal that does not know its width says 0. */
const USUAL_COLUMNS = 80;

interface WatchedLine {
  readonly text: string;
  /** What of it is a change: that something has become older is none. */
  readonly counts: string;
}

export async function watchLine<T>(
  io: Io,
  json: boolean,
  look: () => Promise<T>,
  lineOf: (now: T, nowMs: number) => WatchedLine,
): Promise<ExitCode> {
  const isLive = io.isTTY && !json;
  let before = "";
  try {
    for (;;) {
      const now = await look();
      const { text, counts } = lineOf(now, Date.now());
      if (isLive) io.stdout.write(`\r\u001b[K${text.slice(0, (io.columns || USUAL_COLUMNS) - 1)}`);
      else if (counts !== before) print(io, json ? JSON.stringify(now) : `${new Date().toISOString()} ${text}`);
      before = counts;
      await pauseBetweenLooks(io, LOOK_MS);
      if (io.signal.aborted) return Exit.ok;
    }
  } catch (error) {
    if (io.signal.aborted) return Exit.ok;
    throw error;
  } finally {
    if (isLive) io.stdout.write("\n");
  }
}
