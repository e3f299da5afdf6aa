// Requests that were refused at the door, in the log: the first of a kind at once, the others once a minute by their
// number. A scanner, or an agent with an old token, would else fill a disk.

import type { Log } from "../observe/log.js";
import { systemClock } from "../runtime/clock.js";

/** Often enough to see that it goes on. */
const WINDOW_MS = 60_000;

/** So many kinds are told apart; a reason may hold what a stranger sent. What is beyond is one kind for each status. */
const MAX_KINDS = 32;

/** A path is as long as a stranger likes. */
const MAX_PATH_CHARACTERS = 200;

export interface Refusal {
  readonly status: number;
  readonly path: string;
  readonly why: string;
}

/** One line of the log. */
export interface RefusalLine {
  readonly text: string;
  readonly path: string;
}

interface Counted {
  readonly text: string;
  /** Of the last one. */
  path: string;
  sinceMs: number;
  more: number;
}

/** Decides what is said when. It has no clock. */
export class RefusalCounts {
  readonly #kinds = new Map<string, Counted>();

  /** The line to write now, if any. */
  refused({ status, path, why }: Refusal, nowMs: number): RefusalLine | undefined {
    const text = `refused with ${status}: ${why}`;
    const isTold = this.#kinds.has(text) || this.#kinds.size < MAX_KINDS;
    const key = isTold ? text : `refused with ${status}, for other reasons`;
    const known = this.#kinds.get(key);
    if (known === undefined) {
      this.#kinds.set(key, { text: key, path, sinceMs: nowMs, more: 0 });
      return { text, path };
    }
    known.more++;
    known.path = path;
    return undefined;
  }

  /** Lines for what came in the minutes that are over; what did not come again is forgotten. */
  due(nowMs: number): RefusalLine[] {
    const lines: RefusalLine[] = [];
    for (const [key, one] of this.#kinds) {
      if (nowMs - one.sinceMs < WINDOW_MS) continue;
      if (one.more === 0) {
        this.#kinds.delete(key);
        continue;
      }
      const times = one.more === 1 ? "once more" : `${one.more} more times`;
      lines.push({ text: `${one.text} (${times} in the last minute)`, path: one.path });
      one.sinceMs = nowMs;
      one.more = 0;
    }
    return lines;
  }

  /** When due() has something to do; undefined where nothing is counted. */
  get nextMs(): number | undefined {
    let first: number | undefined;
    for (const { sinceMs } of this.#kinds.values()) first = Math.min(first ?? sinceMs, sinceMs);
    return first === undefined ? undefined : first + WINDOW_MS;
  }
}

export class RefusalLog {
  readonly #log: Log;
  readonly #counts = new RefusalCounts();
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  refused(refusal: Refusal): void {
    const line = this.#counts.refused(refusal, systemClock.now());
    if (line !== undefined) this.#write(line);
    this.#setTimer();
  }

  #setTimer(): void {
    const nextMs = this.#counts.nextMs;
    if (this.#timer !== undefined || nextMs === undefined) return;
    // It does not keep a process alive that has ended all else.
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        for (const line of this.#counts.due(systemClock.now())) this.#write(line);
        this.#setTimer();
      },
      Math.max(0, nextMs - systemClock.now()),
    ).unref();
  }

  #write({ text, path }: RefusalLine): void {
    this.#log.warn(text, { path: path.slice(0, MAX_PATH_CHARACTERS) });
  }
}
