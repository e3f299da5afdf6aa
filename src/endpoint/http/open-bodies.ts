// The bodies of one endpoint that are being read, and which of them come too slowly to wait for.

import type { Clock } from "../../runtime/clock.js";
import { KIB } from "../../runtime/sizes.js";
import { Bag, type Placed } from "../../runtime/table.js";

/** A body is looked at over so long a time, */
const WINDOW_MS = 10_000;
/** and must bring so much of itself in it: 32 KiB a second, a tenth of what the slowest lines of today carry. */
const WINDOW_BYTES = 10 * 32 * KIB;

/** A body that is being read. */
export interface OpenBody extends Placed {
  readonly size: number;
  /** Its connection is gone, and nothing more will come. */
  readonly isGone: boolean;
  /** When the time began over which it is looked at, and its size then; undefined until it is first seen. */
  windowFrom: number | undefined;
  windowSize: number;
  /** It comes too slowly, and is ended. */
  endSlow(bytes: number, ms: number): void;
}

export class OpenBodies {
  readonly #bodies = new Bag<OpenBody>();

  get size(): number {
    return this.#bodies.size;
  }

  add(body: OpenBody): void {
    this.#bodies.add(body);
  }

  delete(body: OpenBody): void {
    this.#bodies.delete(body);
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
