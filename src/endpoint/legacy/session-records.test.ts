import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { seeded } from "../../../test/faults/random.js";
import type { SessionRecord } from "../../contracts/session-record.js";
import { MemoryMap } from "../../store/memory-map.js";
import { ENDPOINT_LIMITS } from "../session/limits.js";
import { type RecordedFacts, SessionRecords } from "./session-records.js";

const HOUR = 3_600_000;
const IDLE_MS = 24 * HOUR;
const LIMITS = { ...ENDPOINT_LIMITS, sessionIdleMs: IDLE_MS, endedPerPrincipal: 4, endedSessions: 10, sessions: 12 };

interface Told extends RecordedFacts {
  usedMs: number;
  ended: boolean;
}

describe("records of sessions", () => {
  it("keep what ended ended, and what is used alive, over restarts and within their bounds [bounded]", () => {
    for (let seed = 1; seed <= histories(500); seed++) {
      const random = seeded(seed);
      const map = new MemoryMap<SessionRecord>("sessions");
      let records = new SessionRecords(LIMITS, map);
      let nowMs = 1_800_000_000_000;
      const all: Told[] = [];
      /** Ends of each principal; beyond the bound, sessions that were never used may be taken for ended. */
      const ends = new Map<string, number>();
      for (let step = 0; step < 120; step++) {
        nowMs += random.int(2 * HOUR);
        const one = random.chance(0.5) && all.length > 0 ? random.pick(all) : undefined;
        if (one === undefined) {
          const principalId = `p${random.int(4)}`;
          all.push({ principalId, key: `k${all.length}`, createdAt: nowMs, usedMs: nowMs, ended: false });
        } else if (random.chance(0.4)) {
          void records.end(one);
          one.ended = true;
          ends.set(one.principalId, (ends.get(one.principalId) ?? 0) + 1);
        } else if (!records.isOver(one, nowMs)) {
          records.used(one, nowMs);
          one.usedMs = nowMs;
        }
        if (random.chance(0.1)) records.sweep(nowMs);
        if (random.chance(0.2)) records = new SessionRecords(LIMITS, map);
        for (const told of all) {
          const over = records.isOver(told, nowMs);
          const idleMs = nowMs - told.usedMs;
          const mustBeOver = (told.ended && nowMs - told.createdAt <= LIMITS.sealedMs) || idleMs > IDLE_MS * 1.125;
          const isCrowded = (ends.get(told.principalId) ?? 0) > 2;
          const mustLive = !told.ended && !isCrowded && idleMs <= IDLE_MS;
          if (over ? mustLive : mustBeOver) throw new Error(`seed ${seed}, step ${step}, ${told.key}: over is ${over}`);
        }
        // The ends, the uses, and one line for each principal.
        if ([...map.entries()].length > 10 + 24 + 4) throw new Error(`seed ${seed}, step ${step}: too many records`);
      }
    }
  });

  it("write nothing down for sessions that are used for a short time", () => {
    const map = new MemoryMap<SessionRecord>("sessions");
    const records = new SessionRecords(LIMITS, map);
    const facts = { principalId: "p", key: "k", createdAt: 0 };
    for (let at = 0; at < 3 * HOUR; at += HOUR / 2) records.used(facts, at);
    expect([...map.entries()]).toEqual([]);
    records.used(facts, 4 * HOUR);
    expect([...map.entries()]).toEqual([["k", { principal: "p", began: 0, used: 4 * HOUR }]]);
  });

  it("keep what sessions asked for, over later uses and restarts, for their principal alone [restart-unseen]", () => {
    const map = new MemoryMap<SessionRecord>("sessions");
    const facts = { principalId: "p", key: "k", createdAt: 0 };
    const settings = { logLevel: "error", subscribed: new Map([["mail", new Set(["mail://inbox", "mail://sent"])]]) };
    const records = new SessionRecords(LIMITS, map);
    void records.keep(facts, HOUR, settings);
    records.used(facts, 6 * HOUR, settings);
    const after = new SessionRecords(LIMITS, map);
    expect(after.settingsOf(facts)).toMatchObject({
      level: "error",
      subscribed: { mail: ["mail://inbox", "mail://sent"] },
      used: 6 * HOUR,
    });
    expect(after.settingsOf({ ...facts, principalId: "q" })).toEqual({});
    void after.end(facts);
    void after.keep(facts, 7 * HOUR, settings);
    expect(after.settingsOf(facts)).toEqual({});
    expect(after.isOver(facts, 7 * HOUR)).toBe(true);
  });

  it("keep no more of a session's subscriptions than fits, whatever their servers are called [bounded]", () => {
    const uris = Array.from({ length: 5_000 }, (_, n) => `file:///project/${n}`);
    const map = new MemoryMap<SessionRecord>("sessions");
    const facts = { principalId: "p", key: "k", createdAt: 0 };
    void new SessionRecords(LIMITS, map).keep(facts, 0, { subscribed: new Map([["__proto__", new Set(uris)]]) });
    const kept = JSON.stringify(new SessionRecords(LIMITS, map).settingsOf(facts));
    expect(kept.length).toBeGreaterThan(3_000);
    expect(kept.length).toBeLessThan(6_000);
  });

  it("forget what is refused for its age in any case", () => {
    const map = new MemoryMap<SessionRecord>("sessions");
    const records = new SessionRecords(LIMITS, map);
    for (let n = 0; n < 6; n++) void records.end({ principalId: "p", key: `k${n}`, createdAt: n });
    records.used({ principalId: "p", key: "u", createdAt: 7 }, 5 * HOUR);
    expect([...map.entries()].length).toBe(6);
    records.sweep(LIMITS.sealedMs + 10);
    expect([...map.entries()]).toEqual([]);
  });
});
