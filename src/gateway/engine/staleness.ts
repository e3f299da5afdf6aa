// Whether what is known from the engine may still be taken for current while it is away. No clock: the time is passed in.

import type { EngineStatus } from "../../contracts/engine/engine.js";

/** Whoever is told to come back does so no sooner: all agents of a gateway are told at once. */
const MIN_RETRY_MS = 1_000;

/** In how many milliseconds to ask again; undefined while it is current. */
export function retryWhenStale(status: EngineStatus, staleMs: number, nowMs: number): number | undefined {
  const { state, sinceMs, nextTryMs } = status;
  if (state === "connected" || nowMs - sinceMs < staleMs) return undefined;
  return Math.max(MIN_RETRY_MS, (nextTryMs ?? nowMs) - nowMs);
}
