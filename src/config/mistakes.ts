// What is wrong in a config: the form of a mistake and its text, the report that gathers the mistakes and warnings of
// one config with their places, and the error that carries all of them at once. How a mistake is worded stands where it
// is found: form.ts for wrong types and unknown keys, each check for what it asks.

import { ExpectedError } from "../runtime/expected-error.js";
import type { Position, Source } from "./jsonc.js";

/** The way to a value: keys and indexes from the root. */
export type KeyPath = readonly (string | number)[];

export interface Mistake {
  /** Undefined for a config that was passed as an object. */
  readonly file: string | undefined;
  /** Counted from 1. Undefined where the whole file is meant. */
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** The key as one would write it, `mcpServers.github.args[0]`; empty for the file itself. */
  readonly key: string;
  readonly message: string;
  readonly hint: string | undefined;
}

/** All mistakes of a config. Its message has one line for each. */
export class ConfigError extends ExpectedError {
  override readonly name = "ConfigError";
  override readonly kind = "config";
  readonly mistakes: readonly Mistake[];

  constructor(mistakes: readonly Mistake[], options?: { cause?: unknown }) {
    super(formatMistakes(mistakes), options);
    this.mistakes = mistakes;
  }
}

/** What is wrong with one entry, for those who do not have the file: without its places and fixes. */
export function mistakeTexts(placed: readonly PlacedMistake[], entry: KeyPath): string {
  const texts = placed.map(({ path, mistake: { message } }) => {
    const key = keyText(path.slice(entry.length));
    return key === "" ? message : `${message} (${key})`;
  });
  return texts.join("; ");
}

/** One line each: `file:line:column: key: what was expected (hint)`. */
export function formatMistakes(mistakes: readonly Mistake[]): string {
  return mistakes.map(formatMistake).join("\n");
}

function formatMistake(mistake: Mistake): string {
  const { file, line, column, key, message, hint } = mistake;
  const where = [file ?? "config", line, column].filter((part) => part !== undefined).join(":");
  return `${where}: ${key === "" ? "" : `${key}: `}${message}${hint === undefined ? "" : ` (${hint})`}`;
}

export function keyText(path: KeyPath): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else if (/^[$\w-]+$/.test(part)) text += text === "" ? part : `.${part}`;
    else text += `[${JSON.stringify(part)}]`;
  }
  return text;
}

interface Remark {
  readonly hint?: string | undefined;
  /** Points at the key instead of its value. */
  readonly onKey?: boolean;
}

/** A mistake, and the way to it. */
export interface PlacedMistake {
  readonly path: KeyPath;
  readonly mistake: Mistake;
}

export class Report {
  readonly #file: string | undefined;
  readonly #source: Source | undefined;
  readonly #mistakes: PlacedMistake[] = [];
  readonly #warnings: Mistake[] = [];

  constructor(file: string | undefined, source?: Source) {
    this.#file = file;
    this.#source = source;
  }

  mistake(path: KeyPath, message: string, remark: Remark = {}): void {
    this.#mistakes.push({ path, mistake: this.#make(path, this.#place(path, remark), message, remark.hint) });
  }

  mistakeAt(path: KeyPath, offset: number, message: string, hint: string | undefined): void {
    this.#mistakes.push({ path, mistake: this.#make(path, this.#source?.position(offset), message, hint) });
  }

  warning(path: KeyPath, message: string, remark: Remark = {}): void {
    this.#warnings.push(this.#make(path, this.#place(path, remark), message, remark.hint));
  }

  get failed(): boolean {
    return this.#mistakes.length > 0;
  }

  get warnings(): string[] {
    return inOrder(this.#warnings).map(formatMistake);
  }

  throwIfFailed(): void {
    if (this.failed) throw new ConfigError(inOrder(this.#mistakes.map(({ mistake }) => mistake)));
  }

  /** The mistakes at that path and below it. */
  list(path: KeyPath): readonly PlacedMistake[] {
    return this.#mistakes.filter((one) => path.every((part, index) => one.path[index] === part));
  }

  /** The mistakes at that path and below it, which from now on are the caller's to tell: they fail the config no more. */
  take(path: KeyPath): PlacedMistake[] {
    const taken = [...this.list(path)];
    if (taken.length > 0) {
      const left = this.#mistakes.filter((one) => !taken.includes(one));
      this.#mistakes.splice(0, this.#mistakes.length, ...left);
    }
    return taken;
  }

  /** What was taken is told as warnings: it harms nobody. */
  asWarnings(taken: readonly PlacedMistake[]): void {
    this.#warnings.push(...taken.map(({ mistake }) => mistake));
  }

  #place(path: KeyPath, remark: Remark): Position | undefined {
    return this.#source?.locate(path, remark.onKey === true ? "key" : "value");
  }

  #make(path: KeyPath, at: Position | undefined, message: string, hint: string | undefined): Mistake {
    return { file: this.#file, line: at?.line, column: at?.column, key: keyText(path), message, hint };
  }
}

function inOrder(found: readonly Mistake[]): Mistake[] {
  return found.toSorted((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
}
