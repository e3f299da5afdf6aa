// When which mailbox is looked at next, with one timer for all of them. What is done at a look is the broker's to decide.

import { Heap } from "../../runtime/containers/heap.js";
import type { ElapsedClock } from "../elapsed-clock.js";
import { LONGEST_WAIT_MS } from "./limits.js";
import type { Mailbox } from "./mailbox.js";

export class DueMailboxes {
  readonly #due = new Heap<"dueAt", Mailbox>("dueAt", (a, b) => a.dueMs < b.dueMs);
  readonly #clock: ElapsedClock;
  readonly #look: (mailbox: Mailbox) => void;
  #timer: NodeJS.Timeout | undefined;
  /** When it goes off. */
  #timerMs = Number.POSITIVE_INFINITY;
  #isClosed: boolean = false;

  /** `look` sets when the mailbox is due again, or takes it out. */
  constructor(clock: ElapsedClock, look: (mailbox: Mailbox) => void) {
    this.#clock = clock;
    this.#look = look;
  }

  /** Its place among the others; the timer is set by `setTimer`. */
  set(mailbox: Mailbox, dueMs: number): void {
    mailbox.dueMs = dueMs;
    if (mailbox.dueAt < 0) this.#due.push(mailbox);
    else this.#due.moved(mailbox);
  }

  remove(mailbox: Mailbox): void {
    this.#due.remove(mailbox);
  }

  setTimer(nowMs: number): void {
    const due = this.#due.peek()?.dueMs ?? Number.POSITIVE_INFINITY;
    // A timer that is too early finds nothing to do, and sets the next.
    if (due === Number.POSITIVE_INFINITY || this.#isClosed || this.#timerMs <= due) return;
    clearTimeout(this.#timer);
    const waitMs = Math.min(Math.max(due - nowMs, 1), LONGEST_WAIT_MS);
    this.#timerMs = nowMs + waitMs;
    this.#timer = setTimeout(() => this.#onTime(), waitMs).unref();
  }

  #onTime(): void {
    this.#timerMs = Number.POSITIVE_INFINITY;
    const nowMs = this.#clock.now();
    for (let top = this.#due.peek(); top !== undefined && top.dueMs <= nowMs; top = this.#due.peek()) this.#look(top);
    this.setTimer(nowMs);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }
}
