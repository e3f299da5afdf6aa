// Keeps the last that a child wrote to stderr, for status and error messages: bounded, readable, without known secrets.

import { isRedacted, LEFT_OUT, type Redactor } from "../../runtime/redact/redactor.js";
import { errorLine, namesError } from "../../runtime/words/error-lines.js";

/** It is enough for a stack trace, and little enough to show; a child that writes gigabytes costs no more than this. */
const MAX_BYTES = 16 * 1024;
const MAX_LINES = 50;

/** Why a child died, in its own words: to the operator, and to agents, who see no line that names a secret. */
interface StderrReason {
  readonly forOperator: string;
  readonly forAgents: string;
}

export class StderrRing {
  readonly #redactor: Redactor;
  #bytes: Buffer = Buffer.alloc(0);
  #cut = false;
  /** What lines() found; undefined once more was written. */
  #lines: string[] | undefined;

  constructor(redactor: Redactor) {
    this.#redactor = redactor;
  }

  push(chunk: Buffer): void {
    this.#lines = undefined;
    const all = chunk.length >= MAX_BYTES ? chunk : Buffer.concat([this.#bytes, chunk]);
    if (all.length <= MAX_BYTES) {
      this.#bytes = all;
      return;
    }
    this.#cut = true;
    // It is copied: a view would pin the whole chunk.
    this.#bytes = Buffer.from(all.subarray(-MAX_BYTES));
  }

  /**
   * The last lines, oldest first, without empty ones. They are made when asked for: stderr is written more than read.
   */
  lines(): string[] {
    this.#lines ??= this.#read();
    return this.#lines;
  }

  #read(): string[] {
    let text = this.#bytes.toString("utf8");
    // What was cut in the middle (of a line, of a character, of a secret) is not shown.
    // A secret may go on in the lines that follow, as long as the longest is.
    if (this.#cut) text = text.slice(this.#redactor.longest);
    if (this.#cut && text.includes("\n")) text = text.slice(text.indexOf("\n") + 1);
    // It is redacted as a whole: a key may have several lines.
    return this.#redactor
      .redact(text)
      .split("\n")
      .map((line) => line.trimEnd())
      .filter((line) => line !== "")
      .slice(-MAX_LINES);
  }

  /** The one line that most likely says why it died. */
  reason(): StderrReason | undefined {
    const lines = this.lines();
    const forOperator = errorLine(lines);
    if (forOperator === undefined) return undefined;
    if (!isRedacted(forOperator)) return { forOperator, forAgents: forOperator };
    const other = errorLine(lines.filter((line) => namesError(line) && !isRedacted(line)));
    return { forOperator, forAgents: other ?? LEFT_OUT };
  }
}
