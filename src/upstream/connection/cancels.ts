// Calls on one connection that are taken back, or whose time is over: what the server is told of it, and whether an answer is still
// waited for.

import type { UpstreamCall } from "../../contracts/upstream.js";
import type { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { takenBack } from "../link/cancelled-call.js";
import type { Link } from "../link/link.js";
import type { CallEndings, PendingCall, PendingCalls } from "./in-flight.js";

/**
 * The answer of a kept write is waited for so long after it was taken back: a round trip around the world, and what a server needs
 * to write it. What is behind it in its lane waits for that.
 */
const CROSSING_MS = 1_000;

export interface CancelsOptions {
  readonly inFlight: PendingCalls;
  readonly endings: CallEndings;
  /** The one in use; undefined once the connection is closed. */
  readonly link: () => Link | undefined;
  /** What its server asked for a call is asked no more. */
  readonly callEnded: (pending: PendingCall) => void;
}

export class Cancels {
  readonly #options: CancelsOptions;

  constructor(options: CancelsOptions) {
    this.#options = options;
  }

  cancel(call: UpstreamCall, reason: string | undefined): void {
    const pending = this.#options.inFlight.of(call);
    if (pending === undefined) return;
    pending.isTakenBack = true;
    const neverLeft = pending.waitsFor !== undefined || (this.#options.link()?.withdraw?.(pending) ?? false);
    if (typeof neverLeft === "boolean") this.#takenBack(pending, reason, neverLeft);
    else void neverLeft.then((is) => this.#takenBack(pending, reason, is));
  }

  /** Nobody waits for it any more. */
  abandon(pending: PendingCall, reason: string | undefined, fault: Fault): void {
    if (isCancelledByMessage(pending)) this.#tell(pending, reason);
    this.#letGo(pending, fault);
  }

  #takenBack(pending: PendingCall, reason: string | undefined, neverLeft: boolean): void {
    // It may have been answered while somebody else was asked.
    if (!this.#isInFlight(pending)) return;
    const fault = takenBack(reason, neverLeft && pending.call.wasSent !== true);
    if (neverLeft || pending.call.isKept !== true) this.abandon(pending, reason, fault);
    else this.#awaitAnswer(pending, reason, fault);
  }

  /** What was done is called done where its answer is here already, or crosses the word that it was taken back. */
  #awaitAnswer(pending: PendingCall, reason: string | undefined, fault: Fault): void {
    const end = () => {
      if (this.#isInFlight(pending)) this.#letGo(pending, fault);
    };
    // Where its exchange is closed for that, only what has come by now is still read.
    if (isCancelledByMessage(pending)) {
      this.#tell(pending, reason);
      setTimeout(end, CROSSING_MS).unref();
    } else setImmediate(end);
  }

  #isInFlight(pending: PendingCall): boolean {
    return this.#options.inFlight.get(pending.id) === pending;
  }

  #tell({ id }: PendingCall, reason: string | undefined): void {
    const params: JsonObject = { requestId: id, ...(reason === undefined ? {} : { reason }) };
    const text = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#options.link()?.send(text, undefined);
  }

  #letGo(pending: PendingCall, fault: Fault): void {
    this.#options.endings.abandon(pending, fault);
    if (pending.questions > 0) this.#options.callEnded(pending);
  }
}

/** What was not sent needs no message. The handshake cannot be taken back, says the protocol. Over HTTP a modern request is, by closing its exchange. */
function isCancelledByMessage({ method, headers, waitsFor }: PendingCall): boolean {
  return method !== "initialize" && method !== "server/discover" && headers === undefined && waitsFor === undefined;
}
