// Requests that came at once, some in each turn of the event loop. Thousands of connections may have something to read in
// one turn; everybody else would wait until all of it was judged and answered. What a request costs is not known by its size:
// 60 kB may be one string, or thousands of values. So it is the time that counts.

import { type Owned, TurnQueue } from "./turn-queue.js";
import { NextTurn } from "./turns.js";

/** Of one turn. The last of its requests may take longer, for some 30 ms where it is a body of the most values that there may be. */
export const TURN_MS = 5;

/** There are no more of them in a turn: each takes Node some time besides. */
export const TURN_REQUESTS = 100;
/** What one of these may take; what takes longer counts for several. */
const SHARE_MS = TURN_MS / TURN_REQUESTS;

/** A request, or what is left to do for it. It is one principal's, and principals take turns. */
export interface RequestTurn extends Owned {
  /** It does not throw. */
  turn(): void;
}

export class RequestTurns {
  readonly #next: NextTurn;
  readonly #now: () => number;
  /** Those that wait have their bodies within the bound of what is held, or of 4 KiB; there is one at most for each connection. */
  readonly #waiting = new TurnQueue<RequestTurn>();
  /** What may still be used before the loop goes on. It is made new only when it was used up: most requests come alone. */
  #left = TURN_REQUESTS;

  constructor(soon: (act: () => void) => void = setImmediate, now: () => number = () => performance.now()) {
    this.#next = new NextTurn(() => this.#turn(), soon);
    this.#now = now;
  }

  /** Does it now, or in one of the next turns. */
  do(one: RequestTurn): void {
    if (this.#left > 0 && this.#waiting.size === 0) {
      this.#spend(one);
      return;
    }
    this.#wait(one);
  }

  /** For a step of long work: resolves in one of the next turns, which ends with that step. */
  step(by: string): Promise<void> {
    return new Promise((resolve) => this.#wait({ by, turn: () => this.#endWith(resolve) }));
  }

  #wait(one: RequestTurn): void {
    this.#waiting.push(one);
    this.#next.ask();
  }

  #turn(): void {
    this.#left = TURN_REQUESTS;
    while (this.#left > 0) {
      const one = this.#waiting.shift();
      if (one === undefined) return;
      this.#spend(one);
    }
    if (this.#waiting.size > 0) this.#next.ask();
  }

  #spend(one: RequestTurn): void {
    const startedMs = this.#now();
    one.turn();
    this.#left -= Math.max(1, (this.#now() - startedMs) / SHARE_MS);
  }

  /** What waits for a promise goes on when this turn is over. */
  #endWith(step: () => void): void {
    this.#left = 0;
    step();
  }
}
