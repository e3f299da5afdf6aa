// How a run of the official suite is judged, without the suite.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

interface Result {
  readonly passed: boolean;
  readonly failures: readonly { readonly id: string }[];
  readonly warnings: readonly { readonly id: string }[];
}
interface Run {
  readonly baseline?: string;
  readonly scored: readonly string[];
  readonly scenarios: ReadonlyMap<string, Result>;
}
type Baselines = Readonly<Record<string, Readonly<Record<string, { checks: readonly string[]; reason: string }>>>>;
interface Score {
  readonly total: number;
  readonly passed: number;
  readonly failed: readonly string[];
  readonly limits: readonly string[];
  readonly stale: readonly string[];
}

// The runner is plain JavaScript; a specifier that is no literal leaves its types to the interface above.
const file: string = "./baseline.mjs";
const { score } = (await import(file)) as { score(run: Run, only?: string, all?: Baselines): Score };

const ids = (names: readonly string[]) => names.map((id) => ({ id }));
const passes = (...warnings: string[]): Result => ({ passed: true, failures: [], warnings: ids(warnings) });
const fails = (...checks: string[]): Result => ({ passed: false, failures: ids(checks), warnings: [] });
const listed = (...checks: string[]) => ({ checks, reason: "The protocol cannot carry it." });

/** A run of the scenarios that it has; `known` is its baseline, where it has one. */
function scoreOf(results: Readonly<Record<string, Result>>, known?: Baselines[string], scored = Object.keys(results)) {
  const run = { scored, scenarios: new Map(Object.entries(results)) };
  if (known === undefined) return score(run, undefined, { other: { one: listed("a") } });
  return score({ ...run, baseline: "this" }, undefined, { this: known });
}

describe("a run within one era", () => {
  it("passes by scenarios that pass, and fails by one that fails, that warns or that did not run", () => {
    const results = { good: passes(), bad: fails("a"), warning: passes("w") };
    expect(scoreOf(results, undefined, ["good", "bad", "warning", "absent"])).toEqual({
      total: 4,
      passed: 1,
      failed: ["bad", "warning", "absent"],
      limits: [],
      stale: [],
    });
  });

  it("is judged by its scored scenarios, or by the one that was asked for", () => {
    expect(scoreOf({ good: passes(), extra: fails("a") }, undefined, ["good"])).toMatchObject({ total: 1, failed: [] });
    const run = { scored: ["good"], scenarios: new Map([["extra", fails("a")]]) };
    expect(score(run, "extra")).toMatchObject({ total: 1, passed: 0, failed: ["extra"] });
  });
});

describe("a run across the eras", () => {
  it("may warn, and has the limits that its baseline lists", () => {
    const results = { good: passes("w"), limited: fails("a", "b", "a") };
    expect(scoreOf(results, { limited: listed("a", "b") })).toEqual({
      total: 2,
      passed: 1,
      failed: [],
      limits: ["limited"],
      stale: [],
    });
  });

  it("fails by what is not listed: a scenario, another check of one that is, and one that did not run", () => {
    const results = { unlisted: fails("a"), more: fails("a", "b") };
    const known = { more: listed("a"), absent: listed("a") };
    const { failed, limits } = scoreOf(results, known, ["unlisted", "more", "absent"]);
    expect([failed, limits]).toEqual([["unlisted", "more", "absent"], []]);
  });

  it("has a stale baseline where what it lists passes or is no scored scenario", () => {
    const known = { passing: listed("a"), partly: listed("a", "b"), gone: listed("a") };
    expect(scoreOf({ passing: passes(), partly: fails("a") }, known).stale).toEqual([
      "passing passes, but is listed in the baseline",
      "partly: b passes, but is listed",
      "gone is listed, but is no scored scenario",
    ]);
  });

  it("is believed with four limits, and not with five", () => {
    const many = (count: number) => {
      const names = Array.from({ length: count }, (_, n) => `s${n}`);
      const known = Object.fromEntries(names.map((name) => [name, listed("a")]));
      return scoreOf(Object.fromEntries(names.map((name) => [name, fails("a")])), known).stale;
    };
    expect(many(4)).toEqual([]);
    expect(many(5)).toEqual(["5 limits; at most 4 are believable"]);
  });
});

it("the baseline has at most four limits for each way, and each names its checks and its reason", () => {
  const text = readFileSync(new URL("baseline.json", import.meta.url), "utf8");
  for (const known of Object.values(JSON.parse(text) as Baselines)) {
    const limits = Object.values(known);
    expect(limits.length).toBeLessThanOrEqual(4);
    for (const { checks, reason } of limits) {
      expect(checks.length).toBeGreaterThan(0);
      expect(reason).toMatch(/\.$/);
    }
  }
});
