// The events of one stream that a client may ask for again. Pure: bounded by count and bytes, oldest out first.

import type { Retained, Retainer } from "./retained.js";

export interface Kept {
  readonly seq: number;
  readonly event: string | Buffer;
  readonly bytes: number;
}

export class Replay implements Retainer {
  readonly #retained: Retained;
  readonly owner: string;
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #events: Kept[] = [];
  #bytes = 0;

  constructor(retained: Retained, owner: string, maxEvents: number, maxBytes: number) {
    this.#retained = retained;
    this.owner = owner;
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  add(seq: number, event: string | Buffer): void {
    const bytes = typeof event === "string" ? Buffer.byteLength(event) : event.length;
    if (bytes > this.#maxBytes) {
      // Without this one, those before it are of no use.
      this.release();
      return;
    }
    this.#events.push({ seq, event, bytes });
    this.#bytes += bytes;
    while (this.#events.length > this.#maxEvents || this.#bytes > this.#maxBytes) this.#dropOldest();
    this.#retained.add(this, bytes);
  }

  #dropOldest(): void {
    const oldest = this.#events.shift();
    if (oldest === undefined) return;
    this.#bytes -= oldest.bytes;
    this.#retained.remove(this, oldest.bytes);
  }

  /** The first after `seq` that is still kept. */
  next(seq: number): Kept | undefined {
    return this.#events.find((kept) => kept.seq > seq);
  }

  /** True where the newest event is kept, if `seq` is its number. */
  endsWith(seq: number): boolean {
    return this.#events.at(-1)?.seq === seq;
  }

  forget(): number {
    const bytes = this.#bytes;
    this.#events = [];
    this.#bytes = 0;
    return bytes;
  }

  release(): void {
    this.#retained.release(this);
  }
}
