import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { OutboxEntry, OutboxOperator } from "../contracts/outbox.js";
import { type ControlClient, connectControl } from "../control/client.js";
import { type ControlRoutes, type ControlServer, serveControl } from "../control/server.js";
import { MemoryMap } from "../store/memory-map.js";
import { drainRoutes, outboxRoutes, pinRoutes, serverRoutes } from "./control-routes.js";
import { type PinRecord, StoredPins } from "./state/stored-pins.js";

let folder: string;
let server: ControlServer;
let client: ControlClient;
let pins: StoredPins;
let done: string[];
let operator: OutboxOperator | undefined;

const tool = (name: string, more: object = {}) => {
  const value = { name, ...more };
  return { json: JSON.stringify(value), value };
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "toolway-routes-"));
  done = [];
  pins = new StoredPins({
    map: new MemoryMap<PinRecord>("pins"),
    wall: () => 0,
    onChange: (name) => done.push(`changed ${name}`),
    log: () => {},
    redact: (_server, text) => text,
  });
  const servers = {
    names: ["a/b"],
    reload: (name: string) => void done.push(`reload ${name}`),
    stopServer: async (name: string) => void done.push(`stop ${name}`),
    startServer: (name: string) => void done.push(`start ${name}`),
  };
  const routes = { ...pinRoutes(pins), ...serverRoutes(servers), ...outboxRoutes(() => operator) };
  server = await serveControl({ path: join(folder, "control.sock"), routes });
  client = connectControl(server.path);
});

afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

describe("routes about pins", () => {
  it("list, diff and accept", async () => {
    pins.check("s p", [tool("add"), tool("x&y")]);
    pins.check("s p", [tool("add", { v: 2 }), tool("x&y", { v: 2 })]);
    expect(await client.get("/pins")).toMatchObject({ pins: [{ tool: "add", state: "changed" }, { tool: "x&y" }] });
    const query = new URLSearchParams({ server: "s p", tool: "x&y" });
    expect(await client.get(`/pins/diff?${query}`)).toMatchObject({ diffs: [{ tool: "x&y" }] });
    const { diffs } = (await client.get("/pins/diff?server=s+p")) as { diffs: unknown[] };
    expect(diffs).toHaveLength(2);
    expect(await client.post("/pins/accept", { server: "s p", tool: "add" })).toMatchObject({
      accepted: [{ tool: "add" }],
    });
    expect(await client.post("/pins/accept", { server: "s p" })).toMatchObject({ accepted: [{ tool: "x&y" }] });
    expect(done).toEqual(["changed s p", "changed s p"]);
  });

  it("say what is wrong with a request", async () => {
    await expect(client.get("/pins/diff")).rejects.toMatchObject({ code: "invalid" });
    await expect(client.get("/pins/diff?server=none")).rejects.toMatchObject({ code: "not-found" });
    for (const body of [{}, { server: 7 }, { server: "s", tool: 7 }, { server: "s", hash: {} }, "s"]) {
      await expect(client.post("/pins/accept", body)).rejects.toMatchObject({ code: "invalid" });
    }
  });
});

it("routes about one server reload, stop and start it, by a name of any kind", async () => {
  for (const verb of ["reload", "stop", "start"]) {
    expect(await client.post(`/servers/${encodeURIComponent("a/b")}/${verb}`, {})).toEqual({ server: "a/b" });
  }
  expect(done).toEqual(["reload a/b", "stop a/b", "start a/b"]);
  await expect(client.post("/servers/none/stop", {})).rejects.toMatchObject({ code: "not-found" });
});

describe("routes about kept calls", () => {
  const entry = (id: string, more: object = {}) =>
    ({
      id,
      server: "s",
      tool: "t",
      state: "unknown",
      result: "secret",
      error: "secret",
      ...more,
    }) as unknown as OutboxEntry;

  it("say where none are kept that there are none", async () => {
    operator = undefined;
    await expect(client.get("/outbox")).rejects.toThrow('no tool of the config has an "outbox"');
  });

  it("list, show, count and change them, and lists have no results in them", async () => {
    const change = (verb: string) => async (id: string, as?: string) => {
      done.push(`${verb} ${id}${as === undefined ? "" : ` ${as}`}`);
      return entry(id);
    };
    const lanes = async (server: string, lane: string | undefined) => done.push(`${server} ${lane}`);
    const ann = { server: "s", lane: "ann", depth: 2, oldestMs: 5_000, heldFor: undefined };
    const told = { isServerHeld: false, isOrdered: true };
    const bob = { ...ann, ...told, lane: "bob", depth: 1, oldestMs: 4_000, heldFor: "it is quarantined" };
    operator = {
      own: { list: () => [], lanes: () => [] },
      list: (filter) => {
        done.push(JSON.stringify(filter));
        return [entry("r1")];
      },
      show: (id) => (id === "r/1" ? entry(id) : undefined),
      firstLanes: () => ({ lanes: [{ ...ann, ...told }, bob], more: 3 }),
      totals: (maxHeld) => ({
        waiting: 3,
        oldestMs: 4_000,
        unknown: 1,
        unknownMs: 6_000,
        held: [bob].slice(0, maxHeld),
        heldCount: 1,
      }),
      retry: change("retry"),
      drop: change("drop"),
      resolve: change("resolve"),
      hold: lanes,
      release: lanes,
      onChange: () => () => {},
    };
    expect(await client.get("/outbox?server=s&state=unknown&limit=7")).toEqual({
      writes: [{ id: "r1", server: "s", tool: "t", state: "unknown" }],
    });
    expect(done).toEqual(['{"server":"s","state":"unknown","limit":7}']);
    await expect(client.get("/outbox?state=lost")).rejects.toThrow('"state" is one of queued, sending');
    expect(await client.get("/outbox/writes/r%2F1")).toMatchObject({ id: "r/1", result: "secret" });
    await expect(client.get("/outbox/writes/r2")).rejects.toThrow('There is no receipt "r2"');
    expect(await client.get("/outbox/totals")).toEqual({
      waiting: 3,
      oldestAt: "1970-01-01T00:00:04.000Z",
      unknown: 1,
      unknownAt: "1970-01-01T00:00:06.000Z",
      held: [{ server: "s", lane: "bob", depth: 1, why: "it is quarantined", oldestAt: "1970-01-01T00:00:04.000Z" }],
      heldCount: 1,
    });
    done.length = 0;
    for (const verb of ["retry", "drop"]) {
      expect(await client.post(`/outbox/writes/r1/${verb}`, {})).not.toHaveProperty("result");
    }
    await client.post("/outbox/writes/r1/resolve", { as: "again" });
    await expect(client.post("/outbox/writes/r1/resolve", { as: "maybe" })).rejects.toThrow('"as" is "done"');
    await client.post("/outbox/hold", { server: "s" });
    await client.post("/outbox/release", { server: "s", lane: "ann" });
    expect(done).toEqual(["retry r1", "drop r1", "resolve r1 again", "s undefined", "s ann"]);
  });
});

describe("routes of a gateway among several", () => {
  it("stop one that is to be drained also where it could not hand everything over, and say so [engine-drain]", async () => {
    const told: unknown[][] = [];
    const why = new Error("The engine refused it.");
    const gateway = {
      config: { drainMs: 5 },
      state: {
        engine: { self: "a", peers: { answer: () => () => {} }, partitions: { gateways: () => [] } },
        onMarked: () => {},
      },
      log: { error: (...said: unknown[]) => void told.push(said) },
      leave: () => Promise.reject(why),
    } as unknown as Parameters<typeof drainRoutes>[0];
    const stopped = new Promise<unknown>((resolve) => {
      void drainRoutes(gateway, resolve).then(async (routes) => {
        await routes["POST /drain"]?.({ body: { gateway: "this", drainMs: 5 } } as Parameters<
          ControlRoutes[string]
        >[0]);
      });
    });
    expect(await stopped).toEqual({ drainMs: 5 });
    expect(told).toEqual([["not everything was handed over", { error: why }]]);
  });
});
