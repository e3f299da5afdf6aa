import { expect, it } from "vitest";
import { KeptWrite } from "./lane.js";
import type { WriteFacts } from "./write.js";
import { WriteIndex } from "./write-index.js";

const write = (id: string) => new KeptWrite(1, { id, takenMs: 0 } as WriteFacts, 0);
const ofIds = (random: number) => new WriteIndex(({ facts }) => facts.id, random);

it("writes are found by a text that the index does not hold, as in a map [bounded]", () => {
  const index = ofIds(0.4);
  const known = new Map<string, KeptWrite>();
  for (let n = 0; n < 5_000; n++) {
    const id = `gateway-1.${(n * 7919).toString(36).padStart(8, "a")}`;
    known.set(id, write(id));
    index.add(known.get(id) as KeptWrite);
    if (n % 3 !== 0) continue;
    expect(index.remove(known.get(id) as KeptWrite)).toBe(true);
    expect(index.remove(known.get(id) as KeptWrite)).toBe(false);
    known.delete(id);
  }
  for (const [id, one] of known) expect(index.get(id)).toBe(one);
  expect(index.get("gateway-1.zzzzzzzz")).toBeUndefined();
  expect(new Set(index.all())).toEqual(new Set(known.values()));
});

it("texts whose numbers meet stay apart, and the last of one text counts", () => {
  // What is before the last characters has no part in the number.
  const [a, b, c] = ["x-ABCDEFGHIJKL", "y-ABCDEFGHIJKL", "z-ABCDEFGHIJKL"].map(write) as [
    KeptWrite,
    KeptWrite,
    KeptWrite,
  ];
  const index = ofIds(0.9);
  for (const one of [a, b, c]) index.add(one);
  expect([a, b, c].map(({ facts }) => index.get(facts.id))).toEqual([a, b, c]);
  expect([...index.all()]).toEqual([a, b, c]);
  const again = write(b.facts.id);
  index.add(again);
  expect(index.get(b.facts.id)).toBe(again);
  expect(index.remove(b)).toBe(false);
  expect(index.remove(again)).toBe(true);
  expect(index.remove(a)).toBe(true);
  expect([...index.all()]).toEqual([c]);
});
