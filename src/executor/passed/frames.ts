// What two gateways say to each other about one request that an executor at one of them makes for the other, on a stream of its
// own: a head, data, then an end or an error. The stream has the order, the credit and the numbers; this has only the bounds
// between what is said.

import { FrameBytes, frameHead } from "../../sockets/framing.js";

/** Types of frames: heads and errors are JSON. */
export const Frame = { head: 1, data: 2, end: 3, error: 4 } as const;

/** Headers and an address fit with room, whatever their bound is: this is for what another gateway got wrong. */
const MAX_JSON_BYTES = 256 * 1024;

/** Of one frame of data: a piece of a stream between gateways is at most as long. */
const MAX_DATA_BYTES = 256 * 1024;

export function jsonFrame(type: number, value: unknown): Buffer {
  const text = Buffer.from(JSON.stringify(value));
  return Buffer.concat([frameHead(type, text.length), text]);
}

/** Data as frames, none of them longer than another gateway takes. */
export function* dataFrames(data: Buffer): Generator<Buffer> {
  for (let at = 0; at < data.length; at += MAX_DATA_BYTES) {
    const piece = data.subarray(at, at + MAX_DATA_BYTES);
    yield frameHead(Frame.data, piece.length);
    yield piece;
  }
}

export function endFrame(): Buffer {
  return frameHead(Frame.end, 0);
}

export interface FrameEvents {
  onJson(type: number, value: unknown): void;
  onData(piece: Buffer): void;
  onEnd(): void;
}

/** Reads frames from whatever pieces come. Data is told as it comes; what is told while paused waits. */
export class FrameReader {
  readonly #events: FrameEvents;
  readonly #bytes = new FrameBytes();
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
    this.#read();
  }

  /** Throws where what came is no frame. */
  push(bytes: Buffer): void {
    this.#bytes.push(bytes);
    this.#read();
  }

  #read(): void {
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
      const piece = this.#bytes.takeSome(this.#dataLeft);
      if (piece === undefined) return false;
      this.#dataLeft -= piece.length;
      this.#events.onData(piece);
      return true;
    }
    const head = this.#bytes.head();
    if (head === undefined) return false;
    const { type, length } = head;
    if (type === Frame.data && length <= MAX_DATA_BYTES) {
      this.#bytes.takeHead();
      this.#dataLeft = length;
      return true;
    }
    if (type === Frame.end && length === 0) {
      this.#bytes.takeHead();
      this.#events.onEnd();
      return true;
    }
    if ((type !== Frame.head && type !== Frame.error) || length > MAX_JSON_BYTES) {
      throw new Error("Another gateway sent what is no part of a request.");
    }
    const text = this.#bytes.takeFrame(length);
    if (text === undefined) return false;
    this.#events.onJson(type, JSON.parse(text.toString()));
    return true;
  }
}
