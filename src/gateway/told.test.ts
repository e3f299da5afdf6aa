// What a gateway tells its operator while it runs, tried with a real server: rules that fit nothing, tools that are
// hidden, what an edit changed and what of it waits.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { createGateway, createLog, type Gateway } from "../index.js";
import { statusGauges } from "../observe/metrics/status-gauges.js";
import { Space } from "../store/local/space.js";
import { diskFull } from "../store/store-error.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 20 };
const A_TIME = expect.stringMatching(/^\d{4}-.*Z$/);

const rug = fileURLToPath(new URL("../../test/fixtures/servers/rug.mjs", import.meta.url));
const lines: string[] = [];
let folder: string;
let gateway: Gateway;

const path = (name: string) => join(folder, name);

function write(more: object): void {
  const entry = { command: process.execPath, args: [rug, "--description", path("description")] };
  writeFileSync(path("toolway.json"), JSON.stringify({ mcpServers: { rug: entry }, ...more }));
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "toolway-told-"));
  writeFileSync(path("description"), "Adds two numbers.");
  write({ roles: { reader: { deny: ["rug/anounce", "rug/add"] } } });
  const log = createLog({ write: (line) => void lines.push(line) });
  const options = { stateDir: path("state"), watch: false, log, env: { PATH: process.env["PATH"] } };
  gateway = await createGateway(path("toolway.json"), options);
  await gateway.call("rug__add", { a: 1, b: 2 });
});

afterAll(async () => {
  await gateway.close({ drainMs: 0 });
  rmSync(folder, { recursive: true, force: true });
});

it("what the config warns of is in the log once, at the start or at the reload that brought it, with what becomes of it [status-true] [config-kept]", async () => {
  const mcpServers = { web: { url: "http://127.0.0.1:1/mcp", headersHelper: "./sign.sh", lazy: true } };
  const roles = { reader: { deny: ["gihub/x"] } };
  writeFileSync(path("warns.json"), JSON.stringify({ mcpServers, unlistedRoles: "deny", roles }));
  const told: string[] = [];
  const log = createLog({ write: (line) => void told.push(line) });
  const warning = await createGateway(path("warns.json"), { stateDir: path("warns"), watch: false, log });
  const warnings = () => told.filter((line) => line.includes(" warn "));
  const expected = [
    /web\.headersHelper: the program that makes headers is not run/,
    /no server of this config matches "gihub\/x"/,
    /the default token .* may use no tool/,
  ];
  try {
    expect(warnings()).toEqual(expect.arrayContaining(expected.map((text) => expect.stringMatching(text))));
    expect(warnings()).toHaveLength(3);
    await warning.reload();
    expect(told.filter((line) => line.includes("config applied: nothing changed"))).toHaveLength(1);
    expect(warnings()).toHaveLength(3);
    const other = { ...roles, guest: { deny: ["gihub/y"] } };
    writeFileSync(path("warns.json"), JSON.stringify({ mcpServers, unlistedRoles: "deny", roles: other }));
    await warning.reload();
    expect(warnings().slice(3)).toEqual([expect.stringMatching(/no server of this config matches "gihub\/y"/)]);
  } finally {
    await warning.close({ drainMs: 0 });
  }
});

const UNUSED =
  'role "reader", "deny": "rug/anounce" fits no tool of server "rug", so it denies nothing. ' +
  'Did you mean "rug/announce"?';

const said = (text: string) => lines.filter((line) => line.includes(text)).length;

it("a pattern that fits no tool is in the status and, once, in the log, when the tools are known [status-true]", async () => {
  expect(gateway.status().config.unusedPatterns).toEqual([UNUSED]);
  const since = gateway.status().config.unusedSince;
  expect(since).toEqual({ [UNUSED]: A_TIME });
  await vi.waitFor(() => expect(said(UNUSED)).toBe(1), SOON);
  expect(gateway.status().config.unusedSince).toEqual(since);
});

it("a reload says what changed, and what fits nothing now [status-true]", async () => {
  write({ roles: { reader: { deny: ["rug/announce"] } } });
  expect(await gateway.reload()).toEqual({ changes: ["roles"] });
  expect(gateway.status().config).toMatchObject({ unusedPatterns: [], unusedSince: {} });
  expect(said("config applied: roles")).toBe(1);
  write({ roles: { reader: { deny: ["rug/anounce"] } } });
  await gateway.reload();
  expect(said(UNUSED)).toBe(2);
});

it("the status says what waits for the next start, until it is taken back [status-true]", async () => {
  write({ listen: "127.0.0.1:1", pageSize: 3 });
  expect(await gateway.reload()).toEqual({ changes: ["roles"] });
  expect(gateway.status().config.waitsForRestart).toEqual(["listen", "pageSize"]);
  write({});
  await gateway.reload();
  expect(gateway.status().config.waitsForRestart).toEqual([]);
});

it("the status counts the tools that are quarantined, and says since when [status-true] [host-12]", async () => {
  expect(gateway.status().servers[0]).toMatchObject({ quarantined: 0, oldLists: [], era: "legacy" });
  writeFileSync(path("description"), "Adds two numbers, and sends them elsewhere.");
  await gateway.reloadServer("rug");
  await vi.waitFor(
    () => expect(gateway.status().servers[0]).toMatchObject({ quarantined: 1, quarantinedAt: A_TIME }),
    SOON,
  );
  expect(gateway.status().servers[0]?.counts.tools).toBe(3);
});

it("tools are from before where a start finds them kept and their server away, and not at a first start [status-true] [menu-survives]", async () => {
  const fallen = path("fallen");
  // The entry stays the same: whether it is away is told by a file.
  const args = ["-c", 'test ! -e "$0" || exit 1; exec "$@"', fallen, process.execPath, rug];
  const servers = { rug: { command: "/bin/sh", args: [...args, "--description", path("description")] } };
  const stateDir = mkdtempSync(path("kept-"));
  const start = () => createGateway({ mcpServers: servers }, { stateDir });
  const row = (of: Gateway) => of.status().servers[0];
  const isAway = async (of: Gateway) => vi.waitFor(() => expect(row(of)?.state).toBe("backoff"), SOON);
  writeFileSync(fallen, "");
  const first = await start();
  try {
    await isAway(first);
    expect(row(first)).toMatchObject({ counts: { tools: 0 }, oldLists: [] });
    rmSync(fallen);
    await first.reloadServer("rug");
    await vi.waitFor(() => expect(row(first)).toMatchObject({ counts: { tools: 3 }, listsFromBefore: false }), SOON);
    expect(row(first)?.oldLists).toEqual([]);
  } finally {
    await first.close({ drainMs: 0 });
  }
  writeFileSync(fallen, "");
  const second = await start();
  try {
    await isAway(second);
    expect(row(second)).toMatchObject({ counts: { tools: 3 }, oldLists: ["tools"] });
  } finally {
    await second.close({ drainMs: 0 });
  }
});

it("the status and the metrics say while the state directory has no room, until something is kept again [status-true]", async () => {
  const map = gateway.state.store?.map<string>("test");
  const storeMetric = () => {
    const gauges = statusGauges(gateway.status(), Date.now());
    return gauges.find(({ name }) => name === "toolway_store_ok")?.values[0]?.[1];
  };
  expect(gateway.status().store).toBeUndefined();
  const claim = vi.spyOn(Space.prototype, "claim").mockImplementation(() => {
    throw diskFull(path("state"));
  });
  await expect(map?.put("k", "v")).rejects.toMatchObject({ code: "disk-full" });
  expect(gateway.status().store).toEqual({
    path: path("state"),
    problem: expect.stringContaining("free some space"),
    since: A_TIME,
    isDiskFull: true,
  });
  expect(storeMetric()).toBe(0);
  claim.mockRestore();
  await map?.put("k", "v");
  expect(gateway.status().store).toBeUndefined();
  expect(storeMetric()).toBe(1);
});

it("a tool that is not listed may be that of the server whose prefix it has, or of one that nobody knows [status-true]", () => {
  expect(gateway.possibleOwners("rug__nothing")).toEqual(["rug"]);
  expect(gateway.possibleOwners("rug/nothing")).toEqual(["rug"]);
  expect(gateway.possibleOwners("other__nothing")).toEqual([]);
});

it("what the config hides stays pinned over a restart: the kept list is compared as a whole [host-12]", async () => {
  await gateway.close({ drainMs: 0 });
  const entry = { command: process.execPath, args: [rug, "--description", path("description")] };
  const hidden = { ...entry, lazy: true, tools: { announce: { hide: true } }, only: ["a*"] };
  writeFileSync(path("toolway.json"), JSON.stringify({ mcpServers: { rug: hidden } }));
  const log = createLog({ write: (line) => void lines.push(line) });
  gateway = await createGateway(path("toolway.json"), { stateDir: path("state"), watch: false, log });
  expect(said("unknown key")).toBe(0);
  const states = gateway.pins.list().map(({ tool, state }) => `${tool} ${state}`);
  expect(new Set(states)).toEqual(new Set(["add changed", "announce pinned", "die pinned"]));
});

it("a misspelt name under an entry's tools is told as such a pattern is, once for as long as it is so [status-true]", async () => {
  const misspelt =
    'server "rug", settings of a tool: "anounce" fits none of its tools, so they change nothing. Did you mean "announce"?';
  const config = path("misspelt.json");
  const entry = { command: process.execPath, args: [rug, "--description", path("description")] };
  const wrong = { mcpServers: { rug: { ...entry, tools: { anounce: { hide: true } } } } };
  writeFileSync(config, JSON.stringify(wrong));
  const told: string[] = [];
  const times = () => told.filter((line) => line.includes(misspelt)).length;
  const log = createLog({ write: (line) => void told.push(line) });
  const other = await createGateway(config, { stateDir: path("misspelt"), watch: false, log });
  try {
    await vi.waitFor(() => expect(times()).toBe(1), SOON);
    expect(other.status().config.unusedPatterns).toEqual([misspelt]);
    expect(other.status().notes).toEqual([]);
    await other.reload();
    expect(times()).toBe(1);
    writeFileSync(config, JSON.stringify({ mcpServers: { rug: { ...entry, tools: { announce: { hide: true } } } } }));
    await other.reload();
    expect(other.status().config.unusedPatterns).toEqual([]);
    writeFileSync(config, JSON.stringify(wrong));
    await other.reload();
    expect(times()).toBe(2);
  } finally {
    await other.close({ drainMs: 0 });
  }
});

it("quarantined tools are counted of those that the entry shows, all of them too, and whatever roles deny [status-true]", async () => {
  const config = path("shown.json");
  const entry = { command: process.execPath, args: [rug, "--description", path("shown")] };
  const save = (more: object) =>
    writeFileSync(
      config,
      JSON.stringify({ mcpServers: { rug: { ...entry, ...more } }, roles: { default: { deny: ["rug/*"] } } }),
    );
  for (const file of ["shown", "first"]) writeFileSync(path(file), "Adds two numbers.");
  save({ only: ["add"] });
  const shown = await createGateway(config, { stateDir: path("shown-state"), watch: false });
  const row = () => shown.status().servers[0];
  try {
    await vi.waitFor(() => expect(row()?.counts.tools).toBe(1), SOON);
    writeFileSync(path("shown"), "Adds two numbers, and sends them elsewhere.");
    await shown.reloadServer("rug");
    await vi.waitFor(() => expect(row()).toMatchObject({ counts: { tools: 1 }, quarantined: 1 }), SOON);
    // With another server's tool of the same name before it, it is offered at /mcp/rug alone.
    const first = {
      first: { ...entry, args: [rug, "--description", path("first")], only: ["add"] },
      rug: { ...entry, only: ["add"] },
    };
    writeFileSync(config, JSON.stringify({ mcpServers: first, names: "plain" }));
    await shown.reload();
    await vi.waitFor(() => expect(shown.status().servers[0]?.counts.tools).toBe(1), SOON);
    expect(shown.status().conflicts).toHaveLength(1);
    expect(shown.status().servers.map(({ quarantined }) => quarantined)).toEqual([0, 1]);
    // What the entry hides nobody can call, and nobody is asked about it; the pins have it all the same.
    save({ only: ["die"] });
    await shown.reload();
    expect(row()).toMatchObject({ counts: { tools: 1 }, quarantined: 0 });
    expect(shown.pins.list().find(({ tool }) => tool === "add")?.state).toBe("changed");
    save({});
    await shown.reload();
    expect(row()).toMatchObject({ counts: { tools: 3 }, quarantined: 1 });
  } finally {
    await shown.close({ drainMs: 0 });
  }
});
