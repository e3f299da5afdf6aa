// Small messages that came at once, some in each turn of the event loop: one read of a connection may bring thousands of them,
// and one turn reads many connections. What is large has turns of its own (turns.ts).

import { KIB } from "../sizes.js";
import { NextTurn, SMALL_WORK_BYTES } from "./turns.js";

/** Of one turn: to read and answer so many takes some 5 ms of a slow machine's time. */
export const TURN_MESSAGES = 128;

/** A small message counts for one more with so many bytes: a turn takes no more than 1 MiB of them. Large ones have theirs counted elsewhere. */
const SHARE_BYTES = 8 * KIB;

export class MessageTurns {
  readonly #next: NextTurn;
  /** What may still be taken before the loop goes on. It is made new only when it was used up: most messages come alone. */
  #left = TURN_MESSAGES;
  /** One at most for each connection; the next in turn is first. */
  readonly #waiting: (() => void)[] = [];

  constructor(soon: (act: () => void) => void = setImmediate) {
    this.#next = new NextTurn(() => this.#turn(), soon);
  }

  /** True: now. False: there is time for it in one of the next turns, see wait(). */
  take(bytes: number): boolean {
    if (this.#left <= 0) return false;
    this.#left -= bytes < SMALL_WORK_BYTES ? 1 + bytes / SHARE_BYTES : 1;
    if (this.#left <= 0) this.#next.ask();
    return true;
  }

  /** Calls back in one of the next turns, in which at least one message may be taken. */
  wait(goOn: () => void): void {
    this.#waiting.push(goOn);
    this.#next.ask();
  }

  #turn(): void {
    this.#left = TURN_MESSAGES;
    while (this.#left > 0) {
      const goOn = this.#waiting.shift();
      if (goOn === undefined) return;
      goOn();
    }
    if (this.#waiting.length > 0) this.#next.ask();
  }
}

/** All connections of a process share its one event loop. */
export const messageTurns = new MessageTurns();
