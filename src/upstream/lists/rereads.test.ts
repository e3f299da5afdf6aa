import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FreshnessReader, Rereads, rereadWait } from "./rereads.js";

describe("how long a list is good", () => {
  const of = (...pages: Record<string, unknown>[]) => {
    const reader = new FreshnessReader();
    for (const page of pages) reader.page(page);
    return reader.freshness;
  };

  it("is the shortest of its pages, and as private as the most private", () => {
    expect(of({ ttlMs: 5_000, cacheScope: "public" })).toEqual({ ttlMs: 5_000, cacheScope: "public" });
    expect(of({ ttlMs: 5_000, cacheScope: "public" }, { ttlMs: 10, cacheScope: "private" })).toEqual({
      ttlMs: 10,
      cacheScope: "private",
    });
  });

  it("is nothing where the server does not say, or says nonsense", () => {
    expect(of({})).toEqual({ ttlMs: 0, cacheScope: "private" });
    expect(of({ ttlMs: -5, cacheScope: "public" }, { ttlMs: 5 })).toEqual({ ttlMs: 0, cacheScope: "private" });
    expect(of({ ttlMs: "long", cacheScope: "everybody" })).toEqual({ ttlMs: 0, cacheScope: "private" });
    expect(of()).toEqual({ ttlMs: 0, cacheScope: "private" });
  });
});

describe("reading a list again", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it("is never more often than twice a minute, and seldom where nothing changes", () => {
    expect(rereadWait(0, 0, 0)).toBe(30_000);
    expect(rereadWait(1_000, 0, 0)).toBe(30_000);
    expect(rereadWait(90_000, 0, 0)).toBe(90_000);
    expect(rereadWait(0, 3, 0)).toBe(240_000);
    expect(rereadWait(0, 50, 0)).toBe(600_000);
    expect(rereadWait(3_600_000, 9, 0)).toBe(3_600_000);
    expect(rereadWait(0, 0, 0.99)).toBeGreaterThan(30_000);
  });

  it("begins anew with each reading, and sooner after a change", async () => {
    const read = vi.fn();
    const rereads = new Rereads(() => 0, read);
    rereads.wasRead("tools", "a", 0);
    await vi.advanceTimersByTimeAsync(20_000);
    rereads.wasRead("tools", "a", 0);
    await vi.advanceTimersByTimeAsync(59_000);
    expect(read).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(2_000);
    expect(read).toHaveBeenCalledTimes(1);
    rereads.wasRead("tools", "b", 0);
    await vi.advanceTimersByTimeAsync(31_000);
    expect(read).toHaveBeenCalledTimes(2);
    rereads.wasRead("tools", "b", 0);
    rereads.stop();
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(read).toHaveBeenCalledTimes(2);
  });
});
