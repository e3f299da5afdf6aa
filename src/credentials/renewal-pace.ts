// How often a credential that is refused is asked for again: the wait grows, so that neither the program that gives it
// nor the service behind is asked for every call that fails. Pure: the time is passed in.

import { backoffCeiling } from "../runtime/backoff.js";

/** A token that is being replaced elsewhere is there in a moment; one that is wrong needs a person. */
const WAITS = { baseMs: 1_000, maxMs: 5 * 60_000 };

export class RenewalPace {
  #refusals = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  mayRenew(nowMs: number): boolean {
    return nowMs >= this.#notBeforeMs;
  }

  /** It was fetched, and is still refused. Those who are refused within one wait count once. */
  refused(nowMs: number): void {
    if (!this.mayRenew(nowMs)) return;
    this.#notBeforeMs = nowMs + backoffCeiling(this.#refusals, WAITS);
    this.#refusals++;
  }

  accepted(): void {
    this.#refusals = 0;
    this.#notBeforeMs = Number.NEGATIVE_INFINITY;
  }

  /** Nothing was refused since it was last accepted. */
  get isUnburdened(): boolean {
    return this.#refusals === 0;
  }
}
