// What a child writes to stderr as lines to be kept, without known secrets. Bounded in what waits and in what is taken
// in a second: a child that floods costs no more than one that talks. It has no clock.

import type { Redactor } from "../../runtime/redact/redactor.js";

/** As much as may wait for its moment, and the longest line that is kept: a stack trace in one line has far less. */
const MAX_WAITING_BYTES = 32 * 1024;

/** So much is taken in a second: to look for secrets in more would cost the other servers their time. */
const MAX_BYTES_A_SECOND = 128 * 1024;
const SECOND_MS = 1_000;

const LINE_FEED = 0x0a;
const NOTHING: Buffer = Buffer.alloc(0);

export interface StderrBatch {
  /** Whole lines, oldest first, without empty ones. */
  readonly lines: readonly string[];
  /** Of what came between these lines or behind them, and is in none. */
  readonly leftOutBytes: number;
}

export class StderrLines {
  readonly #redactor: Redactor;
  #waiting: Buffer[] = [];
  #waitingBytes = 0;
  #leftOutBytes = 0;
  /** The rest of a line whose beginning was left out is left out, too: it may be half of a secret. */
  #isSkipping = false;
  #secondBeganMs = Number.NEGATIVE_INFINITY;
  #bytesInSecond = 0;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  push(chunk: Buffer, nowMs: number): void {
    if (nowMs - this.#secondBeganMs >= SECOND_MS) {
      this.#secondBeganMs = nowMs;
      this.#bytesInSecond = 0;
    }
    let kept = chunk;
    if (this.#isSkipping) {
      const end = chunk.indexOf(LINE_FEED);
      kept = end < 0 ? NOTHING : chunk.subarray(end + 1);
      this.#leftOutBytes += chunk.length - kept.length;
      if (end < 0) return;
      this.#isSkipping = false;
    }
    this.#bytesInSecond += kept.length;
    if (this.#waitingBytes + kept.length > MAX_WAITING_BYTES || this.#bytesInSecond > MAX_BYTES_A_SECOND) {
      this.#leaveOut(kept);
      return;
    }
    // A view would hold the whole of what the pipe gave.
    this.#waiting.push(Buffer.from(kept));
    this.#waitingBytes += kept.length;
  }

  /** What has come since, where there is anything. `isEnd`: nothing follows, so that the last line needs no end. */
  take(isEnd: boolean): StderrBatch | undefined {
    const bytes = Buffer.concat(this.#waiting, this.#waitingBytes);
    const end = isEnd ? bytes.length : bytes.lastIndexOf(LINE_FEED) + 1;
    const rest = bytes.subarray(end);
    this.#waiting = rest.length === 0 ? [] : [Buffer.from(rest)];
    this.#waitingBytes = rest.length;
    const leftOutBytes = this.#leftOutBytes;
    this.#leftOutBytes = 0;
    if (end === 0 && leftOutBytes === 0) return undefined;
    // Together: a key may have several lines.
    const lines = this.#redactor
      .redact(bytes.toString("utf8", 0, end))
      .split("\n")
      .map((line) => line.trimEnd())
      .filter((line) => line !== "");
    return { lines, leftOutBytes };
  }

  #leaveOut(chunk: Buffer): void {
    const waiting = Buffer.concat(this.#waiting, this.#waitingBytes);
    const whole = waiting.subarray(0, waiting.lastIndexOf(LINE_FEED) + 1);
    this.#leftOutBytes += chunk.length + waiting.length - whole.length;
    this.#waiting = whole.length === 0 ? [] : [whole];
    this.#waitingBytes = whole.length;
    this.#isSkipping = chunk.at(-1) !== LINE_FEED;
  }
}
