// Keeps the ages on disk right where the wall clock is set while the program runs. Ages go by the steady clock, which means
// nothing to the next start: that adds what the wall clock went on since a record was written. So what waits is written
// anew once the two clocks have come apart, and a jump is not taken for time that went by.

import type { Clock } from "../runtime/clock.js";
import type { KeptWrite } from "./lanes/lane.js";
import type { LaneQuestions } from "./lanes/lane-questions.js";

/** The clocks may be apart by this much before it is written down: no `maxAgeMs` is as fine, and clocks are set by a second or two all the time. */
const JUMP_MS = 10_000;
/** Records that are written at one time: a few in the memory of what writes them, and few enough commits for a hundred thousand. */
const WRITTEN_AT_ONCE = 256;

interface Waiting {
  readonly lanes: LaneQuestions;
  /** Resolves when what is being written now is on disk, or was refused by it. */
  settled(): Promise<void>;
}

export class WallJumps {
  readonly #clock: Clock;
  readonly #outbox: Waiting;
  readonly #save: (write: KeptWrite) => Promise<void>;
  /** How far the wall clock was before the steady one when the records that wait were right. */
  #aheadMs: number;
  #noting: Promise<void> | undefined;

  constructor(clock: Clock, outbox: Waiting, save: (write: KeptWrite) => Promise<void>) {
    this.#clock = clock;
    this.#outbox = outbox;
    this.#save = save;
    this.#aheadMs = this.#ahead();
  }

  #ahead(): number {
    return this.#clock.wall() - this.#clock.now();
  }

  /** Undefined where there is nothing to note; else it resolves when it is on disk, or the disk refused it. Never rejects. */
  look(): Promise<void> | undefined {
    const aheadMs = this.#ahead();
    if (this.#noting === undefined && Math.abs(aheadMs - this.#aheadMs) >= JUMP_MS) {
      this.#noting = this.#note(aheadMs).finally(() => {
        this.#noting = undefined;
      });
    }
    return this.#noting;
  }

  async #note(aheadMs: number): Promise<void> {
    // The first commit of a write may say the time from before the jump, and nothing is written of one before that.
    await this.#outbox.settled();
    const all = [...this.#outbox.lanes.lanes()].flatMap(({ writes }) => writes);
    try {
      for (let at = 0; at < all.length; at += WRITTEN_AT_ONCE) {
        const some = all.slice(at, at + WRITTEN_AT_ONCE).filter((write) => write.isCommitted && !write.isOver);
        await Promise.all(some.map((write) => this.#save(write)));
      }
      this.#aheadMs = aheadMs;
    } catch {
      // The next look begins anew.
    }
  }
}
