// Random ids of traces and spans, drawn many at a time: one by one they would cost more than the rest of a span.

import { randomFillSync } from "node:crypto";

const TRACE_ID_BYTES = 16;
const SPAN_ID_BYTES = 8;
/** A few hundred ids for one turn to the system's randomness. */
const POOL_BYTES = 4096;

export class TraceIds {
  readonly #pool = Buffer.alloc(POOL_BYTES);
  #used = POOL_BYTES;

  traceId(): string {
    return this.#draw(TRACE_ID_BYTES);
  }

  spanId(): string {
    return this.#draw(SPAN_ID_BYTES);
  }

  #draw(bytes: number): string {
    for (;;) {
      if (this.#used + bytes > POOL_BYTES) {
        randomFillSync(this.#pool);
        this.#used = 0;
      }
      const from = this.#used;
      this.#used += bytes;
      const id = this.#pool.toString("hex", from, this.#used);
      // All zero means "none".
      if (!/^0+$/.test(id)) return id;
    }
  }
}
