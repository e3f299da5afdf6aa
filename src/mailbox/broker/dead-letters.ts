// The messages that failed too often: the last ones of each mailbox, for as long as somebody may look into them.

import type { Batch, OrderedLog } from "../../contracts/store.js";
import { DEAD_LETTER_MS, MAX_DEAD_LETTERS } from "./limits.js";

/** As it is stored: why it is here, since when, and the record that it was. */
interface DeadLetter {
  readonly mailbox: string;
  readonly why: string;
  readonly at: number;
}

export class DeadLetters {
  readonly #log: OrderedLog;
  /** By mailbox, the oldest first: where each is in the store, and since when. */
  readonly #known = new Map<string, { readonly sequence: number; readonly at: number }[]>();

  constructor(log: OrderedLog) {
    this.#log = log;
    for (const [sequence, json] of log.entries()) {
      const { mailbox, at } = JSON.parse(json) as DeadLetter;
      this.#of(mailbox).push({ sequence, at });
    }
  }

  /** Adds one in a batch, and drops what is too many or too old. */
  add(batch: Batch, mailbox: string, record: string, why: string, atMs: number): void {
    const head: DeadLetter = { mailbox, why, at: atMs };
    const sequence = batch.append(this.#log, `${JSON.stringify(head).slice(0, -1)},"record":${record}}`);
    const known = this.#of(mailbox);
    known.push({ sequence, at: atMs });
    for (let [first] = known; first !== undefined; [first] = known) {
      if (known.length <= MAX_DEAD_LETTERS && first.at > atMs - DEAD_LETTER_MS) break;
      known.shift();
      batch.remove(this.#log, first.sequence);
    }
  }

  #of(mailbox: string): { readonly sequence: number; readonly at: number }[] {
    let known = this.#known.get(mailbox);
    if (known === undefined) {
      known = [];
      this.#known.set(mailbox, known);
    }
    return known;
  }
}
