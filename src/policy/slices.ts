// A budget that several gateways have together. What all of them were granted stands in one record, by slots of the window;
// each gateway takes a slice of it ahead of need and spends that by itself. This is one gateway's slice, and what it makes of
// the record; the time is passed in, and who writes the record, by comparing, is the driver's.
//
// What holds: what is granted in any window is at most the budget, and a gateway holds at most one slice at a time. A call is
// made after its grant, so in any window there are at most the budget and one slice of each gateway, which it held at the
// window's beginning. What is granted and not known to be (an answer that was lost, a gateway that was killed) counts as
// spent until its slot has left the window.

import type { CallBudget } from "../contracts/settings.js";
import { slotMsOf } from "./budget.js";

/** What was granted, by slots of the wall clock, the oldest first. */
export interface BudgetGrants {
  readonly v: 1;
  readonly slots: readonly (readonly [slot: number, calls: number])[];
}

/** A slot counts for one more than the window touches: the clocks of gateways may differ by that. */
const SPARE_SLOTS = 2;
/** All slices together are at most this part of the budget: that much more may be let through, and no more is idle at one gateway. */
const SLICES = 16;
/** Near its end a budget is granted in smaller pieces: what is left at one gateway would be missed at another. */
const LEFT_SLICES = 4;
/** More would save nothing: at ten thousand calls a second it is ten writes. */
const MAX_SLICE = 1_000;

/** What a slice is at most, with so many gateways. One, where a budget is too small for them: then each call asks. */
export function largestSlice(calls: number, gateways: number): number {
  return Math.max(1, Math.min(MAX_SLICE, Math.floor(calls / (SLICES * Math.max(1, gateways)))));
}

export interface SlicePlan {
  readonly record: BudgetGrants;
  readonly slot: number;
  readonly granted: number;
  /** What of ours the record counted, and was given back with it. */
  readonly kept: number;
  /** What we could have spent when it was made. */
  readonly rest: number;
}

export interface PlanFacts {
  /** As it is read; undefined where there is none. */
  readonly record: BudgetGrants | undefined;
  readonly gateways: number;
  /** Calls that wait for it. */
  readonly waiting: number;
  readonly wallMs: number;
}

export class Slice {
  readonly windowMs: number;
  calls: number;
  readonly #slotMs: number;
  /** Slots for which a grant counts, its own included. */
  readonly #length: number;
  /** Calls that may be made without asking. */
  #rest = 0;
  /** The slot that they were granted in, and what we were granted there in all. */
  #slot = 0;
  #granted = 0;
  /** How many they were at first, after the last grant. */
  #size = 0;

  constructor({ calls, windowMs }: CallBudget) {
    this.calls = calls;
    this.windowMs = windowMs;
    this.#slotMs = slotMsOf(windowMs);
    this.#length = Math.ceil(windowMs / this.#slotMs) + SPARE_SLOTS;
  }

  /** What may be spent now. A slice that has left its window is nobody's any more. */
  rest(wallMs: number): number {
    if (this.#rest > 0 && this.#slotOf(wallMs) >= this.#slot + this.#length) this.#rest = 0;
    return Math.min(this.#rest, this.calls);
  }

  spend(): void {
    this.#rest--;
  }

  /** Takes back a call of then. One of an older slice stays spent: its slot is not ours to change any more. */
  refund(thenWallMs: number): void {
    if (this.#slotOf(thenWallMs) < this.#slot || this.#rest >= Math.min(this.#granted, this.#size)) return;
    this.#rest++;
  }

  /** Whether the next slice is to be taken before this one is spent. Slices of one are taken by the calls that need them. */
  isLow(): boolean {
    return this.#size > 1 && this.#rest <= this.#size / 2;
  }

  /** Nothing of it is left, and what it was is not given back: nobody knows what became of the record. */
  forfeit(): void {
    this.#rest = 0;
    this.#granted = 0;
  }

  /** How many were granted in the window of now, our own slice among them. */
  spent(record: BudgetGrants | undefined, wallMs: number): number {
    return sum(this.#live(record, this.#current(record, wallMs)));
  }

  /** Until the slots that stand in the way of one more call are over. */
  resetsInMs(record: BudgetGrants | undefined, wallMs: number): number {
    const live = this.#live(record, this.#current(record, wallMs));
    let tooMany = sum(live) - this.calls + 1;
    for (const [slot, granted] of live) {
      tooMany -= granted;
      if (tooMany <= 0) return Math.max(1, Math.ceil((slot + this.#length) * this.#slotMs - wallMs));
    }
    // A budget of none is never free.
    return this.windowMs;
  }

  /** Exchanges what is left of the slice for a new one, dated now. Undefined where nothing more can be had. */
  exchange({ record, gateways, waiting, wallMs }: PlanFacts): SlicePlan | undefined {
    const slot = this.#current(record, wallMs);
    const { slots, kept } = this.#withoutOwn(this.#live(record, slot), wallMs);
    const free = this.calls - sum(slots);
    const left = Math.max(Math.floor(free / (LEFT_SLICES * Math.max(1, gateways))), waiting, kept, 1);
    const granted = Math.min(free, left, largestSlice(this.calls, gateways));
    if (granted <= kept) return undefined;
    return { record: { v: 1, slots: withCalls(slots, slot, granted) }, slot, granted, kept, rest: this.#rest };
  }

  /** The record without what is left of it, for others to take; to be forfeited then. Undefined where nothing is left. */
  giveBack(record: BudgetGrants | undefined, wallMs: number): BudgetGrants | undefined {
    const live = this.#live(record, this.#current(record, wallMs));
    const { slots, kept } = this.#withoutOwn(live, wallMs);
    return kept === 0 ? undefined : { v: 1, slots };
  }

  /** A plan was written; `rest` may have been spent from meanwhile. */
  taken({ slot, granted, kept, rest }: SlicePlan): void {
    const spentMeanwhile = rest - this.#rest;
    this.#granted = slot === this.#slot ? this.#granted - kept + granted : granted;
    this.#slot = slot;
    this.#size = granted;
    this.#rest = Math.min(granted, Math.max(0, granted - spentMeanwhile));
  }

  #slotOf(wallMs: number): number {
    return Math.floor(wallMs / this.#slotMs);
  }

  /** A clock that is behind another's frees nothing. One that is ahead by more than a window is wrong: what it dated is left out. */
  #current(record: BudgetGrants | undefined, wallMs: number): number {
    const own = this.#slotOf(wallMs);
    const newest = record?.slots.at(-1)?.[0] ?? own;
    return newest > own + this.#length ? own : Math.max(own, newest);
  }

  /** What counts in the window that ends with `slot`. */
  #live(record: BudgetGrants | undefined, slot: number): readonly (readonly [slot: number, calls: number])[] {
    return record?.slots.filter(([at, calls]) => at > slot - this.#length && at <= slot && calls > 0) ?? [];
  }

  #withoutOwn(live: readonly (readonly [slot: number, calls: number])[], wallMs: number) {
    const rest = this.rest(wallMs);
    const counted = live.find(([slot]) => slot === this.#slot)?.[1] ?? 0;
    // What is no longer counted there was not ours to keep.
    const kept = Math.min(rest, counted);
    const slots = live.map(([slot, calls]) => [slot, slot === this.#slot ? calls - kept : calls] as const);
    return { slots: slots.filter(([, calls]) => calls > 0), kept };
  }
}

function withCalls(slots: readonly (readonly [number, number])[], slot: number, calls: number) {
  const has = slots.some(([at]) => at === slot);
  if (has) return slots.map(([at, n]) => [at, at === slot ? n + calls : n] as const);
  return [...slots, [slot, calls] as const];
}

function sum(slots: readonly (readonly [slot: number, calls: number])[]): number {
  return slots.reduce((total, [, calls]) => total + calls, 0);
}
