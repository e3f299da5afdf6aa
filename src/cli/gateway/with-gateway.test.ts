// What a verb says while it waits for the servers of a gateway of its own, with a fake gateway.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";

beforeEach(() => {
  makeFolder();
  // The verb is loaded meanwhile, which takes turns of the loop.
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date"] });
});
afterEach(() => {
  vi.useRealTimers();
  leaveFolder();
});

const OTHER = {
  pid: 7,
  config: "/work/toolway.json",
  builtIn: undefined,
  stateDir: "/state/work",
  endpoint: "http://127.0.0.1:7420/mcp",
  startedAt: "2026-01-01T00:00:00.000Z",
};

it.each([
  ["and none else does", []],
  ["and others do, which are named", [OTHER]],
])("it is said once that no gateway runs, %s [told-why]", async (_what, list) => {
  writeFileSync(join(folder, "toolway.json"), '{"mcpServers":{}}');
  const servers = [
    { ...STATUS.servers[0], name: "slow", state: "starting" },
    { ...STATUS.servers[0], name: "far", state: "idle", via: "lab" },
  ];
  const ready = servers.map((server) => ({ ...server, state: "ready", listsFromBefore: false, lastError: undefined }));
  let since: number | undefined;
  const executors = [{ name: "lab", members: [] }];
  const answer = () => {
    since ??= Date.now();
    return { ...STATUS, executors, servers: Date.now() - since < 3_000 ? servers : ready };
  };
  fakeGateway({ "/status": answer }, { list: async () => list }, false);
  let isOver = false;
  const ran = run(["status"]).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await vi.advanceTimersByTimeAsync(100);
    await new Promise((resolve) => setImmediate(resolve));
  }
  const { err } = await ran;
  expect(err.match(/No gateway runs/g)).toHaveLength(1);
  expect(err).toContain("nobody reaches servers behind an executor that dials in: far.");
  expect(err).toContain("Starting its servers for this call: waiting for slow …");
});
