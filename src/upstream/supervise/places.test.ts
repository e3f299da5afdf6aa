// Who gets a place, and who gives way, in histories that a seed brings back.

import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type Random, seeded } from "../../../test/faults/random.js";
import { GIVES_WAY_MS, makeRoom, type SessionPlace } from "./places.js";

const SEEDS = histories(5_000);
const STEPS = 200;
const PEOPLE = ["ada", "bob", "eve", "joe"];

/** `expect` is too slow to be asked a million times. */
function must(holds: boolean, what: string, seed: number): void {
  if (!holds) throw new Error(`seed ${seed}: ${what}`);
}

interface Place extends SessionPlace {
  principal: string;
  isAlive: boolean;
  inFlight: number;
  usedMs: number;
}

const place = (principal: string, more: Partial<Place> = {}): Place => ({
  principal,
  isAlive: true,
  inFlight: 0,
  usedMs: 0,
  ...more,
});

describe("a session that wants a connection of its own", () => {
  const CAPACITY = 8;
  const full = (more: Partial<Place> = {}) => Array.from({ length: 6 }, () => place("ada", more));

  it("is refused where its principal holds three quarters, and others are not [bounded]", () => {
    expect(makeRoom(full(), "ada", CAPACITY, 1)).toBeUndefined();
    expect(makeRoom(full(), "bob", CAPACITY, 1)).toEqual([]);
  });

  it("takes the place of what is not alive, however many sessions were never closed [bounded]", () => {
    expect(makeRoom(full({ isAlive: false }), "ada", CAPACITY, 1)).toEqual([]);
    const many = Array.from({ length: CAPACITY }, () => place("ada", { isAlive: false }));
    expect(makeRoom(many, "ada", CAPACITY, 1)).toEqual(many);
    expect(makeRoom(full({ isAlive: false, inFlight: 1 }), "ada", CAPACITY, 1)).toBeUndefined();
  });

  it("takes the place of the one that was unused the longest, once that is ten minutes [bounded]", () => {
    const [old, older] = [place("ada", { usedMs: 200 }), place("ada", { usedMs: 100 })];
    const all = [old, older, ...full({ usedMs: 600_000 }).slice(2)];
    expect(makeRoom(all, "ada", CAPACITY, 600_099)).toBeUndefined();
    expect(makeRoom(all, "ada", CAPACITY, 600_100)).toEqual([older]);
    older.inFlight = 1;
    expect(makeRoom(all, "ada", CAPACITY, 600_199)).toBeUndefined();
  });

  it("takes its own principal's before another's", () => {
    const all = [...full().slice(1), place("bob", { usedMs: 10 }), place("eve"), place("joe")];
    expect(makeRoom(all, "bob", CAPACITY, GIVES_WAY_MS + 10)?.map(({ principal }) => principal)).toEqual(["bob"]);
  });

  it("never has more beside it than there may be, and ends nothing that is in use [bounded]", () => {
    for (let seed = 1; seed <= SEEDS; seed++) liveThrough(seed);
  });
});

function liveThrough(seed: number): void {
  const random = seeded(seed);
  const capacity = 1 + random.int(12);
  let nowMs = 0;
  let all: Place[] = [];
  for (let step = 0; step < STEPS; step++) {
    nowMs += random.int(GIVES_WAY_MS / 4);
    const one = all.length === 0 ? undefined : random.pick(all);
    const what = random.int(5);
    if (one === undefined || what < 2) all = wanted(all, random, capacity, nowMs);
    else if (what === 2 && one.isAlive) Object.assign(one, { inFlight: one.inFlight + 1, usedMs: nowMs });
    else if (what === 3 && one.inFlight > 0) Object.assign(one, { inFlight: one.inFlight - 1, usedMs: nowMs });
    else if (one.inFlight === 0) one.isAlive = false;
    must(all.filter(({ isAlive }) => isAlive).length <= capacity, "too many are alive", seed);
    must(all.length <= capacity + 1, "too many are remembered", seed);
  }
}

/** The places after one more was wanted. */
function wanted(all: Place[], random: Random, capacity: number, nowMs: number): Place[] {
  const { seed } = random;
  const principal = random.pick(PEOPLE);
  const ends = makeRoom(all, principal, capacity, nowMs);
  const live = all.filter(({ isAlive, inFlight }) => isAlive || inFlight > 0);
  const isIdle = ({ inFlight, usedMs }: Place) => inFlight === 0 && nowMs - usedMs >= GIVES_WAY_MS;
  if (ends === undefined) {
    const holds = live.some((one) => one.principal === principal);
    must(holds || (live.length >= capacity && !live.some(isIdle)), "a newcomer was refused without need", seed);
    must(!live.some((one) => one.principal === principal && isIdle(one)), "its own idle one did not give way", seed);
    return all;
  }
  must(
    ends.every((one) => !one.isAlive || isIdle(one)),
    "one was ended that is in use",
    seed,
  );
  return [...all.filter((one) => !ends.includes(one)), place(principal, { usedMs: nowMs })];
}
