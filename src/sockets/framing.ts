// Frames on a stream of bytes between two gateways: one byte for what it is, four for its length, and its bytes. A stream that
// loses something ends by itself, so that there is nothing to check but lengths, and those have their bounds where frames are read.
//
//   type 1 | length 4 | bytes

const HEAD_BYTES = 5;

interface FrameHead {
  readonly type: number;
  readonly length: number;
}

/** What stands before the bytes of a frame. */
export function frameHead(type: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head[0] = type;
  head.writeUInt32BE(length, 1);
  return head;
}

/** What has come of such a stream, in whatever pieces, and was not taken yet. */
export class FrameBytes {
  #pieces: Buffer[] = [];
  #length = 0;

  push(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#pieces.push(piece);
    this.#length += piece.length;
  }

  clear(): void {
    this.#pieces = [];
    this.#length = 0;
  }

  /** Of the frame that is next, which is not taken by that; undefined until it is here. */
  head(): FrameHead | undefined {
    if (this.#length < HEAD_BYTES) return undefined;
    const first = this.#first(HEAD_BYTES);
    return { type: first[0] as number, length: first.readUInt32BE(1) };
  }

  takeHead(): void {
    this.#take(HEAD_BYTES);
  }

  /** The bytes of the frame that is next, taken with its head; undefined until all of them are here. */
  takeFrame(length: number): Buffer | undefined {
    if (this.#length < HEAD_BYTES + length) return undefined;
    return this.#take(HEAD_BYTES + length).subarray(HEAD_BYTES);
  }

  /** Of the bytes behind a head that was taken, so many at most, as they came; undefined where none are here. */
  takeSome(most: number): Buffer | undefined {
    const first = this.#pieces[0];
    return first === undefined ? undefined : this.#take(Math.min(most, first.length));
  }

  /** There must be as many. */
  #take(bytes: number): Buffer {
    const first = this.#first(bytes);
    this.#length -= bytes;
    if (first.length === bytes) this.#pieces.shift();
    else this.#pieces[0] = first.subarray(bytes);
    return first.subarray(0, bytes);
  }

  /** The first piece, which has at least so many bytes: what is here is joined where it has not. */
  #first(bytes: number): Buffer {
    const [first = NOTHING] = this.#pieces;
    if (first.length >= bytes) return first;
    const joined = Buffer.concat(this.#pieces, this.#length);
    this.#pieces = [joined];
    return joined;
  }
}

const NOTHING = Buffer.alloc(0);
