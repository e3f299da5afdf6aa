import { expect, it } from "vitest";
import { MemoryMap } from "../../store/memory-map.js";
import { ExecutorPlaces, type PlaceRecord } from "./executor-places.js";

const turn = () => new Promise((resolve) => setImmediate(resolve));

function rig() {
  const map = new MemoryMap<PlaceRecord>("executors");
  const living = new Set(["a", "b"]);
  const clock = { nowMs: 1_000 };
  const changes: string[] = [];
  const places = (self: string) =>
    new ExecutorPlaces({
      self,
      map,
      gateways: () => [...living],
      now: () => clock.nowMs,
      onChange: () => void changes.push(self),
    });
  return { map, living, clock, changes, a: places("a"), b: places("b") };
}

it("a gateway that leaves is gone by for its executors until it takes its record away, however long that lasts [executor-elsewhere]", async () => {
  const { living, clock, a, b, map } = rig();
  a.publish({ office: "ready" });
  await turn();
  expect(b.at("office")).toEqual(new Map([["a", "ready"]]));
  a.leave();
  await turn();
  living.delete("a");
  // A minute and a half: each look of the one that leaves says that it is there.
  for (let look = 0; look < 45; look++) {
    clock.nowMs += 2_000;
    a.look();
    await turn();
    b.look();
    expect(b.at("office")).toEqual(new Map([["a", "ready"]]));
  }
  a.publish({ office: "stopping" });
  await turn();
  expect(b.at("office")).toEqual(new Map([["a", "stopping"]]));
  await a.close();
  expect([b.at("office").size, map.get("a")]).toEqual([0, undefined]);
});

it("one that is killed while it leaves is missed after some seconds, and its record is removed later", async () => {
  const { living, clock, changes, a, b, map } = rig();
  a.publish({ office: "ready" });
  a.leave();
  await turn();
  living.delete("a");
  b.look();
  expect(b.at("office").size).toBe(1);
  changes.length = 0;
  clock.nowMs += 9_000;
  b.look();
  expect([b.at("office").size, changes]).toEqual([0, ["b"]]);
  clock.nowMs += 61_000;
  b.look();
  await turn();
  expect(map.get("a")).toBeUndefined();
});

it("one that does not leave and is not among the living has none", async () => {
  const { living, a, b } = rig();
  a.publish({ office: "ready" });
  await turn();
  living.delete("a");
  expect(b.at("office").size).toBe(0);
});
