// Cuts a stream of bytes into lines, within a bound. It converts nothing to strings and judges no content.

import { type Holder, SMALL_BYTES } from "./memory/held-bytes.js";
import { borrowBlock, giveBack } from "./memory/read-blocks.js";

export interface SplitterEvents {
  /** A line without its end (LF or CRLF), never empty. The receiver may keep it. */
  onLine(line: Buffer): void;
  /** The same in the pieces that it came in, for a long one. Where this is absent, a long line is joined. */
  onPieces?(pieces: Buffer[]): void;
  /**
   * A line has ended that was thrown away, but for its first and last bytes: it is longer than the bound, or, where
   * `hadRoom` is false, there was no room for it.
   */
  onOversize(head: Buffer, tail: Buffer, length: number, hadRoom: boolean): void;
}

/** From here on a line is given in pieces: joining them costs as much as reading them did. */
const PIECED_BYTES = 128 * 1024;

/** What is kept of a line over the bound: enough for `{"jsonrpc":"2.0","id":N,"result"` at either end. */
const OVERSIZE_HEAD_BYTES = 256;
const OVERSIZE_TAIL_BYTES = 128;

/**
 * Pieces of an unfinished line that are smaller than this are gathered in blocks: a child that writes byte by
 * byte would otherwise cost a Buffer object (some 100 bytes) for each byte. Half of what Node reads at once, so
 * that a piece kept as a view is at least half of its chunk.
 */
const SMALL_PIECE_BYTES = 32 * 1024;
/** Most lines that are split between two reads are short: the first block is small. */
const FIRST_BLOCK_BYTES = 4 * 1024;

const LF = 0x0a;
const CR = 0x0d;

/**
 * Retention: a line that came in one chunk is a view into it if it is at least half of it, and is copied
 * otherwise. So what a receiver keeps never pins more than twice its own size, and large lines are not copied.
 */
export class LineSplitter {
  readonly #events: SplitterEvents;
  readonly #maxLineBytes: number;
  /** The unfinished line: whole pieces, then a block that is still being filled. */
  #parts: Buffer[] = [];
  #block: Buffer | undefined;
  #blockUsed = 0;
  #length = 0;
  /** Set while a line over the bound is being thrown away. */
  #oversize: { head: Buffer; tail: Buffer; hadRoom: boolean } | undefined;
  /** What is known of the chunk that is being read: whether it may be kept as it lies. */
  #chunk: "own" | "lent" | "kept" = "own";
  /** Counts the unfinished line. */
  readonly #holder: Holder | undefined;

  constructor(events: SplitterEvents, maxLineBytes: number, holder?: Holder) {
    this.#events = events;
    this.#maxLineBytes = maxLineBytes;
    this.#holder = holder;
  }

  /**
   * A chunk that is read into again, unless this keeps a part of it: `keptLent` says so. At most one part is kept, and a
   * line that it is a part of has nothing else of the chunk; so whoever has written that line may give it back.
   */
  pushLent(chunk: Buffer): number {
    this.#chunk = "lent";
    const lines = this.push(chunk);
    this.keptLent = this.#chunk !== "lent";
    this.#chunk = "own";
    return lines;
  }

  /** Of the last chunk that was lent. */
  keptLent = false;

  /** Returns how many line ends the chunk had, so that the caller can share its time out. */
  push(chunk: Buffer): number {
    let lines = 0;
    let from = 0;
    while (from < chunk.length) {
      // A flood of empty lines must cost a step for each byte, not a call for each.
      if (chunk[from] === LF && this.#length === 0) {
        from++;
        continue;
      }
      const at = chunk.indexOf(LF, from);
      if (at < 0) {
        this.#keep(chunk.subarray(from));
        break;
      }
      lines++;
      if (this.#length === 0 && at - from <= this.#maxLineBytes) this.#emitFrom(chunk, from, at);
      else {
        this.#keep(chunk.subarray(from, at));
        this.#finish();
      }
      from = at + 1;
    }
    return lines;
  }

  /** Nobody reads on: what there is of a line goes. */
  abandon(): void {
    this.#parts = [];
    this.#block = undefined;
    this.#blockUsed = 0;
    this.#length = 0;
    this.#oversize = undefined;
    this.#holder?.release();
  }

  /** The stream has ended: what came after the last line end is a line too. */
  end(): void {
    if (this.#length > 0) this.#finish();
  }

  #emitFrom(chunk: Buffer, start: number, at: number): void {
    const end = chunk[at - 1] === CR && at > start ? at - 1 : at;
    if (end === start) return;
    const line = chunk.subarray(start, end);
    const isView = this.#chunk === "own" && line.length * 2 >= chunk.length;
    this.#events.onLine(isView ? line : Buffer.from(line));
  }

  #keep(piece: Buffer): void {
    if (piece.length === 0) return;
    this.#length += piece.length;
    if (this.#oversize !== undefined) {
      this.#oversize.tail = lastBytes(this.#oversize.tail, piece);
      return;
    }
    const hadRoom = this.#length < SMALL_BYTES || this.#holder === undefined || this.#holder.hold(this.#length);
    if (this.#length > this.#maxLineBytes || !hadRoom) {
      this.#sealBlock();
      this.#parts.push(piece);
      this.#oversize = { head: firstBytes(this.#parts), tail: endOf(this.#parts), hadRoom };
      this.#parts = [];
      this.#holder?.release();
      return;
    }
    if (piece.length >= SMALL_PIECE_BYTES && this.#chunk !== "kept") {
      this.#sealBlock();
      this.#parts.push(piece);
      if (this.#chunk === "lent") this.#chunk = "kept";
      return;
    }
    if (this.#block === undefined || this.#blockUsed + piece.length > this.#block.length) {
      this.#sealBlock();
      this.#block =
        this.#parts.length === 0 ? Buffer.allocUnsafeSlow(Math.max(FIRST_BLOCK_BYTES, piece.length)) : borrowBlock();
    }
    piece.copy(this.#block, this.#blockUsed);
    this.#blockUsed += piece.length;
  }

  /** Ends the block; one that is mostly empty is copied, so that blocks hold at most twice what is in them. */
  #sealBlock(): void {
    if (this.#block === undefined) return;
    const used = this.#block.subarray(0, this.#blockUsed);
    if (used.length * 2 >= this.#block.length) this.#parts.push(used);
    else {
      this.#parts.push(Buffer.from(used));
      giveBack(used);
    }
    this.#block = undefined;
    this.#blockUsed = 0;
  }

  #finish(): void {
    const length = this.#length;
    this.#length = 0;
    if (this.#oversize !== undefined) {
      const { head, tail, hadRoom } = this.#oversize;
      this.#oversize = undefined;
      this.#events.onOversize(head, tail, length, hadRoom);
      return;
    }
    this.#sealBlock();
    const parts = this.#parts;
    this.#parts = [];
    // Whoever keeps the line counts it from here on, in the same turn.
    this.#holder?.release();
    if (length >= PIECED_BYTES && this.#events.onPieces !== undefined) {
      const last = parts.at(-1) as Buffer;
      if (last[last.length - 1] === CR) parts[parts.length - 1] = last.subarray(0, -1);
      this.#events.onPieces(parts);
      return;
    }
    const only = parts.length === 1 ? parts[0] : undefined;
    const whole = only ?? Buffer.concat(parts, length);
    if (only === undefined) for (const part of parts) giveBack(part);
    const line = whole[whole.length - 1] === CR ? whole.subarray(0, -1) : whole;
    if (line.length > 0) this.#events.onLine(line);
  }
}

function firstBytes(parts: readonly Buffer[]): Buffer {
  const head = Buffer.allocUnsafeSlow(OVERSIZE_HEAD_BYTES);
  let used = 0;
  for (const part of parts) {
    if (used === head.length) break;
    used += part.copy(head, used);
  }
  return head.subarray(0, used);
}

function endOf(parts: readonly Buffer[]): Buffer {
  let tail: Buffer = Buffer.alloc(0);
  for (let i = parts.length - 1; i >= 0 && tail.length < OVERSIZE_TAIL_BYTES; i--) {
    tail = Buffer.concat([parts[i]?.subarray(-OVERSIZE_TAIL_BYTES) ?? tail, tail]);
  }
  return Buffer.from(tail.subarray(-OVERSIZE_TAIL_BYTES));
}

function lastBytes(tail: Buffer, piece: Buffer): Buffer {
  if (piece.length >= OVERSIZE_TAIL_BYTES) return Buffer.from(piece.subarray(-OVERSIZE_TAIL_BYTES));
  return Buffer.concat([tail, piece]).subarray(-OVERSIZE_TAIL_BYTES);
}
