// How a request in flight ends other than by its answer: it fails, is taken back, or is lost with its connection. What
// that says of the server goes to its breaker.

import type { UpstreamCall } from "../../contracts/upstream.js";
import type { Fault } from "../../protocol/errors.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { faultReply } from "../../protocol/reply.js";
import type { Link } from "../link/link.js";
import type { ModernSide } from "../modern/side.js";
import { type Breaker, countsAsFault } from "../supervise/breaker.js";
import type { Flight } from "./flight.js";
import type { Flights } from "./flights.js";
import type { Whose } from "./whose.js";

/** What becomes of calls that did not reach the server, or did and may be made again. */
export interface Returns {
  /** The call never reached the server; the connection may be gone as well. */
  onUnsent(call: UpstreamCall, fault: Fault): void;
  /** Whether to make the call twice does no harm. */
  isRepeatable(call: UpstreamCall): boolean;
  /** Such a call was sent, and the way to the server was lost under it; `fault` is what to tell if it ends here. */
  onLost(call: UpstreamCall, fault: Fault): void;
}

/** The connection, as far as it is needed here. */
export interface EndingsPlace {
  readonly flights: Flights;
  readonly whose: Whose;
  readonly breaker: Breaker;
  readonly returns: Returns;
  readonly now: () => number;
  link(): Link;
  modern(): ModernSide | undefined;
  isClosed(): boolean;
}

export class Endings {
  readonly #at: EndingsPlace;

  constructor(place: EndingsPlace) {
    this.#at = place;
  }

  settle(flight: Flight): void {
    this.#at.flights.delete(flight);
    this.#at.link().forget(flight);
  }

  /** The answer has come. */
  answered(flight: Flight): void {
    this.settle(flight);
    const { breaker } = this.#at;
    if (breaker.strikes > 0 && flight.call.caller !== undefined) breaker.answered();
  }

  fail(flight: Flight, fault: Fault): void {
    this.settle(flight);
    this.#strike(flight, fault);
    flight.call.reply(faultReply(fault));
  }

  /** It never reached the server. What the gateway itself asks is tried again by whoever asked. */
  unsent(flight: Flight, fault: Fault): void {
    if (flight.call.caller === undefined) this.fail(flight, fault);
    else this.#giveBack(flight, fault, (call) => this.#at.returns.onUnsent(call, fault));
  }

  /** The way to the server was lost under the call: it is made again where that does no harm. */
  lose(flight: Flight, fault: Fault): void {
    const { returns } = this.#at;
    if (flight.call.caller === undefined || !returns.isRepeatable(flight.call)) this.fail(flight, fault);
    else this.#giveBack(flight, fault, (call) => returns.onLost(call, fault));
  }

  /** Nobody waits for it any more. */
  abandon(flight: Flight, reason: string | undefined, fault: Fault): void {
    this.#tellCancelled(flight, reason);
    this.#at.whose.abandon(flight, this.#at.now());
    this.fail(flight, fault);
  }

  #giveBack(flight: Flight, fault: Fault, to: (call: UpstreamCall) => void): void {
    this.settle(flight);
    this.#strike(flight, fault);
    const modern = this.#at.modern();
    const call = modern === undefined ? flight.call : modern.released(flight.call, fault);
    if (call !== undefined) to(call);
  }

  /** Only what agents ask says how a server does: its handshakes and lists may well be all that works. */
  #strike({ call, startedMs }: Flight, fault: Fault): void {
    if (call.caller !== undefined && countsAsFault(fault.code)) this.#at.breaker.faulted(startedMs, this.#at.now());
  }

  #tellCancelled(flight: Flight, reason: string | undefined): void {
    const params: JsonObject = { requestId: flight.id, ...(reason === undefined ? {} : { reason }) };
    // The handshake cannot be taken back, says the protocol. Over HTTP a modern request is, by closing its exchange.
    if (flight.method === "initialize" || flight.method === "server/discover" || flight.headers !== undefined) return;
    if (this.#at.isClosed()) return;
    const text = JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params });
    this.#at.link().send(text, undefined);
  }
}
