// Keeps the last that a child wrote to stderr, for status and error messages: bounded, readable, without known secrets.

import { stripVTControlCharacters } from "node:util";

/** It is enough for a stack trace, and little enough to show; a child that writes gigabytes costs no more than this. */
const MAX_BYTES = 16 * 1024;
const MAX_LINES = 50;

/** Names of variables whose values are credentials by custom. */
const SECRET_NAME = /token|secret|key|passw|pwd|credential|auth|dsn/i;
/** Shorter values occur by chance: blotting them out would garble what is shown and protect nothing. */
const MIN_SECRET_LENGTH = 6;

/**
 * Makes text of a child fit to show: takes out escape sequences and control characters, blots out the child's secrets.
 */
export class Display {
  readonly #secrets: readonly string[];

  constructor(env: Readonly<Record<string, string>>) {
    this.#secrets = Object.entries(env)
      .filter(([name, value]) => SECRET_NAME.test(name) && value.length >= MIN_SECRET_LENGTH)
      .map(([, value]) => value)
      // The longest come first: one secret may contain another.
      .sort((a, b) => b.length - a.length);
  }

  clean(text: string): string {
    let out = stripVTControlCharacters(text)
      .replaceAll("\t", " ")
      .replace(/\p{Cc}/gu, "");
    for (const secret of this.#secrets) out = out.replaceAll(secret, "***");
    return out;
  }
}

export class StderrRing {
  readonly #display: Display;
  #bytes: Buffer = Buffer.alloc(0);
  #cut = false;

  constructor(display: Display) {
    this.#display = display;
  }

  push(chunk: Buffer): void {
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
    const lines = this.#bytes.toString("utf8").split(/\r?\n/);
    // What was cut in the middle (of a line, of a character, of a secret) is not shown.
    if (this.#cut && lines.length > 1) lines.shift();
    return lines
      .map((line) => this.#display.clean(line).trimEnd())
      .filter((line) => line !== "")
      .slice(-MAX_LINES);
  }

  /** The one line that most likely says why it died: the last that names an error, else the last at all. */
  reason(): string | undefined {
    const lines = this.lines().filter((line) => !/^\s+at |^Node\.js v\d/.test(line));
    return (
      lines.findLast((line) => /error|exception|panic|fatal|cannot|not found/i.test(line)) ?? lines.at(-1)
    )?.trim();
  }
}
