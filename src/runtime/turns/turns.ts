// Large work of one process, some of it in each turn of the event loop and the rest in the next ones, in the order in which it
// was asked for. Small work never waits: so what is small and urgent, such as the renewal of a lease, comes before all that is large.

import { KIB, MIB } from "../sizes.js";

/** What has fewer bytes is done at once, whatever waits: hundreds of such fit into the time of a turn. */
export const SMALL_WORK_BYTES = 64 * KIB;

/**
 * Of one turn: to read, judge and pass on so much takes some 20 to 40 ms of a slow machine's time. Work whose size is not known
 * before it is done counts for as much.
 */
export const TURN_BYTES = 1 * MIB;

/** Calls back in the next turn of the event loop, once however often it is asked to. */
export class NextTurn {
  readonly #act: () => void;
  readonly #soon: (turn: () => void) => void;
  #isDue = false;

  constructor(act: () => void, soon: (turn: () => void) => void) {
    this.#act = act;
    this.#soon = soon;
  }

  ask(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    this.#soon(this.#turn);
  }

  /** One function for all turns. */
  readonly #turn = (): void => {
    this.#isDue = false;
    this.#act();
  };
}

interface Waiting {
  readonly bytes: number;
  readonly act: () => void;
}

export class Turns {
  readonly #next: NextTurn;
  /** Of this turn. What is larger than a turn has one to itself. */
  #left = TURN_BYTES;
  #waiting: Waiting[] = [];

  constructor(soon: (turn: () => void) => void = setImmediate) {
    this.#next = new NextTurn(() => this.#turn(), soon);
  }

  /** True: now. False: in one of the next turns, when `later` is called. */
  take(bytes: number, later: () => void): boolean {
    if (bytes < SMALL_WORK_BYTES) return true;
    this.#next.ask();
    if (!this.#fits(bytes) || this.#waiting.length > 0) {
      this.#waiting.push({ bytes, act: later });
      return false;
    }
    this.#left -= bytes;
    return true;
  }

  /** Resolves when there is time for it. */
  async wait(bytes: number): Promise<void> {
    await new Promise<void>((resolve) => {
      if (this.take(bytes, resolve)) resolve();
    });
  }

  /** For a step of work whose size is not known before: resolves in one of the next turns, which has no other large work. */
  async turn(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#waiting.push({ bytes: TURN_BYTES, act: resolve });
      this.#next.ask();
    });
  }

  #fits(bytes: number): boolean {
    return bytes <= this.#left || this.#left === TURN_BYTES;
  }

  #turn(): void {
    this.#left = TURN_BYTES;
    let done = 0;
    for (const { bytes, act } of this.#waiting) {
      if (!this.#fits(bytes)) break;
      this.#left -= bytes;
      done++;
      act();
    }
    this.#waiting.splice(0, done);
    if (done > 0) this.#next.ask();
  }
}

/** All large work of a process shares its one event loop. */
export const turns = new Turns();

/** For a step of long work, among all that the process does. */
export const ownTurn = (): Promise<void> => turns.turn();
