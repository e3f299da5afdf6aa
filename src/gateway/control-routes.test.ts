import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ControlClient, connectControl } from "../control/client.js";
import { type ControlServer, serveControl } from "../control/server.js";
import { MemoryMap } from "../store/memory-map.js";
import { pinRoutes, serverRoutes } from "./control-routes.js";
import { type PinRecord, StoredPins } from "./state/stored-pins.js";

let folder: string;
let server: ControlServer;
let client: ControlClient;
let pins: StoredPins;
let done: string[];

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
  const routes = { ...pinRoutes(pins), ...serverRoutes(servers) };
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
