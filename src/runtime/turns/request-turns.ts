// Requests that came at once, some in each turn of the event loop. Thousands of connections may have something to read in
// one turn; everybody else would wait until all of it was judged and answered.

import { type Owned, TurnQueue } from "./turn-queue.js";
import { NextTurn } from "./turns.js";

/** Of one turn: to read and judge a body of 60 kB, or to refuse it, takes a slow machine about 100 µs. */
export const TURN_REQUESTS = 100;

/** A request, or what is left to do for it. It is one principal's, and principals take turns. */
export interface RequestTurn extends Owned {
  /** It does not throw. */
  turn(): void;
}

export class RequestTurns {
  readonly #next: NextTurn;
  /** Those that wait have their bodies within the bound of what is held, or of 4 KiB; there is one at most for each connection. */
  readonly #waiting = new TurnQueue<RequestTurn>();
  /** How many may still be done before the loop goes on. It is made new only when it was used up: most requests come alone. */
  #left = TURN_REQUESTS;

  constructor(soon: (act: () => void) => void = setImmediate) {
    this.#next = new NextTurn(() => this.#turn(), soon);
  }

  /** Does it now, or in one of the next turns. */
  do(one: RequestTurn): void {
    if (this.#left > 0 && this.#waiting.size === 0) {
      this.#left--;
      one.turn();
      return;
    }
    this.#waiting.push(one);
    this.#next.ask();
  }

  #turn(): void {
    this.#left = TURN_REQUESTS;
    while (this.#left > 0 && this.#waiting.size > 0) {
      this.#left--;
      this.#waiting.shift()?.turn();
    }
    if (this.#waiting.size > 0) this.#next.ask();
  }
}
