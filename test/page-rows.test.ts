// Which calls the operator's page has rows for, and how new ones come among them.

import fc from "fast-check";
import { expect, it } from "vitest";
import { added, MAX_ROWS, ROWS_A_LOOK, type ShownRows, slicesOf } from "../dashboard/calls/rows.js";
import { heldRows } from "../dashboard/held.js";
import type { CallsAnswer, KeptCall } from "../src/contracts/control/calls.js";

function answerOf(from: number, to: number, last = to): CallsAnswer {
  const calls = Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => ({ seq: from + n }) as KeptCall);
  return { calls, underWay: [], last };
}

function shownBy(answers: readonly (readonly [CallsAnswer, before: number])[]): ShownRows | undefined {
  let shown: ShownRows | undefined;
  for (const [answer, before] of answers) {
    for (const slice of slicesOf(answer, before)) shown = added(shown, slice);
  }
  return shown;
}

it("what is new comes some rows a turn, the newest on top at the end, and what had no room is a number", () => {
  const slices = slicesOf(answerOf(451, 500), 200);
  expect(slices.length).toBeGreaterThan(1);
  expect(Math.max(...slices.map(({ rows }) => rows.length))).toBeLessThanOrEqual(ROWS_A_LOOK / 2);
  // Whoever is held still between two of them asks for the rest again.
  for (const { rows, last } of slices) expect(last).toBe(rows[0]?.seq);
  const shown = shownBy([
    [answerOf(1, 200), 0],
    [answerOf(451, 500), 200],
  ]);
  expect(shown?.rows.length).toBe(MAX_ROWS);
  expect([shown?.rows[0]?.seq, shown?.rows[49]?.seq, shown?.rows[50]?.seq]).toEqual([500, 451, 200]);
  expect(shown?.left).toBe(250);
});

it("each call has a row at most once and in order, however answers are cut short between slices", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(120), fc.nat(3)), { maxLength: 20 }), (steps) => {
      let shown: ShownRows | undefined;
      let [made, known] = [0, 0];
      for (const [more, cut] of steps) {
        made += more;
        const limit = known === 0 ? MAX_ROWS : ROWS_A_LOOK;
        const slices = slicesOf(answerOf(Math.max(known, made - limit) + 1, made), known);
        for (const slice of cut === 0 ? slices : slices.slice(0, cut)) {
          shown = added(shown, slice);
          known = slice.last;
        }
      }
      const seqs = shown?.rows.map(({ seq }) => seq) ?? [];
      expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => b - a));
      expect(seqs.length).toBeLessThanOrEqual(MAX_ROWS);
      // Nothing is lost: what has no row was too many, or is not asked for yet.
      if (seqs.length < MAX_ROWS)
        expect(seqs.length + (shown?.left ?? 0)).toBeGreaterThanOrEqual(Math.min(known, MAX_ROWS));
    }),
  );
});

it("an answer without calls says what is under way, and loses nothing", () => {
  const shown = shownBy([
    [answerOf(1, 3), 0],
    [{ calls: [], underWay: [{} as never], last: 9 }, 3],
  ]);
  expect([shown?.rows.length, shown?.underWay.length, shown?.left]).toEqual([3, 1, 0]);
});

it("rows that are held still keep their places: what is over stays and says so, and what is new comes behind them", () => {
  const keys = fc.uniqueArray(fc.nat(9).map(String), { maxLength: 8 });
  const keyOf = (one: { key: string }) => one.key;
  fc.assert(
    fc.property(keys, fc.array(keys, { maxLength: 4 }), (first, later) => {
      let rows = heldRows(
        [],
        first.map((key) => ({ key, n: 0 })),
        keyOf,
      );
      for (const [n, now] of later.entries()) {
        const before = rows;
        rows = heldRows(
          before,
          now.map((key) => ({ key, n })),
          keyOf,
        );
        expect(rows.slice(0, before.length).map(({ one }) => one.key)).toEqual(before.map(({ one }) => one.key));
        // All that there is has one row, as it is now, and the others are over.
        const shown = rows.filter(({ isOver }) => !isOver).map(({ one }) => one.key);
        expect(shown.length).toBe(now.length);
        expect(new Set(shown)).toEqual(new Set(now));
        for (const { one, isOver } of rows) if (!isOver) expect(one.n).toBe(n);
      }
    }),
  );
});
