import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import type { EarlyTrial } from "../../contracts/upstream.js";
import { Fault, type FaultCode } from "../../protocol/errors.js";
import { Breaker, countsAsFault, isUnreached } from "./breaker.js";

const RULES = { failures: 5, openMs: 30_000 };

type Event =
  | { kind: "call"; early: EarlyTrial | undefined }
  | { kind: "end"; which: number; how: "answered" | "fault" | "unreached" | "unknown" | "late"; tool: string }
  | { kind: "pass"; ms: number };

const event: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .constantFrom<EarlyTrial | undefined>(undefined, undefined, "always", "unreached")
      .map<Event>((early) => ({ kind: "call", early })),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      kind: fc.constant("end" as const),
      which: fc.nat({ max: 20 }),
      how: fc.constantFrom("fault", "unreached", "answered", "unknown", "late", "late"),
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
    if (how === "fault" || how === "unreached") this.faults++;
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
  readonly isEarly?: boolean;
}

/** When a breaker that is open may be tried, said another way than the breaker does. */
class Dues {
  readonly #openMs: number;
  ordinaryMs = 0;
  earlyMs = 0;
  #trials = 0;
  isUnreached = false;

  constructor(openMs: number) {
    this.#openMs = openMs;
  }

  opened(nowMs: number, isUnreached: boolean): void {
    this.#trials = 0;
    this.ordinaryMs = nowMs + this.#openMs;
    this.failed(nowMs, isUnreached, true);
  }

  failed(nowMs: number, isUnreached: boolean, wasEarly: boolean): void {
    if (!wasEarly) this.ordinaryMs = nowMs + this.#openMs;
    this.earlyMs = nowMs + Math.min(1_000 * 2 ** this.#trials++, this.#openMs);
    this.isUnreached = isUnreached;
  }

  givenBack(nowMs: number, wasEarly: boolean): void {
    this.earlyMs = nowMs;
    if (!wasEarly) this.ordinaryMs = nowMs;
  }

  isDue(nowMs: number, early: EarlyTrial | undefined): boolean {
    if (nowMs >= this.ordinaryMs) return true;
    return nowMs >= this.earlyMs && (early === "always" || (early === "unreached" && this.isUnreached));
  }
}

it("a breaker opens by faults in a row only, lets exactly one trial through when it is due, that of a kept write earlier and ever more seldom, and closes by it, whatever happens [host-5]", () => {
  let trials = 0;
  let early = 0;
  fc.assert(
    fc.property(
      fc.record({ failures: fc.integer({ min: 1, max: 4 }), openMs: fc.integer({ min: 1, max: 6_000 }) }),
      fc.array(event, { minLength: 20, maxLength: 120, size: "max" }),
      (rules, events) => {
        // What it tells: opened and closed in turns, and never something that it is not.
        let told = "closed";
        let answers = 0;
        const breaker: Breaker = new Breaker(rules, {
          onTurn: (circuit) => {
            must(circuit !== told && circuit === breaker.circuit);
            told = circuit;
          },
          onAnswers: () => {
            must(breaker.circuit === "closed" && !breaker.hasMarks);
            answers++;
          },
        });
        const dues = new Dues(rules.openMs);
        const calls: Call[] = [];
        let now = 1;
        const marks = new Marks();
        for (const e of events) {
          const before = breaker.circuit;
          if (e.kind === "pass") now += e.ms;
          else if (e.kind === "call") {
            if (before === "closed") calls.push({ sinceMs: now, trial: undefined });
            else {
              const nextMs = breaker.nextTryInMs(now, e.early);
              const trial = breaker.admit(now, e.early);
              must((trial !== undefined) === (before === "open" && dues.isDue(now, e.early)));
              if (trial === undefined) must(before === "half-open" || (nextMs !== undefined && nextMs > 0));
              else {
                trials++;
                if (now < dues.ordinaryMs) early++;
                must(before === "open" && nextMs === 0);
                must(breaker.circuit === "half-open");
                calls.push({ sinceMs: now, trial, isEarly: now < dues.ordinaryMs });
              }
            }
          } else {
            const [call] = calls.splice(e.which % Math.max(1, calls.length), 1);
            if (call === undefined) continue;
            const hadMarks = breaker.hasMarks;
            const answeredBefore = answers;
            // A trial that was late leaves the decision to the next.
            if (call.trial !== undefined) breaker.tried(call.trial, e.how === "late" ? "unknown" : e.how, now);
            else if (e.how === "answered") breaker.answered();
            else if (e.how === "fault" || e.how === "unreached") {
              breaker.faulted(call.sinceMs, now, e.how === "unreached");
            } else if (e.how === "late") breaker.late({ tool: e.tool, startedMs: call.sinceMs }, now);
            if (before === "closed" && call.trial === undefined) marks.add(e.how, e.tool);
            if (before === "closed" && breaker.circuit === "open") {
              must(e.how === "fault" || e.how === "unreached" || e.how === "late");
              // By faults alone, or with late calls of more than one tool since the last answer.
              must(marks.faults >= rules.failures || marks.tools.size > 1);
              must(marks.faults + marks.late >= rules.failures);
              must(breaker.faults >= rules.failures);
              dues.opened(now, e.how === "unreached");
            }
            if (breaker.circuit === "closed" && marks.tools.size <= 1) must(breaker.faults <= marks.faults);
            if (before === "half-open" && breaker.circuit === "open") {
              if (e.how === "fault" || e.how === "unreached")
                dues.failed(now, e.how === "unreached", call.isEarly === true);
              else dues.givenBack(now, call.isEarly === true);
            }
            // Said once, by the first answer after faults.
            const isFirst = e.how === "answered" && (call.trial === undefined ? before === "closed" && hadMarks : true);
            must(answers - answeredBefore === (isFirst ? 1 : 0));
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
  expect(early).toBeGreaterThan(histories(100));
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

  it("tries a kept write after 1, 2, 4 … seconds, and others when they would have been", () => {
    const breaker = new Breaker({ failures: 1, openMs: 30_000 });
    breaker.faulted(0, 0, true);
    const triedMs: number[] = [];
    for (let nowMs = 0; nowMs < 29_000; nowMs += 500) {
      const trial = breaker.admit(nowMs, "unreached");
      if (trial === undefined) continue;
      triedMs.push(nowMs);
      breaker.tried(trial, "unreached", nowMs);
    }
    expect(triedMs).toEqual([1_000, 3_000, 7_000, 15_000]);
    expect(breaker.admit(29_999)).toBeUndefined();
    expect(breaker.admit(30_000)).toBeDefined();
  });

  it("tries a kept write that must not be lost early only where nothing reached the server before", () => {
    const breaker = new Breaker({ failures: 1, openMs: 30_000 });
    breaker.faulted(0, 0);
    expect(breaker.admit(5_000, "unreached")).toBeUndefined();
    const trial = breaker.admit(5_000, "always") ?? 0;
    breaker.tried(trial, "unreached", 5_000);
    expect(breaker.nextTryInMs(5_000, "unreached")).toBe(2_000);
    const lost = breaker.admit(7_000, "unreached") ?? 0;
    breaker.tried(lost, "fault", 7_000);
    expect(breaker.nextTryInMs(7_000, "unreached")).toBe(23_000);
    expect(breaker.nextTryInMs(7_000, "always")).toBe(4_000);
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

  it("knows that nothing reached a server by where the fault arose, not by its code alone", () => {
    expect(isUnreached(new Fault("unavailable", "Nothing listens there."))).toBe(true);
    expect(isUnreached(new Fault("unavailable", "HTTP 429.", { wire: { status: 429 } }))).toBe(false);
    expect(isUnreached(new Fault("unavailable", "It was sent.", { wire: { left: true } }))).toBe(false);
    expect(isUnreached(new Fault("outcome-unknown", "It went away."))).toBe(false);
  });

  it("counts faults of transport and protocol, and nothing else [host-6]", () => {
    const counted: FaultCode[] = ["unavailable", "outcome-unknown", "timeout", "protocol"];
    const others: FaultCode[] = ["unauthorized", "limit", "not-found", "denied", "invalid", "cancelled", "closing"];
    expect(counted.every(countsAsFault)).toBe(true);
    expect(others.some(countsAsFault)).toBe(false);
  });
});
