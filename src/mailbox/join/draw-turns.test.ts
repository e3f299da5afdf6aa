import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type Ask, Draw, DrawTurns, PIECE_BYTES } from "./draw-turns.js";

const asks = (turns: DrawTurns, nowMs = 0): Ask[] => {
  const all: Ask[] = [];
  for (let ask = turns.next(nowMs); ask !== undefined; ask = turns.next(nowMs)) all.push(ask);
  return all;
};

describe("large replies that are drawn over one line", () => {
  it("have four pieces under way in all, and take turns", () => {
    const turns = new DrawTurns();
    turns.add(new Draw("a", 10 * PIECE_BYTES));
    turns.add(new Draw("b", 10 * PIECE_BYTES));
    expect(asks(turns).map(({ draw, offset }) => [draw.id, offset / PIECE_BYTES])).toEqual([
      ["a", 0],
      ["b", 0],
      ["a", 1],
      ["b", 1],
    ]);
  });

  it("are not asked for while their reader has enough", () => {
    const turns = new DrawTurns();
    const draw = new Draw("a", 10 * PIECE_BYTES);
    turns.add(draw);
    draw.isPaused = true;
    expect(asks(turns)).toEqual([]);
    draw.isPaused = false;
    expect(asks(turns)).toHaveLength(4);
  });

  it("go on at their offset on the next line", () => {
    const turns = new DrawTurns();
    const draw = new Draw("a", 3 * PIECE_BYTES);
    turns.add(draw);
    asks(turns);
    expect(turns.got(draw, 0, PIECE_BYTES, 1)).toBe(true);
    turns.lost();
    expect(asks(turns).map(({ offset }) => offset)).toEqual([PIECE_BYTES, 2 * PIECE_BYTES]);
  });

  it("ask again for what was dropped, and take no piece twice nor out of its place", () => {
    const turns = new DrawTurns();
    const draw = new Draw("a", 3 * PIECE_BYTES);
    turns.add(draw);
    asks(turns, 0);
    expect(turns.got(draw, PIECE_BYTES, PIECE_BYTES, 1)).toBe(false);
    turns.expire(4_999);
    expect(asks(turns, 4_999)).toEqual([]);
    turns.expire(5_000);
    expect(asks(turns, 5_000).map(({ offset }) => offset)).toEqual([0, PIECE_BYTES, 2 * PIECE_BYTES]);
    expect(turns.got(draw, 0, PIECE_BYTES, 6_000)).toBe(true);
    expect(turns.got(draw, 0, PIECE_BYTES, 6_000)).toBe(false);
  });

  it("are given up after a minute in which nothing came, however often they were asked for [bounded]", () => {
    const turns = new DrawTurns();
    const draw = new Draw("d", 3 * PIECE_BYTES);
    turns.add(draw);
    let now = 0;
    const silence = (tries: number) => {
      const silent: Draw[] = [];
      for (let n = 0; n < tries; n++) {
        asks(turns, now);
        now += 5_000;
        silent.push(...turns.expire(now));
      }
      return silent;
    };
    expect(silence(11)).toEqual([]);
    asks(turns, now);
    expect(turns.got(draw, 0, PIECE_BYTES, now)).toBe(true);
    // Where something came, it begins anew.
    expect(silence(11)).toEqual([]);
    expect(silence(1)).toEqual([draw]);
  });

  it("come whole and in order, whatever is lost on the way, and however lines end", () => {
    for (let seed = 1; seed <= histories(1_000); seed++) {
      let state = seed;
      const random = () => {
        state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
        return state / 0x80000000;
      };
      const turns = new DrawTurns();
      const draws = [1, 2, 3].map((n) => new Draw(`d${n}`, 1 + Math.floor(random() * 5 * PIECE_BYTES)));
      for (const draw of draws) turns.add(draw);
      let wire: Ask[] = [];
      let now = 0;
      for (let step = 0; step < 5_000 && turns.size > 0; step++) {
        now += random() * 2_000;
        turns.expire(now);
        wire.push(...asks(turns, now));
        if (turns.underWay > 4) throw new Error(`seed ${seed}: ${turns.underWay} under way`);
        const [first, ...rest] = wire;
        wire = rest;
        const luck = random();
        if (luck < 0.05) {
          turns.lost();
          wire = [];
        } else if (first !== undefined && luck > 0.2) {
          const before = first.draw.received;
          if (turns.got(first.draw, first.offset, first.bytes, now) && before !== first.offset) {
            throw new Error(`seed ${seed}: out of order`);
          }
        }
      }
      if (!draws.every((draw) => draw.isWhole)) throw new Error(`seed ${seed}: not whole`);
    }
  });
});
