// One bound over everything that is kept for clients that may come back: replay buffers and pending messages.

export interface Retainer {
  /** Lets go of all it keeps, and returns how many bytes that were. */
  forget(): number;
}

export class Retained {
  readonly #limit: number;
  #bytes = 0;
  /** They stand in the order of their last write. */
  readonly #retainers = new Set<Retainer>();

  constructor(limit: number) {
    this.#limit = limit;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(retainer: Retainer, bytes: number): void {
    this.#bytes += bytes;
    this.#retainers.delete(retainer);
    this.#retainers.add(retainer);
    while (this.#bytes > this.#limit) {
      const oldest = this.#retainers.values().next().value;
      if (oldest === undefined) return;
      this.#retainers.delete(oldest);
      this.#bytes -= oldest.forget();
    }
  }

  remove(bytes: number): void {
    this.#bytes -= bytes;
  }

  /** The retainer is not needed any more; its bytes are given back. */
  release(retainer: Retainer): void {
    this.#retainers.delete(retainer);
    this.#bytes -= retainer.forget();
  }
}
