import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { fullness, type JournalEntry, judge } from "./journal-entry.js";

/** A small generator of its own, so that a seed that failed can be run again. */
function randomOf(seed: number): () => number {
  let state = seed + 0x9e3779b9;
  return () => {
    state = Math.imul(state ^ (state >>> 15), 0x85ebca6b);
    state = Math.imul(state ^ (state >>> 13), 0xc2b2ae35);
    state ^= state >>> 16;
    return (state >>> 0) / 2 ** 32;
  };
}

interface Running {
  readonly id: string;
  readonly digest: string;
  readonly mayRepeat: boolean;
  step: "arrived" | "starting" | "started" | "acted" | "finishing" | "finished";
  result: string | undefined;
}

/** A sharer with a disk and a process that can be killed between any two steps. */
class World {
  readonly disk = new Map<string, JournalEntry>();
  /** What was put and is not committed; a kill loses it, or not. */
  writes: [string, JournalEntry][] = [];
  running = new Map<string, Running>();
  /** What happened at the tool. */
  readonly effects = new Map<string, number>();
  readonly replies = new Map<string, Set<string>>();

  arrive(id: string, digest: string, mayRepeat: boolean): void {
    const verdict = judge(this.disk.get(id), { digest, runningDigest: this.running.get(id)?.digest });
    if (verdict.act === "run") {
      this.running.set(id, { id, digest, mayRepeat, step: "arrived", result: undefined });
    } else if (verdict.act === "reply") this.reply(id, String(verdict.reply));
    else if (verdict.act === "unknown") this.reply(id, "unknown");
  }

  reply(id: string, text: string): void {
    const all = this.replies.get(id) ?? new Set();
    all.add(text);
    this.replies.set(id, all);
  }

  step(call: Running): void {
    const { id, digest, mayRepeat } = call;
    if (call.step === "arrived") {
      if (mayRepeat) call.step = "started";
      else {
        this.writes.push([id, { state: "started", digest, endMs: 0, what: "tool" }]);
        call.step = "starting";
      }
    } else if (call.step === "started") {
      const count = (this.effects.get(id) ?? 0) + 1;
      this.effects.set(id, count);
      call.result = `result ${id}`;
      call.step = "acted";
    } else if (call.step === "acted") {
      if (mayRepeat) call.step = "finished";
      else {
        this.writes.push([id, { state: "finished", digest, endMs: 0, reply: call.result ?? "" }]);
        call.step = "finishing";
      }
    } else if (call.step === "finished") {
      this.reply(id, call.result ?? "");
      this.running.delete(id);
    }
  }

  commit(count = this.writes.length): void {
    for (const [id, entry] of this.writes.splice(0, count)) {
      this.disk.set(id, entry);
      const call = this.running.get(id);
      if (call?.step === "starting" && entry.state === "started") call.step = "started";
      else if (call?.step === "finishing" && entry.state === "finished") call.step = "finished";
    }
  }

  /** Commits are whole and in order: some of what was put is there, and the rest never was. */
  kill(random: () => number): void {
    const survived = Math.floor(random() * (this.writes.length + 1));
    for (const [id, entry] of this.writes.splice(0, survived)) this.disk.set(id, entry);
    this.writes = [];
    this.running.clear();
  }
}

describe("what a sharer does with a message", () => {
  it("runs each call once and answers it the same, wherever the process is killed, by every seed [no-double-effect] [unknown-is-said]", () => {
    let unknown = 0;
    let answered = 0;
    for (let seed = 0; seed < histories(3_000); seed++) {
      const random = randomOf(seed);
      const world = new World();
      const ids = ["a", "b", "c", "d"];
      for (let turn = 0; turn < 60; turn++) {
        const id = ids[Math.floor(random() * ids.length)] ?? "a";
        const luck = random();
        const call = world.running.get(id);
        if (luck < 0.25) world.arrive(id, "digest", id === "d");
        else if (luck < 0.7 && call !== undefined) world.step(call);
        else if (luck < 0.92) world.commit();
        else world.kill(random);
      }
      // Whoever repeats until the end is answered.
      for (const id of ids) {
        for (let turn = 0; turn < 20 && world.replies.get(id) === undefined; turn++) {
          if (!world.running.has(id)) world.arrive(id, "digest", id === "d");
          const call = world.running.get(id);
          if (call !== undefined) world.step(call);
          world.commit();
        }
      }
      for (const id of ids) {
        const replies = [...(world.replies.get(id) ?? [])];
        const effects = world.effects.get(id) ?? 0;
        const fault =
          replies.length === 0
            ? "nobody answered"
            : id === "d"
              ? undefined
              : effects > 1
                ? `${effects} effects`
                : replies.length > 1
                  ? `two answers: ${replies.join(", ")}`
                  : replies[0] !== "unknown" && effects === 0
                    ? "a result without an effect"
                    : undefined;
        if (fault !== undefined) throw new Error(`seed ${seed}, call ${id}: ${fault}`);
        if (replies.includes("unknown")) unknown++;
        else answered++;
      }
    }
    // The seeds meet both.
    expect(unknown).toBeGreaterThan(histories(500));
    expect(answered).toBeGreaterThan(histories(500));
  });

  it("refuses another message under an id that is known, running or finished", () => {
    const finished: JournalEntry = { state: "finished", digest: "one", endMs: 0, reply: "{}" };
    expect(judge(finished, { digest: "two", runningDigest: undefined })).toMatchObject({ act: "refuse" });
    expect(judge(undefined, { digest: "two", runningDigest: "one" })).toMatchObject({ act: "refuse" });
    expect(judge(undefined, { digest: "one", runningDigest: "one" })).toEqual({ act: "wait" });
  });

  it("names the limit that a full journal has reached [bounded]", () => {
    const limits = { entries: 10, bytes: 1_000 };
    const of = (entries: number, bytes: number) =>
      fullness({ entries, bytes }, { entries: 0, bytes: 0 }, limits, "worker-1");
    expect(of(9, 999)).toBeUndefined();
    expect(of(10, 0)).toContain("is full: it keeps 10 calls,");
    expect(of(0, 1_000)).toContain("is full: it keeps 1000 bytes of replies,");
  });

  it("names the worker that has its half of the journal, by calls or by bytes [bounded]", () => {
    const limits = { entries: 10, bytes: 1_000 };
    const of = (entries: number, bytes: number) =>
      fullness({ entries: 9, bytes: 999 }, { entries, bytes }, limits, "worker-1");
    expect(of(4, 499)).toBeUndefined();
    expect(of(5, 0)).toContain('no more room for "worker-1": it keeps 5 calls of one worker, half of all,');
    expect(of(0, 500)).toContain(
      'no more room for "worker-1": it keeps 500 bytes of replies of one worker, half of all,',
    );
  });
});
