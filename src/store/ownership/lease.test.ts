import { describe, expect, it } from "vitest";
import { full } from "../../../test/faults/length.js";
import type { Versioned } from "../../contracts/store.js";
import { Lease, type LeaseRecord } from "./lease.js";

const LENGTH = 3_000;

/** Small, fast and the same everywhere. */
function randomOf(seed: number): () => number {
  let state = seed + 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

interface Holder {
  readonly name: string;
  lease: Lease;
  /** How fast its clock runs, and what it showed at the beginning. */
  readonly rate: number;
  readonly offset: number;
  frozenUntil: number;
  deadUntil: number;
  readonly mail: { at: number; take: (now: number) => void }[];
}

/** Three holders of one lease, whose messages are lost and late, who freeze and die; true time is the simulation's. */
function simulate(seed: number): { acted: number; takeovers: number } {
  const random = randomOf(seed);
  let record: Versioned<LeaseRecord> | undefined;
  let revision = 0;
  let starts = 0;
  let acted = 0;
  const actors = new Set<string>();
  const holders: Holder[] = [0, 1, 2].map((n) => {
    const offset = random() * 1e6;
    const name = `h${n}`;
    // A fifth apart is far more than real clocks are.
    const rate = 0.9 + random() * 0.2;
    return { name, lease: new Lease(name, LENGTH, offset), rate, offset, frozenUntil: 0, deadUntil: 0, mail: [] };
  });
  const clockOf = (holder: Holder, t: number) => holder.offset + t * holder.rate;
  const late = () => (random() < 0.1 ? random() * 4 * LENGTH : random() * 100);
  const inFlight: { at: number; arrive: (t: number) => void }[] = [];
  for (let t = 0; t < 30_000; t += 40) {
    for (const one of inFlight.splice(0)) {
      if (one.at <= t) one.arrive(t);
      else inFlight.push(one);
    }
    const acting: string[] = [];
    for (const holder of holders) {
      if (t < holder.deadUntil) continue;
      if (holder.deadUntil > 0) {
        holder.deadUntil = 0;
        holder.mail.length = 0;
        holder.lease = new Lease(`${holder.name}.${++starts}`, LENGTH, clockOf(holder, t));
      }
      if (t < holder.frozenUntil) continue;
      const now = clockOf(holder, t);
      // What a holder that wakes does first is what it was about to do: it asks, and acts.
      if (holder.lease.mayAct(now)) acting.push(holder.name);
      for (const letter of holder.mail.splice(0)) {
        if (letter.at <= t) letter.take(now);
        else holder.mail.push(letter);
      }
      const step = holder.lease.next(now);
      if (step.kind === "write") {
        const { lease } = holder;
        const answer = (outcome: number | "refused" | "unknown", at: number) =>
          holder.mail.push({ at, take: (when) => holder.lease === lease && lease.answered(outcome, when) });
        if (random() < 0.1) answer("unknown", t + 500);
        else {
          const isAnswerLost = random() < 0.15;
          inFlight.push({
            at: t + late(),
            arrive: (when) => {
              const isFirst = record?.revision === step.revision;
              if (isFirst) {
                const written = { value: step.record, revision: ++revision };
                record = written;
                for (const other of holders) {
                  // A watch is late, or resumes with the last value.
                  const seen = other.lease;
                  other.mail.push({
                    at: when + late(),
                    take: (now) => other.lease === seen && seen.observed(written, now),
                  });
                }
              }
              answer(isAnswerLost ? "unknown" : isFirst ? revision : "refused", when + late());
            },
          });
        }
      }
      if (random() < 0.003) holder.frozenUntil = t + random() * 3 * LENGTH;
      if (random() < 0.0015) {
        holder.deadUntil = t + random() * 2 * LENGTH;
      }
      // Whoever starts reads what is there.
      if (holder.lease.mayAct(now) === false && random() < 0.05) holder.lease.observed(record, now);
    }
    if (acting.length > 1) throw new Error(`seed ${seed}: ${acting.join(" and ")} act at ${t}`);
    if (acting[0] !== undefined) {
      acted++;
      actors.add(acting[0]);
    }
  }
  return { acted, takeovers: actors.size };
}

describe("a lease", () => {
  it("is taken where nobody holds it, and renewed at a third of its length", () => {
    const lease = new Lease("a", LENGTH, 0);
    expect(lease.mayAct(0)).toBe(false);
    expect(lease.next(0)).toEqual({ kind: "write", record: { holder: "a", beat: 1 }, revision: undefined });
    expect(lease.next(5)).toMatchObject({ kind: "wait" });
    lease.answered(7, 10);
    expect(lease.mayAct(10)).toBe(true);
    expect(lease.next(20)).toEqual({ kind: "wait", untilMs: 1_000 });
    expect(lease.next(1_000)).toEqual({ kind: "write", record: { holder: "a", beat: 2 }, revision: 7 });
  });

  it("does not let its holder act at 0.7 of its length since its last renewal was sent, not answered [one-owner]", () => {
    const lease = new Lease("a", LENGTH, 0);
    lease.next(0);
    lease.answered(1, 2_000);
    expect(lease.mayAct(2_099)).toBe(true);
    expect(lease.mayAct(2_100)).toBe(false);
  });

  it("of another ends when it has not moved for its whole length by one's own clock [one-owner]", () => {
    const lease = new Lease("b", LENGTH, 0);
    lease.observed({ value: { holder: "a", beat: 1 }, revision: 1 }, 100);
    expect(lease.next(3_000)).toEqual({ kind: "wait", untilMs: 3_100 });
    lease.observed({ value: { holder: "a", beat: 2 }, revision: 2 }, 3_000);
    expect(lease.next(3_100)).toEqual({ kind: "wait", untilMs: 6_000 });
    expect(lease.next(6_000)).toEqual({ kind: "write", record: { holder: "b", beat: 1 }, revision: 2 });
    lease.answered("refused", 6_010);
    expect(lease.mayAct(6_010)).toBe(false);
  });

  it("is known as one's own where the answer was lost, from when the write was sent [one-owner]", () => {
    const lease = new Lease("a", LENGTH, 0);
    lease.next(0);
    lease.answered("unknown", 2_000);
    expect(lease.mayAct(2_000)).toBe(false);
    lease.observed({ value: { holder: "a", beat: 1 }, revision: 4 }, 2_050);
    expect(lease.mayAct(2_050)).toBe(true);
    expect(lease.mayAct(2_100)).toBe(false);
    expect(lease.next(2_100)).toMatchObject({ kind: "write", revision: 4 });
  });

  it("is another's at once when that is seen, and free at once when it was given back", () => {
    const one = new Lease("a", LENGTH, 0);
    one.next(0);
    one.answered(1, 1);
    one.observed({ value: { holder: "b", beat: 1 }, revision: 2 }, 10);
    expect(one.mayAct(10)).toBe(false);
    expect(one.release()).toBeUndefined();
    const two = new Lease("c", LENGTH, 0);
    two.next(0);
    two.answered(1, 1);
    expect(two.release()).toEqual({ record: { holder: "", beat: 2 }, revision: 1 });
    expect(two.mayAct(2)).toBe(false);
    const three = new Lease("d", LENGTH, 0);
    three.observed({ value: { holder: "", beat: 2 }, revision: 2 }, 5);
    expect(three.next(5)).toMatchObject({ kind: "write", revision: 2 });
  });

  it("has at most one holder that acts, over losses, delays, freezes, deaths and clocks that differ [one-owner]", () => {
    let acted = 0;
    let takeovers = 0;
    const seeds = full ? 20_000 : 1_000;
    for (let seed = 1; seed <= seeds; seed++) {
      const run = simulate(seed);
      acted += run.acted;
      takeovers += run.takeovers;
    }
    // It would be easy to be right by never acting.
    expect(acted / seeds).toBeGreaterThan(250);
    expect(takeovers / seeds).toBeGreaterThan(1.5);
    // The full run takes a minute on a busy machine.
  }, 600_000);
});
