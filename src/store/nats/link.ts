// Whether the engine is there, since when, and when it is tried again: a state machine without I/O and clock, which
// connection.ts drives. Several gateways that lost one engine come back spread out.

import type { EngineStatus } from "../../contracts/engine/engine.js";
import { type BackoffLimits, backoffCeiling } from "../../runtime/backoff.js";

/** A node that restarts is back in a second or two, and calls wait meanwhile; a dial that is refused costs next to nothing. */
const AWAY: BackoffLimits = { baseMs: 100, maxMs: 2_000 };

/** A wrong secret is mended by people; faster tries only fill the engine's log, and lock some accounts. */
const REFUSED: BackoffLimits = { baseMs: 1_000, maxMs: 60_000 };

/**
 * Gateways and brokers write signs of life, every three seconds once they keep something and every ten before, and are told their
 * own: whoever is told nothing for so long is connected to nodes without a leader. Elections of 4 to 15 s were measured, and one sign
 * of life that comes late, or not at all, is no silence.
 */
const MUTE_MS = 25_000;
const MUTE =
  "It tells nothing, though it is connected: none of its nodes leads, as where a majority of them is away, or what was kept in it is gone.";
/** Of looks: whoever stood still for longer has not heard yet what came meanwhile. */
const STOOD_MS = 5_000;

/** Whether it takes writes is not known while it is away. */
const UNASKED = { full: undefined, mute: undefined };

export class EngineLink {
  #status: EngineStatus;
  #heardMs = Number.POSITIVE_INFINITY;
  #lookedMs = Number.NEGATIVE_INFINITY;
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
      mute: undefined,
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
    this.#heardMs = nowMs;
    this.#status = {
      state: "connected",
      sinceMs: nowMs,
      node,
      version,
      nextTryMs: undefined,
      problem: undefined,
      full: undefined,
      mute: undefined,
    };
  }

  /** It was asked to keep something; `full` is why it had no room for it, undefined where it took it. */
  wrote(full: string | undefined, nowMs: number): void {
    // Somebody leads who refuses it; and nothing is told, since nothing is written.
    if (full !== undefined) this.heard(nowMs);
    const before = this.#status;
    // While it is away nobody knows.
    if (before.state !== "connected" || (before.full === undefined) === (full === undefined)) return;
    this.#status = { ...before, full };
  }

  /** It told something of what is kept in it. */
  heard(nowMs: number): void {
    this.#heardMs = nowMs;
    if (this.#status.mute !== undefined) this.#status = { ...this.#status, mute: undefined };
  }

  /** Asked every second, where something is heard of it as long as it works. */
  look(nowMs: number): void {
    const hasStood = nowMs - this.#lookedMs > STOOD_MS;
    this.#lookedMs = nowMs;
    const { state, mute } = this.#status;
    if (hasStood || state !== "connected" || mute !== undefined || nowMs - this.#heardMs < MUTE_MS) return;
    this.#status = { ...this.#status, mute: { sinceMs: this.#heardMs, why: MUTE } };
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
    this.#status = { ...this.#status, state: "closed", sinceMs: nowMs, nextTryMs: undefined, problem, ...UNASKED };
  }

  #leave(state: "away" | "refused", problem: string, nowMs: number): void {
    const before = this.#status;
    // A refusal says more than the closed socket that follows it.
    if (this.#isClosed() || (before.state === "refused" && state === "away")) return;
    // Since when it is gone, not since when it is known why.
    const sinceMs = before.state === "connected" || before.state === "connecting" ? nowMs : before.sinceMs;
    this.#status = { ...before, state, sinceMs, problem, nextTryMs: nowMs + this.#waitMs, ...UNASKED };
  }

  #isClosed(): boolean {
    return this.#status.state === "closed";
  }
}
