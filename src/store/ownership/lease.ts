// Who acts for a partition: one holder's view of one lease, as a state machine without I/O and clock. It is taken and
// renewed by compare-and-set. A lease ends when its record has not moved for its whole length by the observer's own
// clock, and its holder stops acting some time before, by its own: no clock is compared with another.

import type { Versioned } from "../../contracts/store.js";

/** As it is kept. A record that is not understood is left alone by whoever meets it. */
export interface LeaseRecord {
  /** Another with each start of a gateway; empty where it was given back. */
  readonly holder: string;
  /** Rises with each write of a holder, so that it knows its own where an answer was lost. */
  readonly beat: number;
}

/** Of the length: a holder renews at a third, and stops acting at 0.7 of it since its last renewal was sent. */
const RENEW_AT = 1 / 3;
const ACT_UNTIL = 0.7;

export type LeaseStep =
  /** Nothing to do before then, unless the record changes or an answer comes. */
  | { readonly kind: "wait"; readonly untilMs: number }
  /** To be written on this revision; undefined: the record is to be created. Its end is told by `answered`. */
  | { readonly kind: "write"; readonly record: LeaseRecord; readonly revision: number | undefined };

interface Attempt {
  readonly beat: number;
  readonly sentMs: number;
}

export class Lease {
  readonly #own: string;
  readonly #lengthMs: number;
  #current: Versioned<LeaseRecord> | undefined;
  /** When the record was first seen as it is now. */
  #movedMs: number;
  #beat = 0;
  /** The write that is on its way, or whose end is not known. */
  #attempt: Attempt | undefined;
  #isWaiting = false;
  /** When the last write that is known to have happened was sent. Undefined where the lease is not ours. */
  #sentMs: number | undefined;

  constructor(own: string, lengthMs: number, nowMs: number) {
    this.#own = own;
    this.#lengthMs = lengthMs;
    this.#movedMs = nowMs;
  }

  /** The one question that counts, to be asked right before each act. */
  mayAct(nowMs: number): boolean {
    return this.#sentMs !== undefined && nowMs - this.#sentMs < ACT_UNTIL * this.#lengthMs;
  }

  /** The record as it is read now: at the beginning, and whenever it has changed. */
  observed(current: Versioned<LeaseRecord> | undefined, nowMs: number): void {
    if (current?.revision === this.#current?.revision) return;
    // What is read may be older than what we were told of our own write.
    if (current !== undefined && current.revision < (this.#current?.revision ?? 0)) return;
    this.#current = current;
    this.#movedMs = nowMs;
    this.#recognise();
  }

  next(nowMs: number): LeaseStep {
    if (this.#isWaiting) return { kind: "wait", untilMs: nowMs + this.#lengthMs };
    const dueMs = this.#dueMs();
    if (nowMs < dueMs) return { kind: "wait", untilMs: dueMs };
    this.#isWaiting = true;
    this.#attempt = { beat: ++this.#beat, sentMs: nowMs };
    return { kind: "write", record: { holder: this.#own, beat: this.#beat }, revision: this.#current?.revision };
  }

  /** The write's new revision; `refused` where somebody else was first; `unknown` where nobody can say. */
  answered(outcome: number | "refused" | "unknown", nowMs: number): void {
    this.#isWaiting = false;
    const attempt = this.#attempt;
    if (attempt === undefined || typeof outcome !== "number") {
      // Refused by our own earlier write, whose answer was lost, is not lost: the record that is seen next says whose.
      if (outcome === "refused" && this.#current?.value.holder !== this.#own) this.#sentMs = undefined;
      return;
    }
    if (outcome < (this.#current?.revision ?? 0)) return;
    this.#current = { value: { holder: this.#own, beat: attempt.beat }, revision: outcome };
    this.#movedMs = nowMs;
    this.#recognise();
  }

  /** Gives it back: acts no more from now on. What is to be written so that others need not wait; undefined: nothing. */
  release(): { readonly record: LeaseRecord; readonly revision: number } | undefined {
    const isOurs = this.#sentMs !== undefined;
    this.#sentMs = undefined;
    this.#isWaiting = true;
    if (!isOurs || this.#current === undefined) return undefined;
    return { record: { holder: "", beat: ++this.#beat }, revision: this.#current.revision };
  }

  #recognise(): void {
    const record = this.#current?.value;
    if (record?.holder !== this.#own) this.#sentMs = undefined;
    else if (record.beat === this.#attempt?.beat) this.#sentMs = this.#attempt.sentMs;
  }

  #dueMs(): number {
    const holder = this.#current?.value.holder ?? "";
    if (holder === "") return this.#movedMs;
    // An attempt whose end is unknown is made again at the same pace, not at once.
    const lastMs = Math.max(this.#sentMs ?? 0, this.#attempt?.sentMs ?? 0);
    return holder === this.#own ? lastMs + RENEW_AT * this.#lengthMs : this.#movedMs + this.#lengthMs;
  }
}
