// Where the time of one call went, phase by phase. It has no clock, and is used again for another call when its own has
// ended: a call costs no object for it.

import type { CallPhase } from "../contracts/service.js";

const PLACES: Readonly<Record<CallPhase, number>> = {
  own: 0,
  queued: 1,
  starting: 2,
  credential: 3,
  server: 4,
  returning: 5,
};
const PHASES = Object.keys(PLACES) as readonly CallPhase[];
/** When the phase that it is in began. */
const SINCE = 6;

export class CallTimes {
  /** Doubles in one block: as members each of them would be an object of its own. */
  readonly #ms = new Float64Array(SINCE + 1);
  #place = PLACES.own;

  begin(nowMs: number): void {
    this.#ms.fill(0);
    this.#ms[SINCE] = nowMs;
    this.#place = PLACES.own;
  }

  enter(phase: CallPhase, nowMs: number): void {
    const ms = this.#ms;
    ms[this.#place] = (ms[this.#place] as number) + nowMs - (ms[SINCE] as number);
    ms[SINCE] = nowMs;
    this.#place = PLACES[phase];
  }

  /** The one that it is in. */
  get phase(): CallPhase {
    return PHASES[this.#place] as CallPhase;
  }

  /** Without the phase that it is in: whoever reads at the end has entered another before. */
  of(phase: CallPhase): number {
    return this.#ms[PLACES[phase]] as number;
  }
}

/** So many wait to be used again: as many calls as are under way at once in a busy gateway. At 100 bytes each. */
const MAX_FREE = 1_024;

export class CallTimesPool {
  readonly #free: CallTimes[] = [];

  take(nowMs: number): CallTimes {
    const times = this.#free.pop() ?? new CallTimes();
    times.begin(nowMs);
    return times;
  }

  /** Whoever gives one back lets go of it. */
  giveBack(times: CallTimes): void {
    if (this.#free.length < MAX_FREE) this.#free.push(times);
  }
}
