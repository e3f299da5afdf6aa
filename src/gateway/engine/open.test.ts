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
};

it("[engine-away] what is known of tokens holds for as long as the config says, and then until the engine is back", () => {
  expect(retryWhenStale(away, 60_000, 60_999)).toBeUndefined();
  expect(retryWhenStale(away, 60_000, 61_000)).toBe(2_500);
  // Not at once: everybody would.
  expect(retryWhenStale(away, 60_000, 63_400)).toBe(1_000);
  expect(retryWhenStale({ ...away, state: "refused", nextTryMs: undefined }, 1, 2_000)).toBe(1_000);
  expect(retryWhenStale({ ...away, state: "connected" }, 1, 1e9)).toBeUndefined();
});
