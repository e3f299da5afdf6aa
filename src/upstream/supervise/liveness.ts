// Whether a server is still there and still needed: how long its connection has been idle, and a ping where nothing was
// heard of it. The driver does what follows.

import type { Supervision } from "../../contracts/server-spec.js";
import { ServerError } from "../link/own-call.js";

/** A ping is answered in milliseconds; five seconds are enough even for a machine that swaps. */
const PING_MS = 5_000;

/** Decides what to do about a connection that is idle. It is pure: it is asked on every tick, and told the time. */
export class Idleness {
  readonly #rules: Pick<Supervision, "keepAliveMs" | "pingMs">;
  #uses = -1;
  #received = -1;
  #usedMs: number;
  #heardMs = 0;

  constructor(rules: Pick<Supervision, "keepAliveMs" | "pingMs">, nowMs: number) {
    this.#rules = rules;
    this.#usedMs = nowMs;
  }

  /** When it was last used; what came since the last look came just now. */
  usedAt(nowMs: number, uses: number): number {
    return uses === this.#uses ? this.#usedMs : nowMs;
  }

  /**
   * `uses` counts calls that came, `received` messages of the server; both only grow. `isBusy`: a call is in flight.
   */
  look(nowMs: number, uses: number, received: number, isBusy: boolean): "nothing" | "rest" | "ping" {
    const { keepAliveMs, pingMs } = this.#rules;
    if (isBusy || uses !== this.#uses) this.#usedMs = nowMs;
    if (received !== this.#received) this.#heardMs = nowMs;
    this.#uses = uses;
    this.#received = received;
    if (isBusy) return "nothing";
    if (keepAliveMs !== undefined && nowMs - this.#usedMs >= keepAliveMs) return "rest";
    if (pingMs === undefined || nowMs - this.#heardMs < pingMs) return "nothing";
    this.#heardMs = nowMs;
    return "ping";
  }
}

/** A connection, as far as it is pinged. */
export interface Pingable {
  /** How much has come so far. */
  readonly received: number;
  /** Rejects with a ServerError where the server answers with an error. */
  ping(signal: AbortSignal): Promise<void>;
}

/** Finds out whether the server of one connection still lives. */
export class Liveness {
  readonly #waitMs: number;
  /** True once it has answered a ping. Some servers never do, and are well. */
  #answers = false;
  /** The ping that is under way: true where nothing came. */
  #silence: Promise<boolean> | undefined;

  constructor(waitMs = PING_MS) {
    this.#waitMs = waitMs;
  }

  /**
   * True where nothing came, though it was pinged. `onlyIfKnown`: only where it has answered a ping before. It is pinged
   * once at a time, and all who ask meanwhile hear of that.
   */
  async isGone(connection: Pingable, onlyIfKnown: boolean): Promise<boolean> {
    this.#silence ??= this.#isSilent(connection);
    return (await this.#silence) && (this.#answers || !onlyIfKnown);
  }

  async #isSilent(connection: Pingable): Promise<boolean> {
    const before = connection.received;
    try {
      await connection.ping(AbortSignal.timeout(this.#waitMs));
      this.#answers = true;
      return false;
    } catch (error) {
      // "I do not know that method" is an answer.
      if (error instanceof ServerError) this.#answers = true;
      return connection.received === before;
    } finally {
      this.#silence = undefined;
    }
  }
}
