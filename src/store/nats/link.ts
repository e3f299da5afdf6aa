// Whether the engine is there, since when, and when it is tried again: a state machine without I/O and clock, which
// connection.ts drives. Several gateways that lost one engine come back spread out.

import type { EngineStatus } from "../../contracts/engine/engine.js";
import { type BackoffLimits, backoffCeiling } from "../../runtime/backoff.js";

/** A node that restarts is back in a second or two, and calls wait meanwhile; a dial that is refused costs next to nothing. */
const AWAY: BackoffLimits = { baseMs: 100, maxMs: 2_000 };

/** A wrong secret is mended by people; faster tries only fill the engine's log, and lock some accounts. */
const REFUSED: BackoffLimits = { baseMs: 1_000, maxMs: 60_000 };

export class EngineLink {
  #status: EngineStatus;
  /** Dials since the last connection. */
  #dials = 0;
  #waitMs = 0;
  readonly #random: () => number;

  constructor(nowMs: number, random: () => number) {
    this.#random = random;
    this.#status = {
      state: "connecting",
      sinceMs: nowMs,
      node: undefined,
      version: undefined,
      nextTryMs: nowMs,
      problem: undefined,
      full: undefined,
    };
  }

  get status(): EngineStatus {
    return this.#status;
  }

  /** How long after its last dial a node is dialled again. Each node is tried once at once. */
  get waitMs(): number {
    return this.#waitMs;
  }

  /** A node is being dialled, the first or the next of `nodes`. */
  dialling(nodes: number, nowMs: number): void {
    if (this.#isClosed()) return;
    const round = Math.floor(this.#dials / Math.max(1, nodes));
    this.#dials++;
    const ceiling = backoffCeiling(round, this.#status.state === "refused" ? REFUSED : AWAY);
    // Half of it for certain: a dial that is refused at once would otherwise be repeated without a pause.
    this.#waitMs = ceiling / 2 + (this.#random() * ceiling) / 2;
    if (this.#status.state !== "connected") this.#status = { ...this.#status, nextTryMs: nowMs + this.#waitMs };
  }

  connected(node: string, version: string, nowMs: number): void {
    if (this.#isClosed()) return;
    this.#dials = 0;
    this.#waitMs = 0;
    this.#status = {
      state: "connected",
      sinceMs: nowMs,
      node,
      version,
      nextTryMs: undefined,
      problem: undefined,
      full: undefined,
    };
  }

  /** It was asked to keep something; `full` is why it had no room for it, undefined where it took it. */
  wrote(full: string | undefined): void {
    const before = this.#status;
    // While it is away nobody knows.
    if (before.state !== "connected" || (before.full === undefined) === (full === undefined)) return;
    this.#status = { ...before, full };
  }

  lost(problem: string, nowMs: number): void {
    this.#leave("away", problem, nowMs);
  }

  /** Somebody answered, with a no. It may come before or after the loss of the connection. */
  refused(problem: string, nowMs: number): void {
    this.#leave("refused", problem, nowMs);
  }

  closed(problem: string | undefined, nowMs: number): void {
    if (this.#isClosed()) return;
    this.#status = { ...this.#status, state: "closed", sinceMs: nowMs, nextTryMs: undefined, problem, full: undefined };
  }

  #leave(state: "away" | "refused", problem: string, nowMs: number): void {
    const before = this.#status;
    // A refusal says more than the closed socket that follows it.
    if (this.#isClosed() || (before.state === "refused" && state === "away")) return;
    // Since when it is gone, not since when it is known why.
    const sinceMs = before.state === "connected" || before.state === "connecting" ? nowMs : before.sinceMs;
    this.#status = { ...before, state, sinceMs, problem, nextTryMs: nowMs + this.#waitMs, full: undefined };
  }

  #isClosed(): boolean {
    return this.#status.state === "closed";
  }
}
