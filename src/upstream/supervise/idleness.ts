// How long a connection has been idle, and what is to be done about it: pure, looked at on every tick.

import type { Supervision } from "../../contracts/server-spec.js";

export class Idleness {
  readonly #rules: Pick<Supervision, "keepAliveMs" | "pingMs">;
  #uses = -1;
  #received = -1;
  #usedMs = 0;
  #heardMs = 0;

  constructor(rules: Pick<Supervision, "keepAliveMs" | "pingMs">) {
    this.#rules = rules;
  }

  /** `uses` and `received` only grow: calls that came, messages that the server sent. `isBusy`: a call is in flight. */
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
