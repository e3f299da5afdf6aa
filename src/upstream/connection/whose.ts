// Whose call caused a message of a server. Calls that nobody waits for any more count too, for a while: the server may
// still be at them. What becomes of the message is unasked.ts.

import type { Caller } from "../../contracts/caller.js";
import type { Ticket } from "../link/link.js";
import type { Flight } from "./flight.js";
import type { Flights } from "./flights.js";

/**
 * A call that was taken back or timed out may still make the server ask something, and on a pipe nothing tells that
 * it is about that call. For so long, nobody else is asked in its place.
 */
const ABANDONED_MS = 30_000;
/** Such calls that are remembered; the oldest are forgotten first. */
const MAX_ABANDONED = 1_000;

export class Whose {
  readonly #flights: Flights;
  /** The one agent of a connection that is not shared. */
  readonly #owner: Caller | undefined;
  /** By id, oldest first. */
  readonly #abandoned = new Map<number, { readonly sessionKey: string; readonly untilMs: number }>();

  constructor(flights: Flights, owner: Caller | undefined) {
    this.#flights = flights;
    this.#owner = owner;
  }

  /**
   * Its exchange tells, and then nobody else's will do, even if that call has ended; else that one session alone is
   * calling.
   */
  callerOf(ticket: Ticket | undefined): Caller | undefined {
    if (ticket !== undefined) return this.#flights.get(ticket.id)?.call.caller ?? this.#owner;
    let found: Caller | undefined;
    // Of one session's calls the newest: it is the likeliest to be at work.
    let newest = 0;
    for (const { id, call } of this.#flights.values()) {
      if (call.caller === undefined) continue;
      if (found !== undefined && found.sessionKey !== call.caller.sessionKey) return this.#owner;
      if (id < newest) continue;
      newest = id;
      found = call.caller;
    }
    for (const { sessionKey } of this.#abandoned.values()) if (found?.sessionKey !== sessionKey) return this.#owner;
    return found ?? this.#owner;
  }

  /** Nobody waits for this one any more. */
  abandon({ id, call: { caller } }: Flight, nowMs: number): void {
    if (caller === undefined || this.#owner !== undefined) return;
    this.#abandoned.set(id, { sessionKey: caller.sessionKey, untilMs: nowMs + ABANDONED_MS });
    const oldest = this.#abandoned.size > MAX_ABANDONED ? this.#abandoned.keys().next().value : undefined;
    if (oldest !== undefined) this.#abandoned.delete(oldest);
  }

  /** The server has answered after all: it is done with it. */
  answeredLate(id: number): void {
    this.#abandoned.delete(id);
  }

  expire(nowMs: number): void {
    for (const [id, { untilMs }] of this.#abandoned) {
      if (untilMs > nowMs) break;
      this.#abandoned.delete(id);
    }
  }
}
