// docs/mailbox-protocol.md: its bounds are those of the code.

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { KIB, MIB } from "../../runtime/sizes.js";
import * as wireLimits from "../wire/limits.js";
import * as brokerLimits from "./limits.js";

const { QUEUE_LIMITS, ...others } = brokerLimits;
const limits: Record<string, number> = { ...wireLimits, ...others, ...QUEUE_LIMITS };

/** What only the broker itself notices: how often it looks, and when it tries again. */
const UNSEEN = new Set(["LONGEST_WAIT_MS", "DEAD_SWEEP_MS", "IDLE_LOOK_MS", "RETRY_MS"]);

function spelled(name: string, value: number): string {
  if (/bytes$/i.test(name)) {
    if (value < KIB) return String(value);
    const [unit, size] = value >= MIB ? ["MiB", MIB] : ["KiB", KIB];
    return `${value / Number(size)} ${unit}`;
  }
  if (/ms$/i.test(name)) {
    const [unit, size] =
      value >= 86_400_000 ? ["days", 86_400_000] : value >= 3_600_000 ? ["h", 3_600_000] : ["s", 1_000];
    return `${value / Number(size)} ${unit}`;
  }
  return value.toLocaleString("en");
}

it("docs/mailbox-protocol.md has all bounds, as they are in the code [documents-true] [bounded]", () => {
  const text = readFileSync(new URL("../../../docs/mailbox-protocol.md", import.meta.url), "utf8");
  const rows = text
    .slice(text.indexOf("<!-- bounds -->"), text.indexOf("<!-- /bounds -->"))
    .matchAll(/^\| `(\w+)` \| ([^|]+) \|/gm);
  expect(Object.fromEntries([...rows].map(([, name, value]) => [name, value?.trim()]))).toEqual(
    Object.fromEntries(
      Object.entries(limits)
        .filter(([name]) => !UNSEEN.has(name))
        .map(([name, value]) => [name, spelled(name, value)]),
    ),
  );
});
