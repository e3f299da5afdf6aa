// Writes by a text of theirs, without that text: a hundred thousand may wait, and a map of texts takes more memory than what it
// leads to. It keeps a number made of the text, and asks the write itself whether it is the one.

import type { KeptWrite } from "./lane.js";

/** The last characters of a text are what is random in it: ids may have a name in front. */
const CHARACTERS = 12;

export class WriteIndex {
  readonly #textOf: (write: KeptWrite) => string;
  /** Almost always one write; several where their numbers meet. */
  readonly #at = new Map<number, KeptWrite | readonly KeptWrite[]>();
  readonly #factor: number;

  /** `random` in [0, 1): by it nobody outside can say which texts meet. */
  constructor(textOf: (write: KeptWrite) => string, random: number) {
    this.#textOf = textOf;
    this.#factor = Math.floor(random * 2 ** 30) * 2 + 31;
  }

  get(text: string): KeptWrite | undefined {
    const found = this.#at.get(this.#numberOf(text));
    if (found === undefined || !Array.isArray(found)) return this.#isOf(found as KeptWrite | undefined, text);
    return found.find((write: KeptWrite) => this.#textOf(write) === text);
  }

  /** In place of one with the same text, if there is one. */
  add(write: KeptWrite): void {
    const text = this.#textOf(write);
    const number = this.#numberOf(text);
    if (this.#at.has(number)) this.#put(number, [...this.#others(number, text), write]);
    else this.#at.set(number, write);
  }

  /** False where it is not in here. */
  remove(write: KeptWrite): boolean {
    const text = this.#textOf(write);
    const number = this.#numberOf(text);
    const found = this.#at.get(number);
    if (found === write) return this.#at.delete(number);
    if (!Array.isArray(found) || !found.includes(write)) return false;
    this.#put(number, this.#others(number, text));
    return true;
  }

  *all(): IterableIterator<KeptWrite> {
    for (const found of this.#at.values()) {
      if (Array.isArray(found)) yield* found;
      else yield found as KeptWrite;
    }
  }

  #isOf(write: KeptWrite | undefined, text: string): KeptWrite | undefined {
    return write !== undefined && this.#textOf(write) === text ? write : undefined;
  }

  /** Those whose number is that of the text, but for the one that has it. */
  #others(number: number, text: string): readonly KeptWrite[] {
    const found = this.#at.get(number);
    if (found === undefined) return [];
    const all = (Array.isArray(found) ? found : [found]) as readonly KeptWrite[];
    return all.filter((write) => this.#textOf(write) !== text);
  }

  #put(number: number, writes: readonly KeptWrite[]): void {
    const [first] = writes;
    if (first === undefined) this.#at.delete(number);
    else this.#at.set(number, writes.length === 1 ? first : writes);
  }

  #numberOf(text: string): number {
    let number = 0;
    for (let at = Math.max(0, text.length - CHARACTERS); at < text.length; at++) {
      number = Math.imul(number, this.#factor) + text.charCodeAt(at);
    }
    // Within 31 bits: larger numbers are objects of their own.
    return number >> 1;
  }
}
