// Which calls the page has rows for, and how new ones come among them. It decides only, and knows no browser.

import type { CallsAnswer, KeptCall } from "../../src/contracts/control/calls.js";

/** A person reads no more in a second; how many more there were is said. */
export const ROWS_A_LOOK = 50;
/** More are found by a filter. */
export const MAX_ROWS = 200;
/** So many rows are made in one turn of the page: what a person does meanwhile does not wait for all of them. */
const ROWS_A_TURN = 25;

export interface ShownRows {
  /** Newest first. */
  readonly rows: readonly KeptCall[];
  readonly underWay: CallsAnswer["underWay"];
  /** How many came and had no room. */
  readonly left: number;
}

/** Rows that come at once. */
export interface RowsSlice {
  /** Newest first. */
  readonly rows: readonly KeptCall[];
  readonly underWay: CallsAnswer["underWay"];
  /** What comes after this one is not among the rows. */
  readonly last: number;
  /** How many calls before these have no row. */
  readonly missed: number;
}

/** An answer in slices, oldest first; what is shown first of all comes at once. `before`: the call that it begins after. */
export function slicesOf({ calls, underWay, last }: CallsAnswer, before: number): RowsSlice[] {
  // With a filter nobody knows how many of the others would have fitted.
  const missed = before === 0 || calls.length < ROWS_A_LOOK ? 0 : last - before - calls.length;
  const size = before === 0 ? MAX_ROWS : ROWS_A_TURN;
  const slices: RowsSlice[] = [];
  for (let at = 0; at === 0 || at < calls.length; at += size) {
    const own = calls.slice(at, at + size);
    const isLast = at + size >= calls.length;
    slices.push({
      rows: own.toReversed(),
      underWay,
      last: isLast ? last : (own.at(-1)?.seq ?? last),
      missed: at === 0 ? missed : 0,
    });
  }
  return slices;
}

/** `now` is undefined where nothing is shown yet. */
export function added(now: ShownRows | undefined, { rows, underWay, missed }: RowsSlice): ShownRows {
  return {
    rows: [...rows, ...(now?.rows ?? [])].slice(0, MAX_ROWS),
    underWay,
    left: (now?.left ?? 0) + missed,
  };
}
