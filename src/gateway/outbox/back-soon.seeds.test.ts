// Lanes and breaker together, through random absences of a server to which nobody makes calls but the outbox: how soon it
// has what was kept for it, and that not all of that arrives in the moment of its return.

import { expect, it } from "vitest";
import { histories } from "../../../test/faults/length.js";
import { randomOf } from "../../../test/faults/random.js";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxTerms } from "../../contracts/outbox.js";
import type { KeptWrite } from "../../outbox/lanes/lane.js";
import { Lanes } from "../../outbox/lanes/lanes.js";
import type { Result, Step } from "../../outbox/lanes/step.js";
import { Breaker } from "../../upstream/supervise/breaker.js";

const SEEDS = histories(2_000);
const WALL_MS = Date.UTC(2026, 0, 1);
const SERVER = "tracker";
const ANSWER_MS = 20;
const TERMS: OutboxTerms = {
  key: undefined,
  lane: { by: "principal" },
  maxAgeMs: 86_400_000,
  onUnknown: "skip",
  confirm: undefined,
  tells: true,
};
const KEYED: OutboxTerms = { ...TERMS, key: { in: "argument", path: ["request_id"] } };

/** A server that is away from 0 on, and what goes to it. */
class Absence {
  readonly #random: () => number;
  readonly #lanes: Lanes;
  readonly #breaker: Breaker;
  readonly #awayMs: number;
  /** What is to happen by itself, in no order. */
  #due: { readonly atMs: number; readonly act: () => void }[] = [];
  #nowMs = 0;
  #inFlight = 0;
  #made = 0;
  done = 0;
  /** The most that was under way at once before the first answer after the return. */
  mostAtFirst = 0;
  lastMs = 0;

  constructor(seed: number, awayMs: number, failures: number) {
    this.#random = randomOf(seed);
    this.#awayMs = awayMs;
    const limits = { maxWrites: 1_000, maxBytes: 1e9 };
    this.#lanes = new Lanes({ random: this.#random, hasWaiters: () => false, limits });
    this.#lanes.start(0, WALL_MS);
    this.#breaker = new Breaker(
      { failures, openMs: 30_000 },
      { onAnswers: () => this.#later(0, () => this.#do(this.#lanes.answers(SERVER, this.#nowMs, this.#wallMs))) },
    );
  }

  get #wallMs(): number {
    return WALL_MS + this.#nowMs;
  }

  #later(ms: number, act: () => void): void {
    this.#due.push({ atMs: this.#nowMs + ms, act });
  }

  take(atMs: number): void {
    this.#due.push({ atMs, act: () => this.#accept() });
  }

  #accept(): void {
    const id = `w${this.#made++}`;
    const isKeyed = this.#random() < 0.5;
    const accepted = this.#lanes.accept(
      {
        id,
        server: SERVER,
        tool: ownToolName("create"),
        principal: { id: "p", role: "agent" },
        lane: this.#random() < 0.3 ? undefined : `lane ${Math.floor(this.#random() * 4)}`,
        key: id,
        keyHash: id,
        argumentsHash: id,
        terms: isKeyed ? KEYED : TERMS,
        era: "legacy",
        version: "2025-06-18",
        takenMs: this.#wallMs,
        bytes: 100,
      },
      this.#nowMs,
    );
    if (accepted.kind !== "taken") throw new Error(accepted.kind);
    this.#do(this.#lanes.committed(accepted.write, this.#nowMs, this.#wallMs));
  }

  #do(steps: readonly Step[]): void {
    for (const step of steps) if (step.do === "send") this.#later(0, () => this.#send(step.write));
  }

  /** As the way to a server does it, whose address refuses connections while nothing is there. */
  #send(write: KeptWrite): void {
    const early = write.isKeyed ? "always" : "unreached";
    const isAway = this.#nowMs < this.#awayMs;
    const breaker = this.#breaker;
    let trial: number | undefined;
    if (breaker.circuit !== "closed") {
      trial = breaker.admit(this.#nowMs, early);
      if (trial === undefined) {
        const heldForMs = breaker.nextTryInMs(this.#nowMs, early);
        this.#came(write, { kind: "not-sent", why: "held back", heldForMs });
        return;
      }
    }
    if (isAway) {
      if (trial === undefined) breaker.faulted(this.#nowMs, this.#nowMs, true);
      else breaker.tried(trial, "unreached", this.#nowMs);
      this.#came(write, { kind: "not-sent", why: "nothing listens there" });
      return;
    }
    this.#inFlight++;
    if (this.done === 0) this.mostAtFirst = Math.max(this.mostAtFirst, this.#inFlight);
    this.#later(ANSWER_MS, () => {
      this.#inFlight--;
      this.done++;
      this.lastMs = this.#nowMs;
      if (trial === undefined) breaker.answered();
      else breaker.tried(trial, "answered", this.#nowMs);
      this.#came(write, { kind: "answered", failed: false });
    });
  }

  #came(write: KeptWrite, result: Result): void {
    this.#do(this.#lanes.result(write, result, this.#nowMs, this.#wallMs));
  }

  /** Until everything is done, or that time. */
  run(untilMs: number): void {
    while (this.done < this.#made || this.#due.length > 0) {
      this.#due.sort((a, b) => a.atMs - b.atMs);
      const [next] = this.#due;
      const wakeMs = this.#lanes.nextWakeMs;
      this.#nowMs = Math.max(this.#nowMs, Math.min(next?.atMs ?? untilMs, wakeMs));
      if (this.#nowMs > untilMs) return;
      if (next !== undefined && next.atMs <= this.#nowMs) {
        this.#due.shift();
        next.act();
      } else this.#do(this.#lanes.wake(this.#nowMs, this.#wallMs));
    }
  }
}

it(`a server that was away has what was kept for it after at most as long again, one write first, in ${SEEDS} histories with a breaker and nobody else who calls [ack-is-durable]`, () => {
  let quick = 0;
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = randomOf(seed * 7_919);
    // Most are restarts of some seconds.
    const awayMs = 50 + random() * (random() < 0.8 ? 6_000 : 90_000);
    const absence = new Absence(seed, awayMs, 1 + Math.floor(random() * 8));
    const count = 1 + Math.floor(random() * 20);
    for (let n = 0; n < count; n++) absence.take(random() * awayMs);
    absence.run(awayMs + 3_600_000);
    const said = `seed ${seed}, away for ${awayMs} ms`;
    expect(absence.done, said).toBe(count);
    // And as long as the answers of a lane take, one after the other.
    const mostMs = Math.min(30_000, Math.max(1_000, awayMs)) + 1_000 + count * ANSWER_MS;
    expect(absence.lastMs - awayMs, said).toBeLessThan(mostMs);
    expect(absence.mostAtFirst, said).toBe(1);
    if (absence.lastMs - awayMs < 5_000) quick++;
  }
  expect(quick).toBeGreaterThan(SEEDS * 0.7);
});
