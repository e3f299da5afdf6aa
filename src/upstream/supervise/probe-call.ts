// The one call that a half-open breaker lets through: the agent's own, with its outcome told to the breaker.

import type { Caller } from "../../contracts/caller.js";
import type { UpstreamCall } from "../../contracts/upstream.js";
import type { RpcId } from "../../protocol/jsonrpc.js";
import type { Reply } from "../../protocol/reply.js";
import { countsAsFault } from "./breaker.js";

export class ProbeCall implements UpstreamCall {
  readonly inner: UpstreamCall;
  readonly #onOutcome: (outcome: "answered" | "fault" | "unknown") => void;

  constructor(inner: UpstreamCall, onOutcome: (outcome: "answered" | "fault" | "unknown") => void) {
    this.inner = inner;
    this.#onOutcome = onOutcome;
  }

  get caller(): Caller | undefined {
    return this.inner.caller;
  }

  get method(): string {
    return this.inner.method;
  }

  get subject(): string | undefined {
    return this.inner.subject;
  }

  get progressToken(): RpcId | undefined {
    return this.inner.progressToken;
  }

  render(id: number): string {
    return this.inner.render(id);
  }

  renderModern(id: number, clientInfo: string): string | undefined {
    return this.inner.renderModern?.(id, clientInfo);
  }

  repeated(): void {
    this.inner.repeated?.();
  }

  reply(reply: Reply): void {
    const fault = reply.kind === "error" ? reply.fault : undefined;
    this.#onOutcome(fault === undefined ? "answered" : countsAsFault(fault.code) ? "fault" : "unknown");
    this.inner.reply(reply);
  }
}
