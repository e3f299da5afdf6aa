// Where calls meet the breaker of their server, on one connection: all pass while it is closed, afterwards one is tried.

import type { UpstreamCall } from "../../contracts/upstream.js";
import { faultReply } from "../../protocol/reply.js";
import type { Breaker } from "./breaker.js";
import { ProbeCall } from "./probe-call.js";
import { heldBack } from "./refusals.js";

export class Gate {
  readonly #server: string;
  readonly #breaker: Breaker;
  readonly #now: () => number;
  readonly #onChange: () => void;
  #probe: ProbeCall | undefined;

  constructor(server: string, breaker: Breaker, now: () => number, onChange: () => void) {
    this.#server = server;
    this.#breaker = breaker;
    this.#now = now;
    this.#onChange = onChange;
  }

  get isShut(): boolean {
    return this.#breaker.circuit !== "closed";
  }

  /** For a gate that is shut: the call as it may be sent, or undefined where it was refused. */
  pass(call: UpstreamCall): UpstreamCall | undefined {
    const breaker = this.#breaker;
    const number = breaker.admit(this.#now());
    if (number === undefined) {
      call.reply(faultReply(heldBack(this.#server, breaker.strikes, breaker.nextTryInMs(this.#now()))));
      return undefined;
    }
    this.#probe = new ProbeCall(call, (outcome) => {
      this.#probe = undefined;
      breaker.probed(number, outcome, this.#now());
      this.#onChange();
    });
    return this.#probe;
  }

  /** The call as it was sent. */
  sent(call: UpstreamCall): UpstreamCall {
    return this.#probe?.inner === call ? this.#probe : call;
  }
}
