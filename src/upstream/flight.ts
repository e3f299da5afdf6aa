// One request in flight on a connection: its id there, its deadline, and what it is for.

import type { UpstreamCall } from "../upstream.js";
import type { Ticket } from "./link.js";

export class Flight implements Ticket {
  readonly id: number;
  readonly call: UpstreamCall;
  readonly timeoutMs: number;
  /** Moved on by progress. */
  deadlineMs: number;
  /** What a modern server wants beside the body, over HTTP. */
  headers: readonly string[] | undefined;

  constructor(id: number, call: UpstreamCall, timeoutMs: number, nowMs: number) {
    this.id = id;
    this.call = call;
    this.timeoutMs = timeoutMs;
    this.deadlineMs = nowMs + timeoutMs;
  }

  get method(): string {
    return this.call.method;
  }

  get subject(): string | undefined {
    return this.call.subject;
  }
}
