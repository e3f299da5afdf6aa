// The requests in flight on one connection, by our id and by call: how many there may be, how long each may take, and
// what it is told when it does not end well. Sending and answering are the connection's.

import type { ServerSpec } from "../../contracts/server-spec.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import { Fault } from "../../protocol/errors.js";
import { Table } from "../../runtime/table.js";
import { Flight } from "./flight.js";

/** Calls in flight on one connection. Far above what agents do; a bound so that a hung server cannot eat memory. */
const MAX_IN_FLIGHT = 10_000;

export class Flights {
  readonly #spec: ServerSpec;
  readonly #byId = new Table<number, Flight>();
  #nextId = 1;

  constructor(spec: ServerSpec) {
    this.#spec = spec;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Why there is no room for one more, if so. */
  get full(): Fault | undefined {
    if (this.#byId.size < MAX_IN_FLIGHT) return undefined;
    const { name } = this.#spec;
    return new Fault("limit", `Server "${name}" has ${MAX_IN_FLIGHT} calls in flight; this one was not sent.`);
  }

  /** A flight with an id of its own, not yet in the table: what is sent may still turn out not to be sendable. */
  make(call: UpstreamCall, nowMs: number): Flight {
    const timeoutMs = this.#timeoutOf(call);
    const longestMs = Math.max(timeoutMs, this.#spec.supervision.callCeilingMs);
    return new Flight(this.#nextId++, call, timeoutMs, longestMs, nowMs);
  }

  add(flight: Flight): void {
    this.#byId.set(flight.id, flight);
  }

  get(id: number): Flight | undefined {
    return this.#byId.get(id);
  }

  /** By a walk: only calls that are taken back are looked for this way. */
  of(call: UpstreamCall): Flight | undefined {
    for (const flight of this.#byId.values()) if (flight.call === call) return flight;
    return undefined;
  }

  delete(flight: Flight): void {
    this.#byId.delete(flight.id);
  }

  /** In no order. */
  values(): Iterable<Flight> {
    return this.#byId.values();
  }

  /** A copy, in the order in which they were sent: so they end, and so they are sent again. */
  inOrder(): Flight[] {
    return [...this.#byId.values()].sort((a, b) => a.id - b.id);
  }

  /** Those whose time is over, each with what it is to be told. `isAsking`: the agent of that session is being asked. */
  *overdue(nowMs: number, isAsking: (sessionKey: string) => boolean): Iterable<readonly [Flight, Fault]> {
    for (const flight of this.inOrder()) {
      const { caller } = flight.call;
      // The server waits for the agent, and a person may think for minutes; the question has a deadline of its own.
      if (caller !== undefined && isAsking(caller.sessionKey)) flight.extend(nowMs);
      if (flight.deadlineMs > nowMs) continue;
      const { method, subject, startedMs, ceilingMs } = flight;
      const what = subject === undefined ? method : `${method} ${subject}`;
      const time =
        flight.deadlineMs < ceilingMs || flight.timeoutMs >= ceilingMs - startedMs
          ? `within ${flight.timeoutMs} ms`
          : `within ${ceilingMs - startedMs} ms, in spite of all progress`;
      const message = `Server "${this.#spec.name}" did not answer ${what} ${time}. It may still be working on it.`;
      yield [flight, new Fault("timeout", message)];
    }
  }

  /** What a call is told whose server went away. What the gateway itself asked had no effect to be in doubt of. */
  lost(flight: Flight, fault: Fault): Fault {
    if (flight.call.caller === undefined) return fault;
    const what = flight.subject ?? flight.method;
    const message = `Server "${this.#spec.name}" went away before it answered ${what} (${fault.message}). Whether the call took effect is unknown.`;
    return new Fault("outcome-unknown", message, { cause: fault });
  }

  #timeoutOf(call: UpstreamCall): number {
    if (call.method === "subscriptions/listen") return Number.POSITIVE_INFINITY;
    return call.caller === undefined ? this.#spec.connectTimeoutMs : this.#spec.callTimeoutMs;
  }
}
