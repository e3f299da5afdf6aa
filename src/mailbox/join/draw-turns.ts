// Large replies stay with the machine that made them, and are drawn in pieces. Which piece of which reply is asked for
// next, as a state machine without a clock: few at a time on one line, replies take turns, and what is lost is asked for
// again. A reply that nobody reads on is not asked for.

/** Bytes of one piece: with its base64 and wrapping it fits a live frame. */
export const PIECE_BYTES = 64 * 1024;
/** Asked for at one time on a line: 256 KiB are 350 kB as base64, 175 ms at 2 MB/s, and no small call waits longer behind them. */
const MAX_ASKED = 4;
/** A piece that has not come by then was dropped on its way. */
const PATIENCE_MS = 5_000;
/** So often in a row nothing came, which is a minute: whoever has the rest is away, or does not send it. */
const MAX_TRIES = 12;

/** One reply that is being drawn. */
export class Draw {
  readonly id: string;
  readonly bytes: number;
  /** So much of it has come; the next piece begins here. */
  received = 0;
  /** So much of it has been asked for. */
  asked = 0;
  /** Its reader has enough for now. */
  isPaused = false;
  /** When the last piece came, or the first of those under way was asked for. */
  heardMs = 0;
  /** How often in a row what was asked for did not come. */
  tries = 0;

  constructor(id: string, bytes: number) {
    this.id = id;
    this.bytes = bytes;
  }

  get isWhole(): boolean {
    return this.received >= this.bytes;
  }

  get underWay(): number {
    return Math.ceil((this.asked - this.received) / PIECE_BYTES);
  }
}

export interface Ask {
  readonly draw: Draw;
  readonly offset: number;
  readonly bytes: number;
}

export class DrawTurns {
  /** The next in turn comes first. */
  #draws: Draw[] = [];

  get size(): number {
    return this.#draws.length;
  }

  get underWay(): number {
    let count = 0;
    for (const draw of this.#draws) count += draw.underWay;
    return count;
  }

  add(draw: Draw): void {
    this.#draws.push(draw);
  }

  delete(draw: Draw): void {
    this.#draws = this.#draws.filter((one) => one !== draw);
  }

  clear(): void {
    this.#draws = [];
  }

  /** What to ask for now; undefined where enough is under way, or nothing is wanted. */
  next(nowMs: number): Ask | undefined {
    if (this.underWay >= MAX_ASKED) return undefined;
    const at = this.#draws.findIndex((draw) => !draw.isPaused && draw.asked < draw.bytes);
    const draw = this.#draws[at];
    if (draw === undefined) return undefined;
    this.#draws.splice(at, 1);
    this.#draws.push(draw);
    if (draw.underWay === 0) draw.heardMs = nowMs;
    const offset = draw.asked;
    const bytes = Math.min(PIECE_BYTES, draw.bytes - offset);
    draw.asked += bytes;
    return { draw, offset, bytes };
  }

  /** A piece came. False where it is not the next one: another is under way, or one before it was lost. */
  got(draw: Draw, offset: number, bytes: number, nowMs: number): boolean {
    const isNext = offset === draw.received && bytes > 0 && offset + bytes <= draw.bytes && offset < draw.asked;
    if (!isNext) return false;
    draw.heardMs = nowMs;
    draw.tries = 0;
    draw.received += bytes;
    // One that was shorter than it was asked for: what follows is asked for from its end.
    const isShort = draw.received % PIECE_BYTES !== 0 && !draw.isWhole;
    if (isShort || draw.asked < draw.received) draw.asked = draw.received;
    if (draw.isWhole) this.delete(draw);
    return true;
  }

  /** The line was lost: what was under way on it will not come. */
  lost(): void {
    for (const draw of this.#draws) draw.asked = draw.received;
  }

  /** What was waited for too long is asked for again. Those that were asked for often enough, in vain. */
  expire(nowMs: number): Draw[] {
    const silent: Draw[] = [];
    for (const draw of this.#draws) {
      if (draw.underWay === 0 || nowMs - draw.heardMs < PATIENCE_MS) continue;
      draw.asked = draw.received;
      if (++draw.tries >= MAX_TRIES) silent.push(draw);
    }
    return silent;
  }
}
