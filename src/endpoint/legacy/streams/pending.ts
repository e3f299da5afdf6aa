// Keeps what an agent should be told while it has no stream open: a few messages. The oldest are dropped first.

import type { Retained, Retainer } from "./retained.js";

/** Said twice, these mean no more than once. */
const COALESCED = /^[^{]*\{[^{}]*"method"\s*:\s*"notifications\/(?:[a-z]+\/list_changed|resources\/updated)"/;
/** Such notifications are short; longer texts are not searched. */
const MAX_COALESCED_LENGTH = 2048;

export class Pending implements Retainer {
  readonly #retained: Retained;
  readonly owner: string;
  readonly #maxMessages: number;
  readonly #maxBytes: number;
  #texts: string[] = [];
  #bytes = 0;

  constructor(retained: Retained, owner: string, maxMessages: number, maxBytes: number) {
    this.#retained = retained;
    this.owner = owner;
    this.#maxMessages = maxMessages;
    this.#maxBytes = maxBytes;
  }

  add(text: string): void {
    if (text.length <= MAX_COALESCED_LENGTH && COALESCED.test(text) && this.#texts.includes(text)) return;
    // Two bytes a character is what a string may take in memory.
    const bytes = text.length * 2;
    if (bytes > this.#maxBytes) return;
    this.#texts.push(text);
    this.#bytes += bytes;
    while (this.#texts.length > this.#maxMessages || this.#bytes > this.#maxBytes) {
      const dropped = (this.#texts.shift()?.length ?? 0) * 2;
      this.#bytes -= dropped;
      this.#retained.remove(this, dropped);
    }
    this.#retained.add(this, bytes);
  }

  take(): readonly string[] {
    const texts = this.#texts;
    this.release();
    return texts;
  }

  forget(): number {
    const bytes = this.#bytes;
    this.#texts = [];
    this.#bytes = 0;
    return bytes;
  }

  release(): void {
    this.#retained.release(this);
  }
}
