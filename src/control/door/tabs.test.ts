// What open pages are sent: how often it is looked for, for how many of them, and what one gets that reads too slowly.

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type FeedLine, Tabs } from "./tabs.js";

let looks: boolean[];
let now: Record<string, unknown>;
let tabs: Tabs;
let closing: AbortController;

beforeEach(() => {
  vi.useFakeTimers();
  [looks, now, closing] = [[], { n: 0 }, new AbortController()];
  tabs = new Tabs((isWhole) => {
    looks.push(isWhole);
    return { ...now };
  });
});

afterEach(() => {
  closing.abort();
  vi.useRealTimers();
});

/** A page, which reads when it is told to. */
function open(signal = AbortSignal.any([closing.signal])): () => Promise<FeedLine | undefined> {
  const lines = tabs.follow("viewer", signal);
  return async () => {
    const next = lines.next();
    await vi.advanceTimersByTimeAsync(0);
    return (await next).value as FeedLine | undefined;
  };
}

const later = (ms = 500) => vi.advanceTimersByTimeAsync(ms);

it("nothing is looked at while no page is open, and once for all of them however many are [bounded]", async () => {
  await later(10_000);
  expect(looks).toEqual([]);
  const pages = Array.from({ length: 32 }, () => open());
  for (const read of pages) expect(await read()).toEqual({ all: { n: 0 }, power: "viewer" });
  expect(looks).toEqual([true]);
  await expect(tabs.follow("viewer", closing.signal).next()).rejects.toThrow("32 pages are open");
  now = { n: 1 };
  await later();
  expect(looks).toEqual([true, false]);
  for (const read of pages) expect(await read()).toEqual({ changed: { n: 1 } });
  expect(looks).toHaveLength(2);
  expect(vi.getTimerCount()).toBe(1);
});

it("a page that reads too slowly gets the whole in place of a queue, and what changes next fits on it [bounded]", async () => {
  const [quick, slow] = [open(), open()];
  for (const read of [quick, slow]) await read();
  for (let n = 1; n <= 50; n++) {
    now = n % 2 === 0 ? { n } : { n, odd: true };
    await later();
    expect(await quick()).toEqual({ changed: n % 2 === 1 ? now : { n, odd: null } });
  }
  expect(await slow()).toEqual({ all: now, power: "viewer" });
  now = { n: 51, odd: true };
  await later();
  expect([await slow(), await quick()]).toEqual([{ changed: now }, { changed: now }]);
});

it("the last page that goes ends the looking, and the next begins with a whole one", async () => {
  const own = new AbortController();
  const read = open(own.signal);
  await read();
  const last = read();
  own.abort();
  expect(await last).toBeUndefined();
  expect(vi.getTimerCount()).toBe(0);
  await later(10_000);
  expect(looks).toEqual([true]);
  now = { n: 7 };
  expect(await open()()).toEqual({ all: { n: 7 }, power: "viewer" });
  expect(looks).toEqual([true, true]);
});
