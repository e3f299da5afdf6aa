import { expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import type { MetricReader } from "./metric-reader.js";
import { Scrapes } from "./scrapes.js";

it("whoever asks again within a second gets the same text, of each form its own, and then another", async () => {
  const clock = new TestClock();
  let reads = 0;
  const read = () => {
    const values = [[[], ++reads]];
    return { counters: [], histograms: [], gauges: [{ name: "toolway_reads", help: "Reads.", values }] };
  };
  const scrapes = new Scrapes({ load: async () => read } as unknown as MetricReader, clock);
  const first = await scrapes.text("prometheus");
  expect(first).toContain("toolway_reads 1");
  clock.advance(999);
  expect(await Promise.all([scrapes.text("prometheus"), scrapes.text("prometheus")])).toEqual([first, first]);
  expect(reads).toBe(1);
  expect(await scrapes.text("openmetrics")).toContain("toolway_reads 2");
  expect(await scrapes.text("prometheus")).toBe(first);
  clock.advance(1);
  expect(await scrapes.text("prometheus")).toContain("toolway_reads 3");
});
