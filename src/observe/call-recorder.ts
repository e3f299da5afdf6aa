// Gathers the records of calls that ended, and hands those of a moment on together, off the calls' own turn. What is
// made of them is the sinks' business.

import { type CallRecord, CallRing } from "./call-record.js";

/** Makes something of the records of a moment. */
export interface CallSink {
  /** The record is used again when this returns. */
  take(record: CallRecord): void;
  /** All records of the moment were given; `dropped` calls besides found no room. */
  batchEnded(dropped: number): void;
}

/**
 * Twice what a core can pass on in `GATHER_MS`, so that nothing is dropped while the loop turns; at some 200 bytes each
 * it is half a megabyte.
 */
const RING_SIZE = 2_048;

/**
 * Records are gathered so long. One write for many lines costs far less than one for each, and a person who watches
 * does not see the difference.
 */
const GATHER_MS = 25;

export class CallRecorder {
  #sinks: readonly CallSink[];
  readonly #ring: CallRing;
  readonly #take: (record: CallRecord) => void;
  readonly #timed = () => this.flush();
  #timer: NodeJS.Timeout | undefined;

  constructor(sinks: readonly CallSink[], size: number = RING_SIZE) {
    this.#sinks = sinks;
    this.#ring = new CallRing(size);
    this.#take = (record) => {
      for (const sink of this.#sinks) sink.take(record);
    };
  }

  /** What waits is for those who are there now. */
  setSinks(sinks: readonly CallSink[]): void {
    this.flush();
    this.#sinks = sinks;
  }

  /** A record to be filled at once. Undefined where there is no room: the call is counted as dropped. */
  next(): CallRecord | undefined {
    // One for many calls. It keeps no process alive: close() reads what waits.
    this.#timer ??= setTimeout(this.#timed, GATHER_MS).unref();
    return this.#ring.next();
  }

  /** Hands on what waits, now. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const dropped = this.#ring.takeDropped();
    if (this.#ring.waiting === 0 && dropped === 0) return;
    this.#ring.read(this.#take);
    for (const sink of this.#sinks) sink.batchEnded(dropped);
  }
}
