// The list of the gateways that run, with real control sockets.

import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { listGateways, registerGateway } from "./registry.js";
import { type ControlServer, serveControl } from "./server.js";
import { claimSocketPath } from "./socket-path.js";

let root: string;
let servers: ControlServer[] = [];

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "tw-list-"));
});
afterEach(async () => {
  for (const server of servers) await server.close();
  servers = [];
  rmSync(root, { recursive: true, force: true });
});

async function gateway(name: string, pid: number) {
  const stateDir = join(root, name);
  mkdirSync(stateDir);
  const server = await serveControl({ path: claimSocketPath(stateDir), routes: {} });
  servers.push(server);
  const startedAt = new Date(pid).toISOString();
  return { server, entry: { pid, config: `/${name}.json`, stateDir, endpoint: undefined, startedAt } };
}

const files = () => readdirSync(join(root, "state/running"));

it("has those that live, the oldest first, and sweeps those that died [right-gateway]", async () => {
  const state = join(root, "state");
  expect(await listGateways(state)).toEqual([]);
  const [late, early, dead] = [await gateway("late", 30), await gateway("early", 20), await gateway("dead", 10)];
  for (const { entry } of [late, early, dead]) registerGateway(state, entry);
  await dead.server.close();
  expect(await listGateways(state)).toEqual([early.entry, late.entry]);
  expect(files()).toHaveLength(2);
  expect(statSync(join(state, "running", files()[0] ?? "")).mode & 0o777).toBe(0o600);
});

it("takes the gateway that leaves off the list, and no other, however often it leaves", async () => {
  const state = join(root, "state");
  const [a, b] = [await gateway("a", 1), await gateway("b", 2)];
  const leave = registerGateway(state, a.entry);
  registerGateway(state, b.entry);
  leave();
  leave();
  expect(await listGateways(state)).toEqual([b.entry]);
});

it("has one entry for a state directory: the one before it was killed [right-gateway]", async () => {
  const state = join(root, "state");
  const { entry } = await gateway("a", 1);
  const leaveKilled = registerGateway(state, entry);
  const next = { ...entry, pid: 2, startedAt: new Date(2).toISOString() };
  registerGateway(state, next);
  leaveKilled();
  expect(await listGateways(state)).toEqual([next]);
});

it("passes over what is no entry, and leaves other files where they are", async () => {
  const state = join(root, "state");
  const { entry } = await gateway("a", 1);
  registerGateway(state, entry);
  writeFileSync(join(state, "running/notes.txt"), "mine");
  writeFileSync(join(state, "running", `${"0".repeat(16)}-1.json`), "{no json");
  writeFileSync(join(state, "running", `${"0".repeat(16)}-2.json`), `"${"x".repeat(70_000)}"`);
  symlinkSync("/etc/passwd", join(state, "running", `${"0".repeat(16)}-3.json`));
  expect(await listGateways(state)).toEqual([entry]);
  expect(files()).toHaveLength(2);
  expect(files()).toContain("notes.txt");
});

it("cannot be written where there is no room for it, and says so", async () => {
  const { entry } = await gateway("a", 1);
  writeFileSync(join(root, "file"), "");
  expect(() => registerGateway(join(root, "file/state"), entry)).toThrow(/ENOTDIR/);
});
