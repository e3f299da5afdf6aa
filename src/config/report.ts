// Gathers the mistakes and warnings of one config, with their places, so that all are told at once.

import type { Position, Source } from "./jsonc.js";
import { ConfigError, formatMistake, type KeyPath, keyText, type Mistake } from "./mistakes.js";

interface Remark {
  readonly hint?: string | undefined;
  /** Points at the key instead of its value. */
  readonly onKey?: boolean;
}

export class Report {
  readonly #file: string | undefined;
  readonly #source: Source | undefined;
  readonly #mistakes: Mistake[] = [];
  readonly #warnings: Mistake[] = [];

  constructor(file: string | undefined, source?: Source) {
    this.#file = file;
    this.#source = source;
  }

  mistake(path: KeyPath, message: string, remark: Remark = {}): void {
    this.#mistakes.push(this.#make(path, this.#place(path, remark), message, remark.hint));
  }

  mistakeAt(path: KeyPath, offset: number, message: string, hint: string | undefined): void {
    this.#mistakes.push(this.#make(path, this.#source?.position(offset), message, hint));
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
    if (this.failed) throw new ConfigError(inOrder(this.#mistakes));
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
