// The answers of one endpoint that wait in memory for their readers: what they take is counted, and while there is no
// room for all, a reader that stands still is cut.

import type { ServerResponse } from "node:http";
import type { HeldBytes, Holder } from "../../runtime/memory/held-bytes.js";
import { KIB } from "../../runtime/sizes.js";
import type { EndpointLimits } from "../session/limits.js";

/**
 * What waits on one connection is counted from here on: less is not worth an entry, since the connection itself takes
 * more, and the number of connections bounds it.
 */
const WAITING_BYTES = 4 * KIB;
/**
 * What waits for the reader of an event stream is counted at once from here on, and what is less when it is still there
 * at the next look: Node keeps every event until the end of the turn, so that something always waits after a write.
 */
export const AT_ONCE_BYTES = 16 * KIB;
/**
 * An answer that waits behind another of its connection takes Node's objects for it too, and is a string for the most
 * part: of those, V8 has about as many again that it has not freed yet.
 */
const QUEUED_BYTES = 4 * KIB;
const QUEUED_COST = 2;

/** While memory is short, a reader that takes no byte for so long is cut: an honest one takes some every second. */
export const STILL_MS = 10_000;
/** From this share on memory is short, though all has fitted so far: one owner alone can reach it. */
const SHORT_SHARE = 3 / 4;

const READER = Symbol("slow reader");
type WithReader = ServerResponse & { [READER]?: Reader };

interface Reader {
  readonly res: ServerResponse;
  readonly holder: Holder;
  /** How long it may stand still; undefined where the socket's own time is as it was. */
  stillMs: number | undefined;
}

export class SlowReaders {
  readonly held: HeldBytes;
  readonly limits: EndpointLimits;
  /** Those for whom something waits. What is counted for each bounds them. */
  readonly #readers = new Set<Reader>();
  #refusals = 0;
  #isShort = false;

  constructor(held: HeldBytes, limits: EndpointLimits) {
    this.held = held;
    this.limits = limits;
  }

  /** How many are behind. */
  get size(): number {
    return this.#readers.size;
  }

  /** True from the first sweep that finds memory short until one that does not. */
  get isShort(): boolean {
    return this.#isShort;
  }

  /** To be called after a write: counts what waits. False where there is no room for it, and the reader must go. */
  watch(res: ServerResponse, owner: string): boolean {
    const waiting = waitingFor(res);
    const known = (res as WithReader)[READER];
    if (known === undefined && waiting < WAITING_BYTES) return true;
    const reader = known ?? this.#add(res, owner);
    return reader.holder.hold(waiting);
  }

  #add(res: ServerResponse, owner: string): Reader {
    const reader: Reader = { res, holder: this.held.holder(owner), stillMs: undefined };
    (res as WithReader)[READER] = reader;
    this.#readers.add(reader);
    res.once("close", () => {
      this.#readers.delete(reader);
      reader.holder.release();
    });
    return reader;
  }

  /** To be called every few seconds. Node itself sees whether a socket that is written to stands still, and ends it. */
  sweep(): void {
    const { held } = this;
    this.#isShort = held.refusals !== this.#refusals || held.used >= held.limit * SHORT_SHARE;
    this.#refusals = held.refusals;
    for (const reader of this.#readers) {
      const { res, holder } = reader;
      holder.hold(waitingFor(res));
      // One that has caught up may be an event stream, which is silent for as long as it likes.
      const idleMs = res.writableEnded ? this.limits.stallMs : 0;
      const stillMs = holder.bytes === 0 ? idleMs : this.#isShort ? STILL_MS : this.limits.stallMs;
      if (reader.stillMs === stillMs) continue;
      reader.stillMs = stillMs;
      res.setTimeout(stillMs);
    }
  }
}

/**
 * Answers to requests that were sent one behind the other leave in their order: one that is not yet at the socket waits
 * in memory whole, however short it is.
 */
function waitingFor(res: ServerResponse): number {
  const waiting = res.writableLength;
  return waiting > 0 && res.socket === null ? waiting * QUEUED_COST + QUEUED_BYTES : waiting;
}
