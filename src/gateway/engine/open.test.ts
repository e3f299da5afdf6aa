import { expect, it } from "vitest";
import type { EngineStatus } from "../../contracts/engine/engine.js";
import { retryWhenStale } from "./open.js";

const away: EngineStatus = {
  state: "away",
  sinceMs: 1_000,
  node: "127.0.0.1:4222",
  version: "2.9.10",
  nextTryMs: 63_500,
  problem: "The connection was lost.",
  full: undefined,
  mute: undefined,
};

it("[engine-away] what is known of tokens holds for as long as the config says, and then until the engine is back", () => {
  expect(retryWhenStale(away, 60_000, 60_999)).toBeUndefined();
  expect(retryWhenStale(away, 60_000, 61_000)).toBe(2_500);
  // Not at once: everybody would.
  expect(retryWhenStale(away, 60_000, 63_400)).toBe(1_000);
  expect(retryWhenStale({ ...away, state: "refused", nextTryMs: undefined }, 1, 2_000)).toBe(1_000);
  const connected = { ...away, state: "connected", nextTryMs: undefined } as const;
  expect(retryWhenStale(connected, 1, 1e9)).toBeUndefined();
  // Connected to a node that nobody leads: what is revoked elsewhere is not heard there either.
  const mute = { sinceMs: 1_000, why: "It tells nothing." };
  expect(retryWhenStale({ ...connected, mute }, 60_000, 60_999)).toBeUndefined();
  expect(retryWhenStale({ ...connected, mute }, 60_000, 61_000)).toBe(1_000);
});
