// When a worker dials its broker, as a state machine without a clock: at once when somebody wants the line, then after
// waits that grow, and after five failures in a row slowly, for as long as somebody has a use for it. worker-line.ts dials.
//
//   resting ──wanted──▶ dialling ──welcomed──▶ open ──lost──▶ waiting ──time──▶ dialling
//      ▲                   └──failed──▶ waiting (until the fifth) ──▶ resting, which tries by itself now and then

import { type BackoffLimits, fullJitter } from "../../runtime/backoff.js";

/**
 * 200, 400, 800, 1,600, 2,000 ms: a broker that restarts is back within them, and a call still waits gladly. A line that was lost is dialled
 * after each of them; the first dial of all waits for nothing, and four follow it.
 */
const WAITS: BackoffLimits = { baseMs: 200, maxMs: 2_000 };
/** After so many failures in a row those who wait are told. */
const TRIES = 5;
/** A broker that was away for so long may be away for hours; lists and presence are late by this at most. */
const REST_MS = 15_000;
/** A line that stood this long did not end of its beginning: the next wait is a first one again. */
const STEADY_MS = 10_000;

type WorkerRedialState = "resting" | "dialling" | "waiting" | "open" | "refused";

export class WorkerRedial {
  /** Gives numbers in [0, 1), as Math.random. */
  readonly #random: () => number;
  #state: WorkerRedialState = "resting";
  /** Failed dials in a row, of this round. */
  #failures = 0;
  /** The place of the next wait in the row of waits. */
  #step = 0;
  #openedMs = 0;
  #dueMs: number | undefined;
  /** Somebody waits for the line: a failure begins the next try of the round. */
  #isWanted = false;

  constructor(random: () => number) {
    this.#random = random;
  }

  get state(): WorkerRedialState {
    return this.#state;
  }

  /** When wake() is to be called; undefined while there is nothing to wait for. */
  get nextWakeMs(): number | undefined {
    return this.#dueMs;
  }

  /** Somebody needs the line. "dial" is said once; until that ends, all others wait for the same. */
  wanted(): "dial" | "wait" | "refused" {
    if (this.#state === "refused") return "refused";
    if (this.#state !== "resting") {
      this.#isWanted = true;
      return "wait";
    }
    this.#isWanted = true;
    return this.#dial();
  }

  /** The time of nextWakeMs has come. */
  wake(nowMs: number): "dial" | "none" {
    if (this.#dueMs === undefined || nowMs < this.#dueMs) return "none";
    return this.#state === "waiting" || this.#state === "resting" ? this.#dial() : "none";
  }

  /** The broker has welcomed us. */
  opened(nowMs: number): void {
    this.#state = "open";
    this.#failures = 0;
    this.#isWanted = false;
    this.#openedMs = nowMs;
  }

  /** The dial failed. "given up": those who wait are told, all together. */
  failed(nowMs: number): "again" | "given up" {
    this.#failures++;
    if (this.#isWanted && this.#failures < TRIES) {
      this.#wait(nowMs);
      return "again";
    }
    this.#rest(nowMs);
    return "given up";
  }

  /** The line ended. It is dialled again: what is under way is answered through the next one. */
  lost(nowMs: number): void {
    if (nowMs - this.#openedMs >= STEADY_MS) this.#step = 0;
    this.#isWanted = true;
    this.#wait(nowMs);
  }

  /** The broker does not take us, and will not by asking again. */
  refused(): void {
    this.#state = "refused";
    this.#dueMs = undefined;
  }

  /** Nobody has a use for it any more. */
  stop(): void {
    this.#state = "resting";
    this.#dueMs = undefined;
    this.#isWanted = false;
  }

  #dial(): "dial" {
    this.#state = "dialling";
    this.#dueMs = undefined;
    return "dial";
  }

  #wait(nowMs: number): void {
    this.#state = "waiting";
    this.#dueMs = nowMs + fullJitter(this.#step++, this.#random(), WAITS);
  }

  /** Half of the time is left to chance: the many workers of a broker do not come back together. */
  #rest(nowMs: number): void {
    this.#state = "resting";
    this.#isWanted = false;
    this.#failures = 0;
    this.#step = 0;
    this.#dueMs = nowMs + REST_MS * (0.5 + 0.5 * this.#random());
  }
}
