// One bound over everything that is kept for clients that may come back: replay buffers and pending messages. It is
// the first to give way where the gateway's memory for bodies and replies is short.

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
