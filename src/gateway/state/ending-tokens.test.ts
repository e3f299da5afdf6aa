import { expect, it } from "vitest";
import { MemoryMap } from "../../store/memory-map.js";
import { TokenBook } from "../../tokens/tokens.js";
import { endingTokens } from "./ending-tokens.js";

const DAY_MS = 86_400_000;

it("tokens that end within a week are told, the first to end first, and neither those that have nor those that do not", async () => {
  const nowMs = Date.parse("2026-01-01T00:00:00.000Z");
  const tokens = new TokenBook({
    map: new MemoryMap("tokens"),
    tokenPath: "none",
    fromEnvironment: "a-token-of-the-environment-that-is-long-enough",
  });
  for (const [id, days] of [
    ["six", 6],
    ["one", 1],
    ["eight", 8],
    ["over", 0.5],
  ] as const) {
    await tokens.create({ id, role: "dev", expires: nowMs + days * DAY_MS }, nowMs);
  }
  await tokens.create({ id: "lasting", role: "dev" }, nowMs);
  expect(endingTokens(tokens.list(), nowMs + 0.75 * DAY_MS)).toEqual([
    { id: "one", at: "2026-01-02T00:00:00.000Z" },
    { id: "six", at: "2026-01-07T00:00:00.000Z" },
  ]);
  for (let n = 0; n < 30; n++)
    await tokens.create({ id: `more-${n}`, role: "dev", expires: nowMs + DAY_MS + n }, nowMs);
  expect(endingTokens(tokens.list(), nowMs)).toHaveLength(20);
});
