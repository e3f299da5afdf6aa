// How often a credential that is refused, or that cannot be had, is asked for again: the wait grows, so that neither the
// program that gives it nor the service behind is asked for every call that fails. Pure: the time is passed in.

import { backoffCeiling } from "../runtime/backoff.js";

/** A token that is being replaced elsewhere is there in a moment; one that is wrong needs a person. */
const REFUSED_WAITS = { baseMs: 1_000, maxMs: 5 * 60_000 };
/** A source that gives nothing may be mended by a person who then tries at once; to ask it costs little. */
const FAILED_WAITS = { baseMs: 1_000, maxMs: 30_000 };

export class RenewalPace {
  #refusals = 0;
  #notBeforeMs = Number.NEGATIVE_INFINITY;

  mayRenew(nowMs: number): boolean {
    return nowMs >= this.#notBeforeMs;
  }

  /** It was fetched, and is still refused. Those who are refused within one wait count once. */
  refused(nowMs: number): void {
    this.#wait(nowMs, REFUSED_WAITS);
  }

  /** It could not be had. */
  failed(nowMs: number): void {
    this.#wait(nowMs, FAILED_WAITS);
  }

  #wait(nowMs: number, waits: typeof REFUSED_WAITS): void {
    if (!this.mayRenew(nowMs)) return;
    this.#notBeforeMs = nowMs + backoffCeiling(this.#refusals, waits);
    this.#refusals++;
  }

  accepted(): void {
    this.#refusals = 0;
    this.#notBeforeMs = Number.NEGATIVE_INFINITY;
  }

  /** Nothing was refused, and nothing failed, since it was last accepted. */
  get isUnburdened(): boolean {
    return this.#refusals === 0;
  }
}
