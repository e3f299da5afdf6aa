// When agents may be sent to a gateway: once every server that it starts by itself was tried or is known from before, and
// in any case after a short while. It has no clock and starts nothing; it is told.

import type { GatewayEngine } from "../contracts/engine/engine.js";

/**
 * So long a server that does not come up keeps the gateway from being ready: as a rule one that works is up by then, and
 * one that hangs must not hide the others.
 */
export const READY_WITHIN_MS = 5_000;

export class Readiness {
  #dueMs: number | undefined;
  readonly #untried = new Set<string>();
  #ready = false;
  #isLeaving = false;

  /** The servers are being started; `untried` are those that are waited for. */
  begin(untried: Iterable<string>, nowMs: number): void {
    for (const server of untried) this.#untried.add(server);
    this.#dueMs ??= nowMs + READY_WITHIN_MS;
  }

  /** The first attempt to start a server has ended, either way. */
  tried(server: string): void {
    this.#untried.delete(server);
  }

  /** Of several gateways: agents are to go to the others from now on, while this one goes on answering. */
  leave(): void {
    this.#isLeaving = true;
  }

  get isLeaving(): boolean {
    return this.#isLeaving;
  }

  /** Once true it stays true until the gateway leaves: what happens to servers later is no reason to send agents elsewhere. */
  isReady(nowMs: number): boolean {
    if (this.#isLeaving) return false;
    if (this.#dueMs === undefined) return false;
    this.#ready ||= this.#untried.size === 0 || nowMs >= this.#dueMs;
    return this.#ready;
  }
}

/** Whether agents may be sent to a gateway: without its engine too, unless the config says otherwise. */
export function isThereForAgents(engine: GatewayEngine | undefined): boolean {
  if (engine?.isNeededToBeReady !== true) return true;
  const { state, mute } = engine.status();
  return state === "connected" && mute === undefined;
}
