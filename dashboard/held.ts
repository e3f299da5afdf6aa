// Rows that hold still while a hand is on them: none moves to where another was, what is over stays in its place and says
// so, and what is new comes behind them. It decides only, and knows no browser.

export interface Held<T> {
  readonly one: T;
  /** It is no more, and has its place until the hand has gone. */
  readonly isOver: boolean;
}

/** `before` is what is shown, `now` what there is. */
export function heldRows<T>(before: readonly Held<T>[], now: readonly T[], keyOf: (one: T) => string): Held<T>[] {
  const left = new Map(now.map((one) => [keyOf(one), one]));
  const rows = before.map((row): Held<T> => {
    const key = keyOf(row.one);
    const one = left.get(key);
    left.delete(key);
    return one === undefined ? { one: row.one, isOver: true } : { one, isOver: false };
  });
  return [...rows, ...[...left.values()].map((one) => ({ one, isOver: false }))];
}
