// The bodies of one endpoint that are being read, which of them come too slowly to wait for, and the turns of those that
// have come.

import type { Clock } from "../../runtime/clock.js";
import { IndexedSet, type Placed } from "../../runtime/containers/table.js";
import { KIB } from "../../runtime/sizes.js";
import { RequestTurns } from "../../runtime/turns/request-turns.js";

/** A body is looked at over so long a time. */
const WINDOW_MS = 10_000;
/** It must bring so much of itself in that time: 32 KiB a second, a tenth of what the slowest lines of today carry. */
const WINDOW_BYTES = 10 * 32 * KIB;

/**
 * So many bodies that found no room are read to their end all the same and thrown away, so that a client which writes
 * first and reads then gets its answer. What comes beside them is cut with its answer: each costs some kilobytes for as
 * long as it comes, and where there is no room they come by thousands.
 */
const MAX_DRAINED_BODIES = 256;

/** A body that is being read. */
export interface OpenBody extends Placed {
  readonly size: number;
  /** It has been refused, and what still comes of it is thrown away. */
  isDrained: boolean;
  /** Its connection is gone, and nothing more will come. */
  readonly isGone: boolean;
  /** When the time began over which it is looked at, and its size then; undefined until it is first seen. */
  windowFrom: number | undefined;
  windowSize: number;
  /** It comes too slowly, and is ended. */
  endSlow(bytes: number, ms: number): void;
}

export class OpenBodies {
  readonly turns = new RequestTurns();
  readonly #bodies = new IndexedSet<OpenBody>();
  #drained = 0;

  get size(): number {
    return this.#bodies.size;
  }

  add(body: OpenBody): void {
    this.#bodies.add(body);
  }

  delete(body: OpenBody): void {
    this.#bodies.delete(body);
    if (body.isDrained) this.#drained--;
    body.isDrained = false;
  }

  /** Whether a body that has just been refused is read to its end. */
  drain(body: OpenBody): boolean {
    if (this.#drained >= MAX_DRAINED_BODIES) return false;
    this.#drained++;
    body.isDrained = true;
    return true;
  }

  /** To be called every few seconds: a slow body lives at most so much longer than its time. */
  sweep(nowMs: ReturnType<Clock["now"]>): void {
    for (const body of [...this.#bodies.all()]) {
      if (body.isGone) this.delete(body);
      else if (body.windowFrom === undefined) {
        body.windowFrom = nowMs;
        body.windowSize = body.size;
      } else if (nowMs - body.windowFrom >= WINDOW_MS) {
        const came = body.size - body.windowSize;
        if (came < WINDOW_BYTES) {
          this.delete(body);
          body.endSlow(came, nowMs - body.windowFrom);
        } else {
          body.windowFrom = nowMs;
          body.windowSize = body.size;
        }
      }
    }
  }
}
