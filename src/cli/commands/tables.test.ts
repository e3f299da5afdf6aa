// The tables of the verbs on a narrow terminal, with names as long and as wide as people make them.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fakeGateway, folder, leaveFolder, makeFolder, run, STATUS } from "../../../test/fixtures/fake-gateway.js";

beforeEach(makeFolder);
afterEach(leaveFolder);

const COLUMNS = 70;
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

/** Columns that a terminal needs for a line without colours: of what stands here, CJK is wide. */
const columnsOf = (line: string) => line.replace(/[\u3041-\u9fff]/g, "xx").length;

it.each([
  ["ps", "PID"],
  ["list", "SERVER"],
  ["status", "SERVER"],
  ["tools", "TOOL"],
  ["pins", "SERVER"],
  ["token list", "ID"],
  ["drain", "GATEWAY"],
])("`%s` fits the width of a terminal, whatever the names [status-true]", async (line, first) => {
  const names = [LONG, WIDE, "short"];
  const tools = names.map((name) => ({ name: `${name}__add`, server: name, ownName: "add", description: LONG }));
  const tokens = names.map((id) => ({ id, role: LONG, createdAt: "2026-01-01", maySendTo: [WIDE] }));
  const servers = names.map(server);
  fakeGateway(
    {
      "/status": { ...STATUS, servers },
      "/tools": { tools },
      "/pins": { pins: names.map((name) => ({ ...PIN, server: name, tool: name })), trusted: [], servers: names },
      "/tokens": { tokens },
      "/gateways": { gateways: [SEEN, { ...SEEN, gateway: WIDE, isThis: false }] },
    },
    { list: async () => [RUNNING, { ...RUNNING, config: undefined }] },
  );
  const entry = { command: "npx", args: ["-y", LONG, WIDE] };
  writeFileSync(
    join(folder, "toolway.json"),
    JSON.stringify({ mcpServers: Object.fromEntries(names.map((name) => [name, entry])) }),
  );
  const { code, out } = await run(line.split(" "), { isTTY: true, columns: COLUMNS, env: { NO_COLOR: "1" } });
  expect(code).toBe(0);
  const lines = out.split("\n");
  const from = lines.findIndex((one) => one.startsWith(first));
  const rows = lines.slice(from, lines.indexOf("", from));
  expect(rows.length).toBeGreaterThanOrEqual(3);
  expect(rows.join("\n")).toContain("…");
  expect(rows.filter((row) => columnsOf(row) > COLUMNS)).toEqual([]);
});
