import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { backoffCeiling } from "../../runtime/backoff.js";
import { type RestartRules, Supervisor } from "./supervisor.js";

const BACKOFF = { baseMs: 100, maxMs: 5_000 };
const RULES: RestartRules = { restarts: { max: 5, windowMs: 300_000 }, backoff: BACKOFF, ejectedProbeMs: undefined };
/** A budget that no test here uses up. */
const FREE: RestartRules = { ...RULES, restarts: { max: 1_000_000, windowMs: 1 } };

type Event =
  | { kind: "call" }
  | { kind: "started" }
  | { kind: "failed" }
  | { kind: "closed" }
  | { kind: "rested" }
  | { kind: "timer" }
  | { kind: "stop" }
  | { kind: "pass"; ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 12, arbitrary: fc.constant<Event>({ kind: "call" }) },
  { weight: 8, arbitrary: fc.constant<Event>({ kind: "started" }) },
  { weight: 6, arbitrary: fc.constant<Event>({ kind: "failed" }) },
  { weight: 6, arbitrary: fc.constant<Event>({ kind: "closed" }) },
  { weight: 1, arbitrary: fc.constant<Event>({ kind: "rested" }) },
  { weight: 8, arbitrary: fc.constant<Event>({ kind: "timer" }) },
  { weight: 1, arbitrary: fc.constant<Event>({ kind: "stop" }) },
  { weight: 10, arbitrary: fc.nat({ max: 20_000 }).map<Event>((ms) => ({ kind: "pass", ms })) },
);

const rules: fc.Arbitrary<RestartRules> = fc.record({
  restarts: fc.record({ max: fc.nat({ max: 6 }), windowMs: fc.integer({ min: 1, max: 100_000 }) }),
  backoff: fc.constant(BACKOFF),
  ejectedProbeMs: fc.option(fc.integer({ min: 1, max: 60_000 }), { nil: undefined }),
});

/** `expect` is too slow to be asked a million times. */
function must(holds: boolean): void {
  if (!holds) throw new Error("this must hold");
}

/** A driver without I/O, which holds what must be true at every step. */
class Driver {
  now = 0;
  /** What is alive in the world: at most one of them, ever. */
  world: "nothing" | "attempt" | "link" = "nothing";
  stopped = false;
  /** When somebody stopped it first. */
  stoppedMs: number | undefined;
  crashes = 0;
  /** Starts after a crash, when, but for probes. A budget that is forgiven begins anew. */
  restarts: number[] = [];
  #owed = false;
  readonly #rules: RestartRules;
  readonly supervisor: Supervisor;

  constructor(rulesOfIt: RestartRules, random: () => number) {
    this.#rules = rulesOfIt;
    this.supervisor = new Supervisor(rulesOfIt, random);
  }

  #probing = false;

  start(fromEjected: boolean): void {
    must(this.world === "nothing");
    must(!this.stopped);
    this.world = "attempt";
    this.#probing = fromEjected;
    if (this.#owed && !fromEjected) this.restarts.push(this.now);
    this.#owed = false;
    const { max, windowMs } = this.#rules.restarts;
    const recent = this.restarts.filter((at) => at > this.now - windowMs).length;
    must(recent <= max);
  }

  step(e: Event): void {
    const { supervisor } = this;
    const wasEjected = supervisor.state === "ejected";
    const dueMs = supervisor.nextWakeMs;
    switch (e.kind) {
      case "call": {
        const verdict = supervisor.wanted(this.now);
        must((verdict === "send") === (this.world === "link"));
        if (verdict === "refused") must(this.stopped || wasEjected);
        if (verdict === "start") this.start(wasEjected);
        if (verdict === "wait") must(this.world === "attempt" || supervisor.nextWakeMs !== undefined);
        break;
      }
      case "started":
        if (this.world !== "attempt") break;
        this.world = "link";
        if (this.#probing) this.restarts = [];
        supervisor.started(this.now);
        break;
      case "failed":
      case "closed":
        this.#fall(e.kind);
        break;
      case "rested":
        if (this.world !== "link") break;
        this.world = "nothing";
        supervisor.rested();
        break;
      case "timer":
        if (supervisor.wake(this.now) === "start") this.start(wasEjected);
        break;
      case "stop": {
        this.stoppedMs ??= this.now;
        this.stopped = true;
        const alive = this.world !== "nothing";
        this.world = "nothing";
        const action = supervisor.stop(this.now);
        must(action === (alive ? "close" : "none"));
        break;
      }
      case "pass":
        this.now += e.ms;
        break;
    }
    // Nobody is let out of ejection before its probe is due, and without one nobody at all.
    if (wasEjected && this.world === "attempt") {
      must(dueMs !== undefined);
      must(this.now >= (dueMs ?? Number.NaN));
    }
    must((supervisor.state === "ready") === (this.world === "link"));
    must((supervisor.state === "starting") === (this.world === "attempt"));
    must((supervisor.state === "stopped") === this.stopped);
    if (this.stopped) must(supervisor.sinceMs === this.stoppedMs);
    must(supervisor.restarts <= this.crashes);
  }

  #fall(kind: "failed" | "closed"): void {
    const { supervisor } = this;
    if (this.world !== (kind === "failed" ? "attempt" : "link")) return;
    const before = supervisor.failedStarts;
    const wasProbe = kind === "failed" && this.#probing;
    this.world = "nothing";
    this.crashes++;
    this.#owed = true;
    supervisor[kind](this.now);
    const { state } = supervisor;
    const wait = (supervisor.nextWakeMs ?? Number.NaN) - this.now;
    // Told twice: nothing more happens.
    supervisor.closed(this.now);
    supervisor.failed(this.now);
    must(supervisor.state === state);
    const { max, windowMs } = this.#rules.restarts;
    const spent = this.restarts.filter((at) => at > this.now - windowMs).length >= max;
    must((state === "ejected") === (spent || wasProbe));
    if (state === "backoff") {
      must(wait >= 0);
      must(wait <= backoffCeiling(before, BACKOFF));
      must(wait <= BACKOFF.maxMs);
    }
  }
}

const unit = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

describe("Supervisor", () => {
  it("never runs two at once or more restarts than the budget, and starts nothing after stop [host-7]", () => {
    let ejections = 0;
    fc.assert(
      fc.property(
        rules,
        fc.array(event, { minLength: 20, maxLength: 120, size: "max" }),
        fc.infiniteStream(unit),
        (its, events, randoms) => {
          const driver = new Driver(its, () => randoms.next().value);
          for (const e of events) {
            driver.step(e);
            if (driver.supervisor.state === "ejected") ejections++;
          }
        },
      ),
      { numRuns: histories(3_000) },
    );
    // The property is about something.
    expect(ejections).toBeGreaterThan(histories(1_000));
  });

  it("always gets a wanted server ready again, if its starts succeed and it may be tried", () => {
    fc.assert(
      fc.property(
        rules.map((its) => ({ ...its, ejectedProbeMs: its.ejectedProbeMs ?? 1_000 })),
        fc.array(
          event.filter((e) => e.kind !== "stop"),
          { maxLength: 60, size: "max" },
        ),
        unit,
        (its, events, random) => {
          const driver = new Driver(its, () => random);
          for (const e of events) driver.step(e);
          driver.step({ kind: "call" });
          driver.now = Math.max(driver.now, driver.supervisor.nextWakeMs ?? 0);
          driver.step({ kind: "timer" });
          driver.step({ kind: "call" });
          driver.step({ kind: "started" });
          expect(driver.supervisor.wanted(driver.now)).toBe("send");
        },
      ),
      { numRuns: histories(2_000) },
    );
  });

  it("starts a steady server again at once, an unsteady one after a growing wait", () => {
    const supervisor = new Supervisor(FREE, () => 0.5);
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
    expect(supervisor.failedStarts).toBe(10);
  });

  it("counts one restart for one crash, however many calls were waiting [restart-unseen] [host-7]", () => {
    const supervisor = new Supervisor(RULES, () => 0);
    supervisor.wanted(0);
    supervisor.started(0);
    supervisor.closed(20_000);
    const verdicts = Array.from({ length: 100 }, () => supervisor.wanted(20_000));
    expect(verdicts.filter((v) => v === "start").length).toBe(1);
    expect(supervisor.restarts).toBe(1);
  });

  it("is idle again when its wait is over and nobody wants it", () => {
    const supervisor = new Supervisor(RULES, () => 0.9);
    supervisor.wanted(0);
    supervisor.failed(0);
    expect(supervisor.wake(90)).toBe("none");
    expect([supervisor.state, supervisor.nextWakeMs]).toEqual(["idle", undefined]);
  });

  it("ejects after five restarts in five minutes, steady or not, and not for slower ones", () => {
    const quick = new Supervisor(RULES, () => 0);
    for (let i = 0; i <= 5; i++) {
      expect(quick.state).not.toBe("ejected");
      expect(quick.wanted(i * 20_000)).toBe("start");
      quick.started(i * 20_000);
      quick.closed(i * 20_000 + 15_000);
    }
    expect([quick.state, quick.restarts, quick.nextWakeMs]).toEqual(["ejected", 5, undefined]);
    expect(quick.wanted(10_000_000)).toBe("refused");

    const slow = new Supervisor(RULES, () => 0);
    for (let i = 0; i < 50; i++) {
      expect(slow.wanted(i * 76_000)).toBe("start");
      slow.started(i * 76_000);
      slow.closed(i * 76_000 + 1_000);
    }
    expect(slow.state).toBe("backoff");
  });

  it("gives an ejected server one attempt after its time; a success forgives, a failure ejects again [host-14]", () => {
    const supervisor = new Supervisor(
      { ...RULES, restarts: { max: 0, windowMs: 1_000 }, ejectedProbeMs: 500 },
      () => 0,
    );
    supervisor.wanted(0);
    supervisor.failed(0);
    expect([supervisor.state, supervisor.nextWakeMs]).toEqual(["ejected", 500]);
    expect(supervisor.wanted(499)).toBe("refused");
    expect(supervisor.wake(499)).toBe("none");
    expect(supervisor.wake(500)).toBe("start");
    expect(supervisor.wanted(500)).toBe("wait");
    supervisor.failed(600);
    expect([supervisor.state, supervisor.nextWakeMs]).toEqual(["ejected", 1_100]);
    expect(supervisor.wanted(1_100)).toBe("start");
    supervisor.started(1_200);
    expect([supervisor.state, supervisor.failedStarts]).toEqual(["ready", 0]);
  });
});
