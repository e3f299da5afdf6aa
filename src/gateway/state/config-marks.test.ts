import { expect, it } from "vitest";
import { MemoryMap } from "../../store/memory-map.js";
import { BEAT_MS, type ConfigMark, ConfigMarks } from "./config-marks.js";

const config = {
  servers: [{ name: "files", target: { url: "x", via: "y" } }],
  roles: {},
  unlistedRoles: "all",
  menus: [],
};

it("a gateway whose config is another is told of by the others for as long as it lives [engine-same-config]", async () => {
  const map = new MemoryMap<ConfigMark>("configs");
  let nowMs = 0;
  const gateway = (self: string, version = "1.0.0") =>
    new ConfigMarks({ map, self, version, host: `host-${self}`, now: () => nowMs });
  const [a, b] = [gateway("a"), gateway("b", "1.1.0")];
  a.publish(config);
  // The same, written in another order.
  b.publish({ ...config, servers: [{ target: { via: "y", url: "x" }, name: "files" } as never] });
  expect([a.differences(), b.differences()]).toEqual([[], []]);
  // What a context hides is as much a difference as who may call what.
  b.publish({ ...config, menus: [{ when: { phase: "review" }, hide: ["files/*"] }] as never });
  expect(a.differences()[0]).toMatch(/goes by another config: menus\. /);
  b.publish({ ...config, unlistedRoles: "deny" });
  expect(a.differences()[0]).toMatch(/goes by another config: roles\. /);
  b.publish({ ...config, servers: [{ name: "files" }, { name: "mail" }], roles: { ci: {} } });
  expect(a.differences()).toEqual([
    'Gateway b (Toolway 1.1.0) goes by another config: servers "files", "mail", roles. Give all of them the same.',
  ]);
  expect(b.differences()[0]).toContain("Gateway a (Toolway 1.0.0)");
  // What of a config a person compares, the same at both.
  const [ofA, ofB] = [a.seen("a"), a.seen("b")];
  expect([ofA, ofB]).toEqual([b.seen("a"), b.seen("b")]);
  expect(ofB).toMatchObject({ version: "1.1.0", config: expect.stringMatching(/^[\w-]{8}$/) });
  expect(ofA?.config).not.toBe(ofB?.config);
  expect(a.seen("c")).toBeUndefined();
  // Its secrets are in no mark.
  expect(JSON.stringify([...map.entries()])).not.toContain('"x"');
  nowMs += 4 * BEAT_MS;
  b.beat();
  nowMs += 4 * BEAT_MS;
  expect(a.differences()).toHaveLength(1);
  nowMs += 4 * BEAT_MS;
  expect(a.differences()).toEqual([]);
  // It was killed: its mark goes too, in the end.
  nowMs += 60 * BEAT_MS;
  a.beat();
  expect(map.get("b")).toBeUndefined();
  await a.close();
  expect([...map.entries()]).toEqual([]);
});

it("a gateway says where it is: its machine, the name of its config and where it listens, and not the folder", () => {
  const map = new MemoryMap<ConfigMark>("configs");
  const marks = new ConfigMarks({ map, self: "a", version: "1.0.0", host: "web-1", now: () => 0 });
  marks.publish({ ...config, path: "/home/ann/secret-project/toolway.json" });
  expect(marks.seen("a")?.place).toEqual({ host: "web-1", file: "toolway.json", address: undefined });
  marks.listensAt("http://127.0.0.1:7420/mcp");
  const place = { host: "web-1", file: "toolway.json", address: "127.0.0.1:7420" };
  expect([marks.seen("a")?.place, map.get("a")?.place]).toEqual([place, place]);
  // Another config of the same gateway, which listens where it did.
  marks.publish({ ...config, path: "/elsewhere/other.json" });
  expect(map.get("a")?.place).toEqual({ ...place, file: "other.json" });
  expect(JSON.stringify([...map.entries()])).not.toContain("secret-project");
});
