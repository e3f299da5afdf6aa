import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { type Random, seeded } from "../../../test/faults/random.js";
import { ListAge, type ListFacts, UNPROMISED_MS, WAIT_MS } from "./age.js";

const facts = (more: Partial<ListFacts> = {}): ListFacts => ({
  isAnnounced: false,
  isPushed: false,
  ttlMs: undefined,
  endedCalls: 0,
  calledLately: false,
  gaps: 0,
  ...more,
});

/** A list that was read at 0, before any call. */
function read(): ListAge {
  const age = new ListAge();
  age.begun(0, 0, 0);
  age.ended(true);
  return age;
}

describe("a list that an agent asks for", () => {
  it("is known until it is older than was promised, and never read more than once a second for that", () => {
    for (const [ttlMs, goodMs] of [
      [0, 1_000],
      [300, 1_000],
      [1_000, 1_000],
      [5_000, 5_000],
      [undefined, 2_000],
    ] as const) {
      expect(read().asked(goodMs - 1, facts({ ttlMs })), String(ttlMs)).toBe("known");
      expect(read().asked(goodMs, facts({ ttlMs })), String(ttlMs)).toBe("read");
    }
  });

  it("is known for ever where changes are announced, unless its server promised less", () => {
    expect(read().asked(1e9, facts({ isAnnounced: true }))).toBe("known");
    expect(read().asked(1e9, facts({ isAnnounced: true, ttlMs: 5_000 }))).toBe("read");
  });

  it("is old as soon as a call has ended, unless its change would have been announced by now", () => {
    expect(read().asked(1, facts({ endedCalls: 1 }))).toBe("read");
    expect(read().asked(1, facts({ endedCalls: 1, isAnnounced: true }))).toBe("known");
    expect(read().asked(1, facts({ endedCalls: 1, isAnnounced: true, calledLately: true }))).toBe("read");
  });

  it("is old once a change was announced, until a reading has begun", () => {
    const age = read();
    age.changed();
    expect(age.asked(1, facts({ isAnnounced: true })), "also where a reading pauses").toBe("read");
    age.begun(1, 0, 0);
    expect(age.asked(2, facts({ isAnnounced: true }))).toBe("wait");
    age.changed();
    expect(age.asked(3, facts({ isAnnounced: true })), "the one under way may be too early").toBe("read");
    age.begun(4, 0, 0);
    age.ended(true);
    expect(age.asked(5, facts({ isAnnounced: true }))).toBe("known");
  });

  it("is old where an announcement may have been lost, until a reading has begun [menu-current]", () => {
    const age = read();
    expect(age.asked(1, facts({ isAnnounced: true, gaps: 1 }))).toBe("read");
    age.begun(1, 0, 1);
    expect(age.asked(2, facts({ isAnnounced: true, gaps: 1 }))).toBe("wait");
    expect(age.asked(3, facts({ isAnnounced: true, gaps: 2 })), "the one under way may be too early").toBe("read");
    age.ended(true);
    age.begun(4, 0, 2);
    age.ended(true);
    expect(age.asked(5, facts({ isAnnounced: true, gaps: 2 }))).toBe("known");
  });

  it("is waited for while it is read, for 250 ms and no longer [menu-current]", () => {
    const age = read();
    age.begun(10_000, 0, 0);
    expect(age.asked(10_249, facts())).toBe("wait");
    expect(age.asked(10_250, facts())).toBe("known");
    // The reading under way knows nothing of a call that ended after it began.
    expect(age.asked(10_100, facts({ endedCalls: 1 }))).toBe("read");
    expect(age.asked(10_101, facts({ endedCalls: 2 })), "the one that is to begin will do").toBe("wait");
  });

  it("was never read: that is for its server to be started for", () => {
    expect(new ListAge().asked(1e9, facts())).toBe("known");
    expect(new ListAge().missed(1e9, facts())).toBe("known");
  });
});

describe("a name that is not listed", () => {
  it("is looked for once in two seconds, whatever was promised", () => {
    const age = read();
    const promised = facts({ isAnnounced: true, ttlMs: 60_000 });
    expect(age.missed(UNPROMISED_MS - 1, promised)).toBe("known");
    expect(age.missed(UNPROMISED_MS, promised)).toBe("read");
    age.begun(UNPROMISED_MS, 0, 0);
    age.ended(false);
    expect(age.missed(UNPROMISED_MS + 1, promised)).toBe("known");
  });

  it("is not looked for where a gateway of ours tells of changes, unless one may not have been heard yet [menu-current]", () => {
    const pushed = facts({ isAnnounced: true, isPushed: true, ttlMs: 1_000 });
    expect(read().missed(UNPROMISED_MS * 100, pushed)).toBe("known");
    expect(read().missed(1, { ...pushed, gaps: 1 })).toBe("read");
    expect(read().missed(1, { ...pushed, endedCalls: 1, calledLately: true })).toBe("read");
    const told = read();
    told.changed();
    expect(told.missed(1, pushed)).toBe("read");
  });
});

describe("a list that nobody asks for", () => {
  it("is read at growing distances while calls may have changed it and do not", () => {
    const age = read();
    const begun: number[] = [];
    for (let nowMs = 0; nowMs < 200_000; nowMs += 250) {
      const endedCalls = 1 + nowMs;
      if (!age.isDue(nowMs, facts({ endedCalls }))) continue;
      begun.push(nowMs);
      age.begun(nowMs, endedCalls, 0);
      age.ended(false);
    }
    expect(begun).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 192_000]);
    expect(read().isDue(1e9, facts())).toBe(false);
    expect(read().isDue(1e9, facts({ endedCalls: 1, isAnnounced: true }))).toBe(false);
  });
});

it("a list of a server that is often not heard is read by itself, at growing distances [menu-current] [bounded]", () => {
  const age = read();
  const begun: number[] = [];
  for (let nowMs = 0; nowMs < 200_000; nowMs += 250) {
    const gaps = 1 + nowMs;
    if (!age.isDue(nowMs, facts({ isAnnounced: true, gaps }))) continue;
    begun.push(nowMs);
    age.begun(nowMs, 0, gaps);
    age.ended(false);
  }
  expect(begun).toEqual([2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 192_000]);
});

/** Cheaper than expect(), of which there would be hundreds of thousands. */
function must(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** A server whose calls change its list, agents that ask, and readings that take their time. */
function history(random: Random): void {
  const ttlMs = random.pick([undefined, undefined, 0, 1_000, 7_000]);
  const goodMs = ttlMs === undefined ? 2_000 : Math.max(1_000, ttlMs);
  const slowness = random.pick([1, 40, 200, 600]);
  const age = new ListAge();
  let nowMs = 0;
  let endedCalls = 0;
  let reading: { untilMs: number; begunMs: number; calls: number } | undefined;
  let last = { begunMs: 0, calls: 0 };
  /** When the reading under way, or the one after it, was first wanted. */
  let wantedMs: number | undefined;
  let isWanted = false;
  const begin = () => {
    must(reading === undefined, "one reading at a time");
    age.begun(nowMs, endedCalls, 0);
    reading = { untilMs: nowMs + 1 + random.int(slowness), begunMs: nowMs, calls: endedCalls };
    wantedMs ??= nowMs;
    isWanted = false;
  };
  const pass = (ms: number) => {
    const untilMs = nowMs + ms;
    while (reading !== undefined && reading.untilMs <= untilMs) {
      nowMs = reading.untilMs;
      last = reading;
      reading = undefined;
      age.ended(random.chance(0.3));
      if (isWanted) begin();
      else wantedMs = undefined;
    }
    nowMs = untilMs;
  };
  begin();
  pass(1_000);
  for (let step = 0; step < 60; step++) {
    if (random.chance(0.4)) endedCalls++;
    pass(random.int(random.pick([5, 300, 3_000])));
    const now = facts({ endedCalls, ttlMs });
    if (random.chance(0.2) && age.isDue(nowMs, now)) {
      must(nowMs - last.begunMs >= UNPROMISED_MS, "nobody asks: at most once in two seconds");
      begin();
      continue;
    }
    const isMissed = random.chance(0.3);
    const isSure = !isMissed && age.isSurelyKnown(nowMs, endedCalls, 0, ttlMs);
    const verdict = isMissed ? age.missed(nowMs, now) : age.asked(nowMs, now);
    must(!isSure || verdict === "known", "what is surely known is known");
    if (verdict === "read") {
      const isCalled = endedCalls !== (reading ?? last).calls;
      const isAged = reading === undefined && nowMs - last.begunMs >= (isMissed ? Math.min(goodMs, 2_000) : goodMs);
      must(isCalled || isAged, "there is a reason to read");
      must(!isWanted, "no more than one is wanted");
      wantedMs = nowMs;
      if (reading === undefined) begin();
      else isWanted = true;
    } else if (verdict === "wait") {
      must(reading !== undefined && nowMs - (wantedMs ?? 0) < WAIT_MS, "there is something to wait for");
    } else if (reading === undefined) {
      must(endedCalls === last.calls, "no call has ended since");
      must(nowMs - last.begunMs < (isMissed ? Math.min(goodMs, 2_000) : goodMs), "it is not old");
    } else must(nowMs - (wantedMs ?? 0) >= WAIT_MS, "it was waited for");
  }
}

it("no history makes two readings at once, or answers an old list that nobody tried to read [menu-current]", () => {
  for (let seed = 1; seed <= histories(2_000); seed++) {
    try {
      history(seeded(seed));
    } catch (error) {
      throw new Error(`seed ${seed}: ${(error as Error).message}`);
    }
  }
});
