// Tries a server whose breaker is not closed with one call of an agent, on one connection, and tells the breaker how it
// ended. It has the clock that the breaker, a pure state machine, does not have.

import type { Caller } from "../../contracts/caller.js";
import type { OwnName } from "../../contracts/names.js";
import type { WayNotes } from "../../contracts/service.js";
import type { MessageKey, UpstreamCall } from "../../contracts/upstream.js";
import type { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import type { HopChanges } from "../../protocol/message.js";
import { faultReply, type Reply } from "../../protocol/reply.js";
import { type Breaker, type BreakerOutcome, countsAsFault, isUnreached, OverdueFault } from "./breaker.js";
import { heldBack } from "./refusals.js";

export class BreakerTrial {
  readonly #server: string;
  readonly #breaker: Breaker;
  readonly #now: () => number;
  readonly #onOutcome: () => void;
  #call: TrialCall | undefined;
  /** The number of a trial whose time was over: a ping decides about it. */
  #overdue: number | undefined;

  constructor(server: string, breaker: Breaker, now: () => number, onOutcome: () => void) {
    this.#server = server;
    this.#breaker = breaker;
    this.#now = now;
    this.#onOutcome = onOutcome;
  }

  /** For a breaker that is not closed: the call as it is to be sent, or undefined where it was refused. */
  admit(call: UpstreamCall): UpstreamCall | undefined {
    const breaker = this.#breaker;
    const number = breaker.admit(this.#now(), call.earlyTrial);
    if (number === undefined) {
      const nextTryInMs = breaker.nextTryInMs(this.#now(), call.earlyTrial);
      call.reply(faultReply(heldBack(this.#server, breaker.faults, nextTryInMs)));
      return undefined;
    }
    this.#call = new TrialCall(call, (outcome) => {
      this.#call = undefined;
      if (outcome === "overdue") this.#overdue = number;
      else this.#ended(number, outcome);
    });
    return this.#call;
  }

  /** The server was pinged since the time of a call was over. One that is well leaves the decision to the next call. */
  pinged(isGone: boolean): void {
    const number = this.#overdue;
    this.#overdue = undefined;
    if (number !== undefined) this.#ended(number, isGone ? "fault" : "unknown");
  }

  #ended(number: number, outcome: BreakerOutcome): void {
    this.#breaker.tried(number, outcome, this.#now());
    this.#onOutcome();
  }

  /** The call as it was sent: the trial, where it is the one that is tried. */
  sent(call: UpstreamCall): UpstreamCall {
    return this.#call?.inner === call ? this.#call : call;
  }
}

/** The agent's own call, with its outcome told. */
class TrialCall implements UpstreamCall {
  readonly inner: UpstreamCall;
  readonly #onOutcome: (outcome: BreakerOutcome | "overdue") => void;

  constructor(inner: UpstreamCall, onOutcome: (outcome: BreakerOutcome | "overdue") => void) {
    this.inner = inner;
    this.#onOutcome = onOutcome;
  }

  get caller(): Caller | undefined {
    return this.inner.caller;
  }

  get method(): string {
    return this.inner.method;
  }

  get subject(): OwnName | undefined {
    return this.inner.subject;
  }

  get params(): JsonObject | undefined {
    return this.inner.params;
  }

  get progressToken(): string | undefined {
    return this.inner.progressToken;
  }

  get notes(): WayNotes | undefined {
    return this.inner.notes;
  }

  get messageKey(): MessageKey | undefined {
    return this.inner.messageKey;
  }

  get isKept(): boolean {
    return this.inner.isKept === true;
  }

  get isOfTool(): boolean {
    return this.inner.isOfTool === true;
  }

  refusal(): Fault | undefined {
    return this.inner.refusal?.();
  }

  render(id: number, changes?: HopChanges): string {
    return this.inner.render(id, changes);
  }

  get wasSent(): boolean {
    return this.inner.wasSent === true;
  }

  repeated(): void {
    this.inner.repeated?.();
  }

  reply(reply: Reply): void {
    const fault = reply.kind === "error" ? reply.fault : undefined;
    this.#onOutcome(outcomeOf(fault));
    this.inner.reply(reply);
  }
}

function outcomeOf(fault: Fault | undefined): BreakerOutcome | "overdue" {
  if (fault === undefined) return "answered";
  if (fault instanceof OverdueFault) return "overdue";
  if (!countsAsFault(fault.code)) return "unknown";
  return isUnreached(fault) ? "unreached" : "fault";
}
