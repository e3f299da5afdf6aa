// What is kept for clients that may come back: messages for an agent that has no stream open, and the events of a stream that
// broke. One bound over all of it is the first to give way where the gateway's memory for bodies and replies is short.

import type { HeldBytes } from "../../../runtime/memory/held-bytes.js";

export interface Retainer {
  /** Whose memory it takes. */
  readonly owner: string;
  /** Lets go of all it keeps, and returns how many bytes that were. */
  forget(): number;
}

export class Retained {
  readonly #limit: number;
  readonly #held: HeldBytes;
  #bytes = 0;
  /** They stand in the order of their last write. */
  readonly #retainers = new Set<Retainer>();

  constructor(limit: number, held: HeldBytes) {
    this.#limit = limit;
    this.#held = held;
    held.onShortage((bytes) => this.#spare(bytes));
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** The retainer keeps so many bytes more. Where there is no room for them, it is made to forget all. */
  add(retainer: Retainer, bytes: number): void {
    // It is not among those that make room for it.
    this.#retainers.delete(retainer);
    if (this.#makeRoom(retainer.owner, bytes)) {
      this.#bytes += bytes;
      this.#retainers.add(retainer);
    } else this.remove(retainer, retainer.forget() - bytes);
  }

  remove({ owner }: Retainer, bytes: number): void {
    this.#bytes -= bytes;
    this.#held.giveBack(owner, bytes);
  }

  /** The retainer is not needed any more; its bytes are given back. */
  release(retainer: Retainer): void {
    this.#retainers.delete(retainer);
    this.remove(retainer, retainer.forget());
  }

  #makeRoom(owner: string, bytes: number): boolean {
    while (this.#bytes + bytes > this.#limit) if (!this.#dropOldest()) return false;
    while (!this.#held.take(owner, bytes)) if (!this.#dropOldest(owner)) return false;
    return true;
  }

  #spare(bytes: number): void {
    const enough = this.#bytes - bytes;
    while (this.#bytes > enough && this.#dropOldest());
  }

  /** The one that was not written to for the longest time, of all or of one owner; false where there is none. */
  #dropOldest(owner?: string): boolean {
    for (const retainer of this.#retainers) {
      if (owner !== undefined && retainer.owner !== owner) continue;
      this.release(retainer);
      return true;
    }
    return false;
  }
}

/** Said twice, these mean no more than once. */
const COALESCED = /^[^{]*\{[^{}]*"method"\s*:\s*"notifications\/(?:[a-z]+\/list_changed|resources\/updated)"/;
/** Such notifications are short; longer texts are not searched. */
const MAX_COALESCED_LENGTH = 2048;

/** What an agent should be told while it has no stream open: a few messages. The oldest are dropped first. */
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

export interface Kept {
  readonly seq: number;
  readonly event: string | Buffer;
  readonly bytes: number;
}

/** The events of one stream that a client may ask for again: bounded by count and bytes, oldest out first. */
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
