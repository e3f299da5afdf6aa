import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import type { FaultCode } from "../../protocol/errors.js";
import { Breaker, countsAsFault } from "./breaker.js";

const RULES = { failures: 5, openMs: 30_000 };

type Event =
  | { kind: "call" }
  | { kind: "end"; which: number; how: "answered" | "fault" | "unknown" | "late"; tool: string }
  | { kind: "pass"; ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  { weight: 6, arbitrary: fc.constant<Event>({ kind: "call" }) },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat({ max: 20 }),
      how: fc.constantFrom("fault", "fault", "answered", "unknown", "late", "late"),
      tool: fc.constantFrom("read", "write", "search"),
    }),
  },
  { weight: 4, arbitrary: fc.nat({ max: 400 }).map<Event>((ms) => ({ kind: "pass", ms })) },
);

/** `expect` is too slow to be asked a million times. */
function must(holds: boolean): void {
  if (!holds) throw new Error("this must hold");
}

/** What was told of a closed breaker's server since its last answer. */
class Marks {
  faults = 0;
  late = 0;
  readonly tools = new Set<string>();

  add(how: string, tool: string): void {
    if (how === "fault") this.faults++;
    if (how !== "late") return;
    this.late++;
    this.tools.add(tool);
  }

  clear(): void {
    this.faults = 0;
    this.late = 0;
    this.tools.clear();
  }
}

interface Call {
  readonly sinceMs: number;
  /** The number of the trial that it is. */
  readonly trial: number | undefined;
}

it("a breaker opens by faults in a row only, lets exactly one trial through and closes by it, whatever happens [host-5]", () => {
  let trials = 0;
  fc.assert(
    fc.property(
      fc.record({ failures: fc.integer({ min: 1, max: 4 }), openMs: fc.integer({ min: 1, max: 1_000 }) }),
      fc.array(event, { minLength: 20, maxLength: 120, size: "max" }),
      (rules, events) => {
        // What it tells: opened and closed in turns, and never something that it is not.
        let told = "closed";
        const breaker: Breaker = new Breaker(rules, (circuit) => {
          must(circuit !== told && circuit === breaker.circuit);
          told = circuit;
        });
        const calls: Call[] = [];
        let now = 1;
        let openedMs = 0;
        const marks = new Marks();
        for (const e of events) {
          const before = breaker.circuit;
          if (e.kind === "pass") now += e.ms;
          else if (e.kind === "call") {
            if (before === "closed") calls.push({ sinceMs: now, trial: undefined });
            else {
              const trial = breaker.admit(now);
              const isDue = before === "open" && now - openedMs >= rules.openMs;
              // One that was given back is due at once.
              if (trial === undefined) must(!isDue);
              else {
                trials++;
                must(before === "open");
                must(breaker.circuit === "half-open");
                calls.push({ sinceMs: now, trial });
              }
            }
          } else {
            const [call] = calls.splice(e.which % Math.max(1, calls.length), 1);
            if (call === undefined) continue;
            // A trial that was late leaves the decision to the next.
            if (call.trial !== undefined) breaker.tried(call.trial, e.how === "late" ? "unknown" : e.how, now);
            else if (e.how === "answered") breaker.answered();
            else if (e.how === "fault") breaker.faulted(call.sinceMs, now);
            else if (e.how === "late") breaker.late({ tool: e.tool, startedMs: call.sinceMs }, now);
            if (before === "closed" && call.trial === undefined) marks.add(e.how, e.tool);
            if (before === "closed" && breaker.circuit === "open") {
              must(e.how === "fault" || e.how === "late");
              // By faults alone, or with late calls of more than one tool since the last answer.
              must(marks.faults >= rules.failures || marks.tools.size > 1);
              must(marks.faults + marks.late >= rules.failures);
              must(breaker.faults >= rules.failures);
              openedMs = now;
            }
            if (breaker.circuit === "closed" && marks.tools.size <= 1) must(breaker.faults <= marks.faults);
            if (before === "half-open" && breaker.circuit === "open" && e.how === "fault") openedMs = now;
            if (before === "half-open" && call.trial === undefined) must(breaker.circuit === "half-open");
            if (breaker.circuit === "closed" && (e.how === "answered" || before !== "closed")) marks.clear();
            if (before !== "closed" && breaker.circuit === "closed") {
              must(call.trial !== undefined && e.how === "answered");
            }
          }
          must((breaker.circuit === "closed") === (told === "closed"));
          must(calls.filter((call) => call.trial !== undefined).length <= 1);
          must((breaker.circuit === "half-open") === calls.some((call) => call.trial !== undefined));
          if (breaker.circuit === "closed") must(breaker.faults < rules.failures);
        }
      },
    ),
    { numRuns: histories(3_000) },
  );
  expect(trials).toBeGreaterThan(histories(1_000));
});

describe("a breaker", () => {
  it("opens at the fifth fault in a row, tries one call after its time, closes when that is answered", () => {
    const breaker = new Breaker(RULES);
    for (let i = 0; i < 4; i++) breaker.faulted(i, i);
    breaker.answered();
    for (let i = 0; i < 5; i++) {
      expect(breaker.circuit).toBe("closed");
      breaker.faulted(10 + i, 10 + i);
    }
    expect([breaker.circuit, breaker.faults, breaker.nextTryInMs(14)]).toEqual(["open", 5, 30_000]);
    expect(breaker.admit(30_013)).toBeUndefined();
    const trial = breaker.admit(30_014) ?? 0;
    expect(breaker.admit(30_014)).toBeUndefined();
    expect([breaker.circuit, breaker.nextTryInMs(30_014)]).toEqual(["half-open", undefined]);
    breaker.tried(trial, "answered", 30_020);
    expect([breaker.circuit, breaker.faults]).toEqual(["closed", 0]);
  });

  it("counts one fault for calls that were under way together", () => {
    const breaker = new Breaker(RULES);
    for (let i = 0; i < 100; i++) breaker.faulted(0, 50);
    expect([breaker.circuit, breaker.faults]).toEqual(["closed", 1]);
    breaker.faulted(51, 60);
    expect(breaker.faults).toBe(2);
  });

  it("does not open for one slow tool, however often its time is over [host-6]", () => {
    const breaker = new Breaker(RULES);
    for (let i = 0; i < 100; i++) breaker.late({ tool: "build", startedMs: i }, i);
    expect([breaker.circuit, breaker.faults]).toEqual(["closed", 0]);
    // Faults count as they did, and late calls of the one tool still do not.
    for (let i = 100; i < 104; i++) breaker.faulted(i, i);
    expect(breaker.circuit).toBe("closed");
    breaker.faulted(104, 104);
    expect([breaker.circuit, breaker.faults]).toEqual(["open", 5]);
  });

  it("opens for five late calls in a row of more than one tool, and an answer between begins anew [host-6]", () => {
    const breaker = new Breaker(RULES);
    const late = (tool: string, atMs: number) => breaker.late({ tool, startedMs: atMs }, atMs);
    for (let i = 0; i < 4; i++) late(i % 2 === 0 ? "build" : "crawl", i);
    breaker.answered();
    for (let i = 10; i < 14; i++) late("build", i);
    expect(breaker.circuit).toBe("closed");
    late("crawl", 14);
    expect([breaker.circuit, breaker.faults, breaker.nextTryInMs(14)]).toEqual(["open", 5, 30_000]);
  });

  it("counts once the late calls that were under way together", () => {
    const breaker = new Breaker(RULES);
    for (let i = 0; i < 100; i++) breaker.late({ tool: `tool ${i}`, startedMs: 0 }, 50);
    expect(breaker.circuit).toBe("closed");
    // What was late is no reason to overlook a crash.
    breaker.faulted(0, 60);
    expect(breaker.faults).toBe(1);
  });

  it("tries the next call at once where it is hastened, and only while it is open", () => {
    const breaker = new Breaker({ failures: 1, openMs: 100 });
    breaker.tryNow(0);
    breaker.faulted(0, 0);
    expect(breaker.admit(50)).toBeUndefined();
    breaker.tryNow(50);
    const trial = breaker.admit(50) ?? 0;
    breaker.tryNow(51);
    expect(breaker.admit(51)).toBeUndefined();
    breaker.tried(trial, "fault", 60);
    expect([breaker.circuit, breaker.nextTryInMs(60)]).toEqual(["open", 100]);
  });

  it("tries the next call at once after a trial that was cancelled", () => {
    const breaker = new Breaker({ failures: 1, openMs: 100 });
    breaker.faulted(0, 0);
    const first = breaker.admit(100) ?? 0;
    breaker.tried(first, "unknown", 150);
    const second = breaker.admit(150);
    expect(second).toBeDefined();
    // The end of the first, told once more, says nothing of the second.
    breaker.tried(first, "answered", 160);
    expect(breaker.circuit).toBe("half-open");
    breaker.tried(second ?? 0, "fault", 170);
    expect([breaker.circuit, breaker.nextTryInMs(170)]).toEqual(["open", 100]);
  });

  it("counts faults of transport and protocol, and nothing else [host-6]", () => {
    const counted: FaultCode[] = ["unavailable", "outcome-unknown", "timeout", "protocol"];
    const others: FaultCode[] = ["unauthorized", "limit", "not-found", "denied", "invalid", "cancelled", "closing"];
    expect(counted.every(countsAsFault)).toBe(true);
    expect(others.some(countsAsFault)).toBe(false);
  });
});
