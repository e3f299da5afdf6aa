import { describe, expect, it } from "vitest";
import { TestClock } from "../../../test/fixtures/test-clock.js";
import { MemoryMap } from "../../store/memory-map.js";
import { type EraRecord, StoredEras } from "./stored-eras.js";

const DAY = 24 * 60 * 60 * 1000;

function book(map = new MemoryMap<EraRecord>("eras"), clock = new TestClock()) {
  return {
    map,
    clock,
    eras: new StoredEras(
      map,
      () => clock.wall(),
      () => {},
    ),
  };
}

describe("StoredEras", () => {
  it("remembers a verdict for the entry that was asked, over a restart", () => {
    const { map, clock, eras } = book();
    eras.put("wiki", "one", "modern");
    expect(eras.get("wiki", "one")).toBe("modern");
    expect(book(map, clock).eras.get("wiki", "one")).toBe("modern");
    expect(eras.get("wiki", "two")).toBeUndefined();
    expect(eras.get("other", "one")).toBeUndefined();
  });

  it("believes a legacy verdict for a day, a modern one until it fails", () => {
    const { clock, eras } = book();
    eras.put("old", "x", "legacy");
    eras.put("new", "x", "modern");
    clock.advance(DAY - 1);
    expect(eras.get("old", "x")).toBe("legacy");
    clock.advance(2);
    expect(eras.get("old", "x")).toBeUndefined();
    expect(eras.get("new", "x")).toBe("modern");
    eras.put("new", "x", undefined);
    expect(eras.get("new", "x")).toBeUndefined();
  });

  it.each([3_600_000, DAY])("asks again when the clock was set back by %i ms", (ms) => {
    const { clock, eras } = book();
    eras.put("old", "x", "legacy");
    clock.jumpWall(-ms);
    expect(eras.get("old", "x")).toBeUndefined();
  });

  it("goes on without a disk", async () => {
    const failures: unknown[] = [];
    const map = new MemoryMap<EraRecord>("eras");
    map.put = () => Promise.reject(new Error("disk full"));
    const eras = new StoredEras(
      map,
      () => 0,
      (error) => failures.push(error),
    );
    eras.put("wiki", "x", "modern");
    expect(eras.get("wiki", "x")).toBe("modern");
    await Promise.resolve();
    expect(failures).toHaveLength(1);
  });
});
