import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { WorkerRedial } from "./worker-redial.js";

/** Fails every dial; gives the waits before each, until it is given up. */
function waitsOf(redial: WorkerRedial, fromMs: number): number[] {
  const waits: number[] = [];
  let now = fromMs;
  expect(redial.wanted()).toBe("dial");
  while (redial.failed(now) === "again") {
    const due = redial.nextWakeMs as number;
    waits.push(due - now);
    expect(redial.wake(due - 0.001)).toBe("none");
    expect(redial.wake(due)).toBe("dial");
    now = due;
  }
  return waits;
}

describe("when a worker dials its broker", () => {
  it("tries five times with waits that double, and then says that it gave up", () => {
    expect(waitsOf(new WorkerRedial(() => 1), 0)).toEqual([200, 400, 800, 1_600]);
  });

  it("tries five times after a line that was lost, too, and waits before each of them", () => {
    const redial = new WorkerRedial(() => 1);
    redial.wanted();
    redial.opened(0);
    redial.lost(1_000);
    const waits: number[] = [];
    let now = 1_000;
    do {
      const due = redial.nextWakeMs as number;
      waits.push(due - now);
      now = due;
      expect(redial.wake(now)).toBe("dial");
    } while (redial.failed(now) === "again");
    expect(waits).toEqual([200, 400, 800, 1_600, 2_000]);
  });

  it("jitters fully: a wait is anywhere from nothing to its ceiling", () => {
    expect(waitsOf(new WorkerRedial(() => 0), 0)).toEqual([0, 0, 0, 0]);
    expect(waitsOf(new WorkerRedial(() => 0.5), 0)).toEqual([100, 200, 400, 800]);
  });

  it("says dial once, however many want the line", () => {
    const redial = new WorkerRedial(() => 1);
    expect([redial.wanted(), redial.wanted(), redial.wanted()]).toEqual(["dial", "wait", "wait"]);
    redial.failed(0);
    expect(redial.wanted()).toBe("wait");
  });

  it("is never given up for good: the next who wants it begins a new round at once", () => {
    const redial = new WorkerRedial(() => 1);
    waitsOf(redial, 0);
    expect(waitsOf(redial, 5_000)).toEqual([200, 400, 800, 1_600]);
  });

  it("goes on slowly in the background, one try at a time, and a call that comes meanwhile makes it a round", () => {
    const redial = new WorkerRedial(() => 1);
    waitsOf(redial, 0);
    redial.failed(3_000);
    const due = redial.nextWakeMs as number;
    expect(due).toBe(18_000);
    expect(redial.wake(due)).toBe("dial");
    expect(redial.failed(due)).toBe("given up");
    expect(redial.wake(redial.nextWakeMs as number)).toBe("dial");
    expect(redial.wanted()).toBe("wait");
    expect(redial.failed(40_000)).toBe("again");
  });

  it("waits ever longer after lines that end soon, and begins anew after one that stood for ten seconds", () => {
    const redial = new WorkerRedial(() => 1);
    redial.wanted();
    let now = 0;
    const waits = [1, 1, 1, 1, 1, 1, 10_000, 1].map((livedMs) => {
      redial.opened(now);
      redial.lost(now + livedMs);
      const wait = (redial.nextWakeMs as number) - now - livedMs;
      now = redial.nextWakeMs as number;
      expect(redial.wake(now)).toBe("dial");
      return wait;
    });
    expect(waits).toEqual([200, 400, 800, 1_600, 2_000, 2_000, 200, 400]);
  });

  it("dials nobody again who refused us", () => {
    const redial = new WorkerRedial(() => 1);
    redial.wanted();
    redial.refused();
    expect([redial.wanted(), redial.nextWakeMs, redial.wake(1e9)]).toEqual(["refused", undefined, "none"]);
  });

  it("keeps its rules in any history: one dial at a time, no wait above two seconds while wanted, no deaf end", () => {
    for (let seed = 1; seed <= histories(2_000); seed++) {
      let state = seed;
      const random = () => {
        state = (state * 1_103_515_245 + 12_345) & 0x7fffffff;
        return state / 0x80000000;
      };
      const redial = new WorkerRedial(random);
      let now = 0;
      let isDialling = false;
      let isOpen = false;
      const said = (verdict: string) => {
        if (verdict !== "dial") return;
        if (isDialling || isOpen) throw new Error(`seed ${seed}: a second dial`);
        isDialling = true;
      };
      for (let step = 0; step < 60; step++) {
        now += random() * 3_000;
        const pick = random();
        if (pick < 0.3) said(redial.wanted());
        else if (pick < 0.6) said(redial.wake(now));
        else if (isDialling && pick < 0.8) {
          isDialling = false;
          redial.failed(now);
        } else if (isDialling) {
          isDialling = false;
          isOpen = true;
          redial.opened(now);
        } else if (isOpen) {
          isOpen = false;
          redial.lost(now);
        }
        const wait = (redial.nextWakeMs ?? now) - now;
        if (redial.state === "waiting" && wait > 2_000) throw new Error(`seed ${seed}: waits ${wait}`);
        const isStuck = !isDialling && !isOpen && redial.nextWakeMs === undefined && redial.state !== "resting";
        if (isStuck) throw new Error(`seed ${seed}: nothing would dial again`);
      }
    }
  });
});
