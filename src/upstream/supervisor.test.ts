import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { backoffCeiling } from "../runtime/backoff.js";
import { type Action, Supervisor } from "./supervisor.js";

const LIMITS = { baseMs: 100, maxMs: 5_000 };

type Event =
  | { kind: "call" }
  | { kind: "started" }
  | { kind: "failed" }
  | { kind: "closed" }
  | { kind: "timer" }
  | { kind: "reload" }
  | { kind: "stop" }
  | { kind: "pass"; ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Event>({ kind: "call" }) },
  { weight: 4, arbitrary: fc.constant<Event>({ kind: "started" }) },
  { weight: 3, arbitrary: fc.constant<Event>({ kind: "failed" }) },
  { weight: 3, arbitrary: fc.constant<Event>({ kind: "closed" }) },
  { weight: 4, arbitrary: fc.constant<Event>({ kind: "timer" }) },
  { weight: 1, arbitrary: fc.constant<Event>({ kind: "reload" }) },
  { weight: 1, arbitrary: fc.constant<Event>({ kind: "stop" }) },
  { weight: 4, arbitrary: fc.nat({ max: 20_000 }).map<Event>((ms) => ({ kind: "pass", ms })) },
);

/** A driver without I/O, which holds what must be true at every step. */
class Driver {
  now = 0;
  /** What is alive in the world: at most one of them, ever. */
  world: "nothing" | "attempt" | "link" = "nothing";
  stopped = false;
  crashes = 0;
  starts = 0;
  readonly supervisor: Supervisor;

  constructor(random: () => number) {
    this.supervisor = new Supervisor({ random });
  }

  perform(action: Action): void {
    if (action === "start") this.start();
    if (action === "close") {
      const was = this.world;
      expect(was).not.toBe("nothing");
      this.world = "nothing";
      this.perform(was === "link" ? this.supervisor.closed(this.now) : this.supervisor.failed(this.now));
    }
  }

  start(): void {
    expect(this.world).toBe("nothing");
    expect(this.stopped).toBe(false);
    this.world = "attempt";
    this.starts++;
  }

  step(e: Event): void {
    const { supervisor } = this;
    const before = supervisor.failures;
    switch (e.kind) {
      case "call": {
        const verdict = supervisor.wanted(this.now);
        expect(verdict === "send").toBe(this.world === "link");
        expect(verdict === "refused").toBe(this.stopped);
        if (verdict === "start") this.start();
        if (verdict === "wait") expect(this.world === "attempt" || supervisor.nextWakeMs !== undefined).toBe(true);
        break;
      }
      case "started":
        if (this.world !== "attempt") break;
        this.world = "link";
        supervisor.started(this.now);
        break;
      case "failed":
      case "closed": {
        if (this.world !== (e.kind === "failed" ? "attempt" : "link")) break;
        this.world = "nothing";
        this.crashes++;
        this.perform(e.kind === "failed" ? supervisor.failed(this.now) : supervisor.closed(this.now));
        // Told twice: nothing more happens.
        const restarts = supervisor.restarts;
        expect(supervisor.closed(this.now)).toBe("none");
        expect(supervisor.restarts).toBe(restarts);
        if (supervisor.state === "backoff") {
          const wait = (supervisor.nextWakeMs ?? Number.NaN) - this.now;
          expect(wait).toBeGreaterThanOrEqual(0);
          expect(wait).toBeLessThanOrEqual(backoffCeiling(before, LIMITS));
          expect(wait).toBeLessThanOrEqual(LIMITS.maxMs);
        }
        break;
      }
      case "timer":
        this.perform(supervisor.wake(this.now));
        break;
      case "reload": {
        const wasStopped = this.stopped;
        this.perform(supervisor.reload());
        expect(supervisor.state).toBe(wasStopped ? "stopped" : "starting");
        break;
      }
      case "stop":
        this.stopped = true;
        this.perform(supervisor.stop());
        break;
      case "pass":
        this.now += e.ms;
        break;
    }
    expect(supervisor.state === "ready").toBe(this.world === "link");
    expect(supervisor.state === "starting").toBe(this.world === "attempt");
    expect(supervisor.state === "stopped").toBe(this.stopped);
    expect(supervisor.nextWakeMs !== undefined).toBe(supervisor.state === "backoff");
    expect(supervisor.restarts).toBeLessThanOrEqual(this.crashes);
    expect(this.starts).toBeGreaterThanOrEqual(supervisor.restarts);
  }
}

const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("Supervisor", () => {
  it("never has two starts at once, stays within its backoff, starts nothing after stop, sends when ready", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 120 }), fc.infiniteStream(unit), (events, randoms) => {
        const driver = new Driver(() => randoms.next().value);
        for (const e of events) driver.step(e);
      }),
      { numRuns: 5_000 },
    );
  });

  it("always gets a wanted server ready again, if its starts succeed", () => {
    fc.assert(
      fc.property(
        fc.array(
          event.filter((e) => e.kind !== "stop"),
          { maxLength: 60 },
        ),
        unit,
        (events, random) => {
          const driver = new Driver(() => random);
          for (const e of events) driver.step(e);
          driver.step({ kind: "call" });
          driver.now = Math.max(driver.now, driver.supervisor.nextWakeMs ?? 0);
          driver.step({ kind: "timer" });
          driver.step({ kind: "started" });
          expect(driver.supervisor.wanted(driver.now)).toBe("send");
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("starts a steady server again at once, an unsteady one after a growing wait", () => {
    const supervisor = new Supervisor({ random: () => 0.5 });
    expect(supervisor.wanted(0)).toBe("start");
    expect(supervisor.wanted(0)).toBe("wait");
    supervisor.started(10);
    supervisor.closed(10_010);
    expect(supervisor.state).toBe("idle");
    let now = 20_000;
    const waits: number[] = [];
    for (let i = 0; i < 9; i++) {
      expect(supervisor.wanted(now)).toBe("start");
      supervisor.failed(now);
      expect(supervisor.wanted(now)).toBe("wait");
      const due = supervisor.nextWakeMs ?? Number.NaN;
      waits.push(due - now);
      expect(supervisor.wake(due - 1)).toBe("none");
      now = due;
    }
    expect(waits.map(Math.round)).toEqual([50, 100, 200, 400, 800, 1600, 2500, 2500, 2500]);
    expect(supervisor.wake(now)).toBe("start");
    expect(supervisor.restarts).toBe(10);
    supervisor.started(now);
    supervisor.closed(now + 9_999);
    expect(supervisor.state).toBe("backoff");
    expect(supervisor.failures).toBe(10);
  });

  it("counts one restart for one crash, however many calls were waiting [restart-unseen]", () => {
    const supervisor = new Supervisor({ random: () => 0 });
    supervisor.wanted(0);
    supervisor.started(0);
    supervisor.closed(20_000);
    const verdicts = Array.from({ length: 100 }, () => supervisor.wanted(20_000));
    expect(verdicts.filter((v) => v === "start").length).toBe(1);
    expect(supervisor.restarts).toBe(1);
  });

  it("is idle again when its wait is over and nobody wants it", () => {
    const supervisor = new Supervisor({ random: () => 0.9 });
    supervisor.wanted(0);
    supervisor.failed(0);
    expect(supervisor.wake(90)).toBe("none");
    expect([supervisor.state, supervisor.nextWakeMs]).toEqual(["idle", undefined]);
  });

  it("closes before it starts anew on reload, and forgives what the old entry did", () => {
    const supervisor = new Supervisor({ random: () => 0.9 });
    supervisor.wanted(0);
    expect(supervisor.reload()).toBe("close");
    supervisor.started(1);
    expect(supervisor.wanted(1)).toBe("wait");
    expect(supervisor.failed(2)).toBe("start");
    supervisor.started(3);
    expect(supervisor.reload()).toBe("close");
    expect(supervisor.closed(4)).toBe("start");
    expect([supervisor.failures, supervisor.restarts]).toEqual([0, 0]);
  });
});
