// The tables of the verbs on a narrow terminal, with names as long and as wide as people make them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";
import { History } from "../../observe/calls/history.js";
import { historyAnswer } from "../../observe/calls/shown-history.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

const COLUMNS = 70;
/** As people name servers; together with states and addresses such names leave the rest of a row some room. */
const NAME = "a-rather-long-name";
const LONG = "a-name-that-somebody-made-long-without-a-thought-of-tables-on-terminals";
const WIDE = "日本語の名前がとても長いサーバーです日本語の名前がとても長いサーバーです";

const server = (name: string) => ({
  ...STATUS.servers[0],
  name,
  state: "ready",
  readyAfterMs: 12_345,
  quarantined: 2,
  serverInfo: { name: LONG, version: "20261119.1.2" },
  version: "2025-11-25",
});

const RUNNING = {
  pid: 1_234_567,
  config: `/work/${LONG}/toolway.json`,
  builtIn: undefined,
  stateDir: `/state/${WIDE}`,
  endpoint: "http://127.0.0.1:7420/mcp",
  startedAt: "2026-01-01T00:00:00.000Z",
};

const SEEN = {
  gateway: LONG,
  place: { host: LONG, address: "http://10.0.0.1:7420", file: `/etc/${WIDE}` },
  partitions: 64,
  config: "0123456789ab",
  version: "0.1.0",
  isLeaving: true,
  isThis: true,
};

const PIN = { state: "pinned", firstSeen: "2026-01-01T00:00:00.000Z", hash: "a".repeat(40) };

const WRITE = {
  id: "FerwX6WvQwrUsPYjX0bq2A",
  state: "unknown",
  why: LONG,
  takenMs: Date.now(),
  attempts: 12,
  lane: "",
};

const CALL = { role: LONG, server: "s", method: "tools/call", ms: 1_290, phase: "server" };

/** Columns that a terminal needs for a line without colours: of what stands here, CJK is wide. */
const columnsOf = (line: string) => line.replace(/[\u3041-\u9fff]/g, "xx").length;

// Names that fit: those that do not are whole all the same. `drain` has an address beside them, and is among those below.
it.each([
  ["ps", "PID"],
  ["list", "SERVER"],
  ["status", "SERVER"],
  ["tools", "TOOL"],
  ["pins", "SERVER"],
  ["token list", "ID"],
  ["outbox list", "RECEIPT"],
])("`%s` fits the width of a terminal, whatever is said beside the names [status-true]", async (line, first) => {
  const rows = await rowsOf(line, first, [NAME, "短い名前", "short"]);
  expect(rows.length).toBeGreaterThanOrEqual(3);
  expect(rows.join("\n")).toContain("…");
  expect(rows.filter((row) => columnsOf(row) > COLUMNS)).toEqual([]);
});

// A terminal breaks a line that is too long for it, and nothing of it is lost; of a name that is cut something is.
it.each([
  ["list", "SERVER"],
  ["status", "SERVER"],
  ["tools", "TOOL"],
  ["pins", "SERVER"],
  ["token list", "ID"],
  ["drain", "GATEWAY"],
  ["top --once", "SERVER"],
  ["top --once", "UNDER WAY"],
])(
  "`%s` cuts no name, by which its rows are told apart and which is typed, however narrow it is [status-true]",
  async (line, first) => {
    const names = ["one", "two"].map((end) => `a-name-that-somebody-made-long-for-the-studio-${end}`);
    const rows = await rowsOf(line, first, names, 40);
    for (const name of names) expect(rows.filter((row) => row.includes(name))).toHaveLength(1);
    expect(rows.join("\n")).toContain("…");
  },
);

it("what is copied from a table, or told apart by, is whole at the widths that people have [status-true]", async () => {
  const at = async (columns: number, line: string, first: string) =>
    (await rowsOf(line, first, ["web", "notes"], columns)).slice(1).join("\n");
  expect(await at(80, "outbox list", "RECEIPT")).toMatch(/FerwX6WvQwrUsPYjX0bq2A +unknown /);
  expect(await at(60, "ps", "PID")).toMatch(/^1234567 .* http:\/\/127\.0\.0\.1:7420\/mcp /m);
  expect(await at(40, "status", "SERVER")).toMatch(/^web +ready +stdio /m);
  expect(await at(70, "drain", "GATEWAY")).toContain("http://10.0.0.1:7420");
  expect(await at(120, "pins", "SERVER")).toMatch(/ pinned +20(25|26)-\d\d-\d\d \d\d:\d\d +a{12}$/m);
});

async function rowsOf(line: string, first: string, names: readonly string[], columns = COLUMNS): Promise<string[]> {
  const tools = names.map((name) => ({ name: `${name}__add`, server: name, ownName: "add", description: LONG }));
  const tokens = names.map((id) => ({ id, role: LONG, createdAt: "2026-01-01", maySendTo: [WIDE] }));
  const servers = names.map(server);
  fakeGateway(
    {
      "/status": { ...STATUS, servers },
      "/tools": { tools },
      "/pins": { pins: names.map((name) => ({ ...PIN, server: name, tool: name })), trusted: [], servers: names },
      "/tokens": { tokens },
      "/history": historyAnswer(new URLSearchParams(), new History((_, tool) => tool), 1),
      "/calls?limit=0": { underWay: names.map((name) => ({ ...CALL, principal: name, tool: `${name}-tool` })) },
      "/gateways": { gateways: names.map((gateway) => ({ ...SEEN, gateway })) },
      "/outbox?limit=50": { writes: names.map((name) => ({ ...WRITE, server: name, tool: name, principal: name })) },
    },
    { list: async () => [RUNNING, { ...RUNNING, config: undefined }] },
  );
  const entry = { command: "npx", args: ["-y", LONG, WIDE] };
  writeFileSync(
    join(folder, "toolway.json"),
    JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, entry])) }),
  );
  const { code, out } = await run(line.split(" "), { isTTY: true, columns, env: { NO_COLOR: "1" } });
  expect(code).toBe(0);
  const lines = out.split("\n");
  const from = lines.findIndex((one) => one.startsWith(first));
  return lines.slice(from, lines.indexOf("", from));
}
