// What two gateways say to each other about one request that an executor at one of them makes for the other, on a stream of its
// own: a head, data, then an end or an error. The stream has the order, the credit and the numbers; this has only the bounds
// between what is said.
//
//   type 1 | length 4 | bytes

/** Types of frames: heads and errors are JSON. */
export const Frame = { head: 1, data: 2, end: 3, error: 4 } as const;

const HEAD_BYTES = 5;

/** Headers and an address fit with room, whatever their bound is: this is for what another gateway got wrong. */
const MAX_JSON_BYTES = 256 * 1024;

/** Of one frame of data: a piece of a stream between gateways is at most as long. */
const MAX_DATA_BYTES = 256 * 1024;

export function jsonFrame(type: number, value: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  return Buffer.concat([headOf(type, text.length), text]);
}

/** Data as frames, none of them longer than another gateway takes. */
export function* dataFrames(data: Buffer): Generator<Buffer> {
  for (let at = 0; at < data.length; at += MAX_DATA_BYTES) {
    const piece = data.subarray(at, at + MAX_DATA_BYTES);
    yield headOf(Frame.data, piece.length);
    yield piece;
  }
}

export function endFrame(): Buffer {
  return headOf(Frame.end, 0);
}

function headOf(type: number, length: number): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head[0] = type;
  head.writeUInt32BE(length, 1);
  return head;
}

export interface FrameEvents {
  onJson(type: number, value: unknown): void;
  onData(piece: Buffer): void;
  onEnd(): void;
}

/** Reads frames from whatever pieces come. Data is told as it comes; what is told while paused waits. */
export class FrameReader {
  readonly #events: FrameEvents;
  #rest: Buffer = NOTHING;
  /** Bytes of the frame of data that is being read. */
  #dataLeft = 0;
  #isPaused = false;
  #isReading = false;

  constructor(events: FrameEvents) {
    this.#events = events;
  }

  pause(): void {
    this.#isPaused = true;
  }

  /** Throws as `push` does. */
  resume(): void {
    this.#isPaused = false;
    this.push(NOTHING);
  }

  /** Throws where what came is no frame. */
  push(bytes: Buffer): void {
    this.#rest = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes]);
    if (this.#isReading) return;
    this.#isReading = true;
    try {
      while (!this.#isPaused && this.#next()) {
        // Until more has to come.
      }
    } finally {
      this.#isReading = false;
    }
  }

  #next(): boolean {
    if (this.#dataLeft > 0) {
      const piece = this.#take(Math.min(this.#dataLeft, this.#rest.length));
      if (piece.length === 0) return false;
      this.#dataLeft -= piece.length;
      this.#events.onData(piece);
      return true;
    }
    if (this.#rest.length < HEAD_BYTES) return false;
    const type = this.#rest[0] as number;
    const length = this.#rest.readUInt32BE(1);
    if (type === Frame.data && length <= MAX_DATA_BYTES) {
      this.#take(HEAD_BYTES);
      this.#dataLeft = length;
      return true;
    }
    if (type === Frame.end && length === 0) {
      this.#take(HEAD_BYTES);
      this.#events.onEnd();
      return true;
    }
    if ((type !== Frame.head && type !== Frame.error) || length > MAX_JSON_BYTES) {
      throw new Error("Another gateway sent what is no part of a request.");
    }
    if (this.#rest.length < HEAD_BYTES + length) return false;
    this.#take(HEAD_BYTES);
    this.#events.onJson(type, JSON.parse(this.#take(length).toString()));
    return true;
  }

  #take(length: number): Buffer {
    const taken = this.#rest.subarray(0, length);
    this.#rest = this.#rest.subarray(length);
    return taken;
  }
}

const NOTHING = Buffer.alloc(0);
