// Whether a server still lives: asks it for a sign of life, and waits a short time. What follows is supervised.ts's.

import type { UpstreamCall } from "../../contracts/upstream.js";
import { ask, ServerError } from "../link/own-call.js";

/** A ping is answered in milliseconds; five seconds forgive a machine that swaps. */
const PULSE_MS = 5_000;

/** The connection, as far as it is needed here. */
export interface PulsePlace {
  /** What every server of the era answers: `ping`, or `server/discover`. */
  readonly method: string;
  /** How much has come so far. */
  received(): number;
  send(call: UpstreamCall): void;
  cancel(call: UpstreamCall, reason: string | undefined): void;
}

/** One of these for each connection. */
export class Pulse {
  readonly #waitMs: number;
  /** It has answered such a question. Some servers never do, and are well. */
  #answers = false;
  #asking = false;

  constructor(waitMs = PULSE_MS) {
    this.#waitMs = waitMs;
  }

  /** True where nothing came, though it was asked. `onlyIfKnown`: and it is known to answer when it is well. */
  async isGone(place: PulsePlace, onlyIfKnown: boolean): Promise<boolean> {
    if (this.#asking) return false;
    this.#asking = true;
    const before = place.received();
    try {
      await ask(place, place.method, {}, AbortSignal.timeout(this.#waitMs));
      this.#answers = true;
      return false;
    } catch (error) {
      // "I do not know that method" is an answer.
      if (error instanceof ServerError) this.#answers = true;
      return place.received() === before && (this.#answers || !onlyIfKnown);
    } finally {
      this.#asking = false;
    }
  }
}
