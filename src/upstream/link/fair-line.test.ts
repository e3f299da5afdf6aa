// Who gets a place and who is next, in histories that a seed brings back.

import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { seeded } from "../../../test/faults/random.js";
import { FairLine } from "./fair-line.js";

const SEEDS = histories(5_000);
const STEPS = 200;
const PEOPLE = ["ada", "bob", "eve", "joe"];

/** `expect` is too slow to be asked a million times. */
function must(holds: boolean, what: string, seed: number): void {
  if (!holds) throw new Error(`seed ${seed}: ${what}`);
}

function taken(line: FairLine<unknown>, name: string): number {
  let count = 0;
  while (line.enter(name)) count++;
  return count;
}

/** How many one principal gets that is alone. */
function alone(capacity: number): number {
  return taken(new FairLine(capacity), "ada");
}

describe("places", () => {
  it("are given to one principal up to three quarters, and the rest is there for others [bounded]", () => {
    expect([256, 200, 20, 8, 4].map(alone)).toEqual([192, 150, 15, 6, 3]);
    // With very few of them, somebody has to get the first.
    expect([3, 2, 1].map(alone)).toEqual([2, 1, 1]);
    const line = new FairLine(256);
    expect(PEOPLE.map((name) => taken(line, name))).toEqual([192, 48, 12, 3]);
  });

  it("are never more than there are, and a newcomer gets one while any is free [bounded]", () => {
    for (let seed = 1; seed <= SEEDS; seed++) shareThrough(seed);
  });
});

interface Waiting {
  readonly name: string;
  readonly number: number;
}

function shareThrough(seed: number): void {
  const random = seeded(seed);
  const capacity = 1 + random.int(40);
  const most = Math.max(1, Math.floor((capacity * 3) / 4));
  const line = new FairLine<Waiting>(capacity);
  const held: string[] = [];
  let waiting: Waiting[] = [];
  const own = (name: string) => held.filter((one) => one === name).length;
  for (let number = 0; number < STEPS; number++) {
    const name = random.pick(PEOPLE);
    const what = random.int(10);
    if (what < 5) {
      const { free } = line;
      if (line.enter(name)) held.push(name);
      else {
        const isNew = own(name) === 0 && !waiting.some((one) => one.name === name);
        must(!isNew || free === 0, "a newcomer was refused though there was room", seed);
        waiting.push({ name, number });
        line.wait(name, number, { name, number });
      }
    } else if (what < 9 && held.length > 0) {
      const [gone] = held.splice(random.int(held.length), 1);
      line.leave(gone as string);
      for (let next = line.next(); next !== undefined; next = line.next()) {
        const { name: served, number: its } = next;
        const first = waiting.find((one) => one.name === served);
        must(first?.number === its, "one was served before its turn", seed);
        waiting = waiting.filter((one) => one !== first);
        held.push(served);
      }
      const newcomer = waiting.some((one) => own(one.name) === 0);
      must(!newcomer || line.free === 0, "a newcomer waits though there is room", seed);
    } else if (waiting.length > 0) {
      const [gone] = waiting.splice(random.int(waiting.length), 1) as [Waiting];
      must(line.giveUp(gone.name, gone.number), "one that waited was not known", seed);
      must(!line.giveUp(gone.name, gone.number), "one gave up twice", seed);
    }
    must(line.free === capacity - held.length && line.free >= 0, "the count is wrong", seed);
    must(line.waiting === waiting.length, "the count of those that wait is wrong", seed);
    must(
      PEOPLE.every((one) => own(one) <= most),
      "one has more than its part",
      seed,
    );
  }
  must(line.giveUpAll().length === waiting.length && line.waiting === 0, "not all gave up", seed);
  for (const name of held) line.leave(name);
  must(line.free === capacity, "a place was lost", seed);
}
