// One request in flight on a connection: its id there, its deadline, and what it is for.

import type { UpstreamCall } from "../../contracts/upstream.js";
import type { Ticket } from "../link/link.js";

export class Flight implements Ticket {
  readonly id: number;
  readonly call: UpstreamCall;
  readonly timeoutMs: number;
  readonly startedMs: number;
  /** Where progress ends to move the deadline on. */
  readonly ceilingMs: number;
  deadlineMs: number;
  /** What a modern server wants beside the body, over HTTP. */
  headers: readonly string[] | undefined;

  constructor(id: number, call: UpstreamCall, timeoutMs: number, longestMs: number, nowMs: number) {
    this.id = id;
    this.call = call;
    this.timeoutMs = timeoutMs;
    this.startedMs = nowMs;
    this.ceilingMs = nowMs + longestMs;
    this.deadlineMs = nowMs + timeoutMs;
  }

  /** The server is at work, or waits for the agent: the call has its whole time again, up to its ceiling. */
  extend(nowMs: number): void {
    this.deadlineMs = Math.min(nowMs + this.timeoutMs, this.ceilingMs);
  }

  get method(): string {
    return this.call.method;
  }

  get subject(): string | undefined {
    return this.call.subject;
  }
}
