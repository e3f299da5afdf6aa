// Pieces of a body that wait for their reader, oldest first. A peer that sends its body byte by byte must not cost a
// hundred times its bytes, so where many wait, small ones are put together.

import { KIB } from "../sizes.js";

/** What a piece costs besides its bytes is of no weight from this size on. */
const SMALL_BYTES = 1 * KIB;
/** Small ones are copied into blocks of this size. */
const BLOCK_BYTES = 16 * KIB;
/** Up to so many wait as they came: a reader that is only a little late costs no copying. */
const APART = 16;
/** Places of pieces that are gone; then the list is made anew. */
const MAX_GONE = 1_024;

export class PieceQueue {
  #list: (Buffer | undefined)[] = [];
  #first = 0;
  /** The block that is being filled; the last piece of the list is its beginning. */
  #block: Buffer | undefined;

  get size(): number {
    return this.#list.length - this.#first;
  }

  /** With `mayJoin`, pieces need not stay apart. */
  push(data: Buffer, mayJoin: boolean): void {
    if (!mayJoin || data.length >= SMALL_BYTES || this.size < APART) {
      this.#block = undefined;
      this.#list.push(data);
      return;
    }
    const last = this.#list.length - 1;
    const used = this.#block === undefined ? 0 : (this.#list[last] as Buffer).length;
    if (this.#block !== undefined && used + data.length <= BLOCK_BYTES) {
      data.copy(this.#block, used);
      this.#list[last] = this.#block.subarray(0, used + data.length);
      return;
    }
    this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    data.copy(this.#block);
    this.#list.push(this.#block.subarray(0, data.length));
  }

  shift(): Buffer | undefined {
    if (this.size === 0) return undefined;
    const data = this.#list[this.#first] as Buffer;
    this.#list[this.#first++] = undefined;
    if (this.#first === this.#list.length) this.clear();
    else if (this.#first >= MAX_GONE) {
      this.#list = this.#list.slice(this.#first);
      this.#first = 0;
    }
    return data;
  }

  /** Takes all pieces out, in order. */
  takeAll(): Buffer[] {
    const all = this.#list.slice(this.#first) as Buffer[];
    this.clear();
    return all;
  }

  clear(): void {
    this.#list = [];
    this.#first = 0;
    this.#block = undefined;
  }
}
