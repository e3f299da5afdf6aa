import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Duplex, PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { expect, it, vi } from "vitest";
import type { RunLine } from "../../contracts/runs.js";
import { createGateway } from "../create.js";
import type { Gateway } from "../gateway.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 20 };

/** A run of this gateway, and what it is told. */
function beginRun(gateway: Gateway, facts: object = {}) {
  const [toGateway, toRun] = [new PassThrough(), new PassThrough()];
  const told: RunLine[] = [];
  toRun.on("data", (chunk: Buffer) => {
    for (const line of chunk.toString().split("\n").filter(Boolean)) told.push(JSON.parse(line) as RunLine);
  });
  gateway.serveRun(Duplex.from({ readable: toGateway, writable: toRun }));
  toGateway.write(`${JSON.stringify({ kind: "begin", client: "claude", context: {}, ...facts })}\n`);
  return { told, end: () => void toGateway.write('{"kind":"end"}\n') };
}

it("a gateway over stdio says of the address that it opened for a run that it is for runs, so that nobody writes it down [setup-keeps]", async () => {
  const gateway = await createGateway({ mcpServers: {} });
  try {
    expect(gateway.status()).toMatchObject({ endpoint: undefined, forRuns: false });
    const { told } = beginRun(gateway);
    await vi.waitFor(() => expect(told).toHaveLength(1), SOON);
    // The gateway itself is its user's, who starts it again.
    expect(told[0]).toMatchObject({ kind: "held", forRuns: false, url: gateway.status().endpoint });
    expect(gateway.status().forRuns).toBe(true);
  } finally {
    await gateway.close({ drainMs: 0 });
  }
});

it("a run is told of each restart of a server while it was under way, and of none before it [restart-unseen] [run-own]", async () => {
  const fixture = fileURLToPath(new URL("../../../test/fixtures/servers/stateful.mjs", import.meta.url));
  const entry = { command: process.execPath, args: [fixture], backoff: { baseMs: 1 } };
  const gateway = await createGateway({ mcpServers: { one: entry } });
  const state = () => gateway.status().servers[0];
  const killOnce = async (restarts: number) => {
    process.kill(state()?.pid ?? 0, "SIGKILL");
    await vi.waitFor(() => expect(state()?.state).not.toBe("ready"), SOON);
    // It is started again when it is wanted, as by a call.
    gateway.servers.supervised("one")?.ensure();
    await vi.waitFor(() => expect(state()).toMatchObject({ restarts, state: "ready" }), SOON);
  };
  try {
    await vi.waitFor(() => expect(state()).toMatchObject({ state: "ready" }), SOON);
    await killOnce(1);
    const { told, end } = beginRun(gateway);
    await vi.waitFor(() => expect(told).toHaveLength(1), SOON);
    await killOnce(2);
    // Nothing else happened in it, and it is told nevertheless.
    const figures = { calls: 0, refused: [], restarts: 1, queued: 0 };
    await vi.waitFor(() => expect(told.slice(1)).toEqual([{ kind: "figures", ...figures }]), SOON);
    end();
    await vi.waitFor(() => expect(told.at(-1)).toEqual({ kind: "ended", ...figures }), SOON);
  } finally {
    await gateway.close({ drainMs: 0 });
  }
});

it("a run whose role is taken out of the config has nothing until it is back, and others what unlistedRoles says [run-own]", async () => {
  const dir = mkdtempSync(join(tmpdir(), "toolway-role-"));
  const file = join(dir, "toolway.json");
  const fixture = fileURLToPath(new URL("../../../test/fixtures/servers/stateful.mjs", import.meta.url));
  const mcpServers = { one: { command: process.execPath, args: [fixture] } };
  const write = (roles: object) => writeFileSync(file, JSON.stringify({ mcpServers, roles }));
  write({ reader: { allow: ["one/count"] } });
  const gateway = await createGateway(file, { watch: false });
  try {
    await vi.waitFor(() => expect(gateway.status().servers[0]).toMatchObject({ state: "ready" }), SOON);
    const connect = async (url: string, token: string | undefined): Promise<Client> => {
      const client = new Client({ name: "agent", version: "1" });
      const headers = { authorization: `Bearer ${token}` };
      const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
      await client.connect(transport as Parameters<Client["connect"]>[0]);
      return client;
    };
    const { told } = beginRun(gateway, { role: "reader" });
    await vi.waitFor(() => expect(told).toHaveLength(1), SOON);
    const { url, secret } = told[0] as Extract<RunLine, { kind: "held" }>;
    const [agent, other] = [await connect(url, secret), await connect(url, gateway.token)];
    const seenBy = async (client: Client) => (await client.listTools()).tools.length;
    expect([await seenBy(agent), await seenBy(other)]).toEqual([1, 2]);
    write({});
    await gateway.reload();
    expect([await seenBy(other), await seenBy(agent), await seenBy(other)]).toEqual([2, 0, 2]);
    await expect(agent.callTool({ name: "one__count", arguments: {} })).rejects.toThrow(
      'role "reader", which this run was started with, is no longer in the config',
    );
    write({ reader: {} });
    await gateway.reload();
    expect(await seenBy(agent)).toBe(2);
    await Promise.all([agent.close(), other.close()]);
  } finally {
    await gateway.close({ drainMs: 0 });
    rmSync(dir, { recursive: true, force: true });
  }
});
