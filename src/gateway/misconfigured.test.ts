// A server whose entry is wrong, in a gateway that runs: what status, log and agents are told, and when it starts.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are variables of the config

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, expect, it, vi } from "vitest";
import { keepAnswer } from "../config/inputs/answers.js";
import { createGateway, createLog, type Gateway, type GatewayInput, type GatewayOptions } from "../index.js";

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 50 };
const fixture = fileURLToPath(new URL("../../test/fixtures/servers/stateful.mjs", import.meta.url));
const good = { command: process.execPath, args: [fixture] };
const withKey = { ...good, env: { KEY: "${KEY}" } };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolway-misconfigured-"));
  cleanUp.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function create(input: GatewayInput, options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await createGateway(input, { env: { PATH: process.env["PATH"] }, noAuth: true, ...options });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  return gateway;
}

async function connect(gateway: Gateway, path = ""): Promise<Client> {
  const { url } = await gateway.listen({ port: 0 });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url + path)) as Parameters<Client["connect"]>[0]);
  cleanUp.push(() => client.close());
  return client;
}

const stateOf = (gateway: Gateway, name: string) => gateway.status().servers.find((server) => server.name === name);
const ready = (gateway: Gateway, name: string) =>
  vi.waitFor(() => expect(stateOf(gateway, name)).toMatchObject({ state: "ready", listsFromBefore: false }), SOON);
const fails = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: Error) => error,
  );

it("is a state: status, log and agents are told why, and the others run [bad-entry-alone] [one-bad-server]", async () => {
  const lines: string[] = [];
  const log = createLog({ write: (line) => void lines.push(line) });
  const gateway = await create({ mcpServers: { github: withKey, one: good } }, { log });
  expect(stateOf(gateway, "github")).toMatchObject({
    state: "misconfigured",
    since: expect.stringMatching(/^\d{4}-.*Z$/),
    lastError: expect.stringContaining("mcpServers.github.env.KEY: KEY is not set"),
  });
  expect(lines.join("")).toContain("misconfigured: config: mcpServers.github.env.KEY: KEY is not set");
  const client = await connect(gateway);
  await ready(gateway, "one");
  expect(await client.callTool({ name: "one__count", arguments: {} })).toBeDefined();
  const told = await fails(client.callTool({ name: "github__count", arguments: {} }));
  expect(told?.message).toContain(
    'Server "github" is not available: it is misconfigured: KEY is not set (env.KEY). `toolway doctor` says what to fix.',
  );
  expect(told).toMatchObject({ data: { fault: "unavailable", server: "github" } });
  expect(await fails(gateway.stopServer("github"))).toMatchObject({
    message: expect.stringContaining("misconfigured"),
  });
});

it("keeps the tools that are known of it, and at /mcp/<server> too a call is told why [bad-entry-alone] [menu-survives]", async () => {
  const stateDir = temporary();
  const env = { PATH: process.env["PATH"], KEY: "k" };
  const before = await create({ mcpServers: { github: withKey } }, { stateDir, env });
  await ready(before, "github");
  await before.close({ drainMs: 0 });
  const gateway = await create({ mcpServers: { github: withKey } }, { stateDir });
  const client = await connect(gateway, "/github");
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain("count");
  const told = (await fails(client.callTool({ name: "count", arguments: {} }))) as Error & { data?: unknown };
  expect(told.message).toContain('Server "github" is misconfigured: KEY is not set (env.KEY)');
  expect(told.data).toMatchObject({ server: "github", state: "misconfigured" });
});

it("starts when the variable is right and it is reloaded, by name or with the config [bad-entry-alone]", async () => {
  for (const reload of ["server", "config"]) {
    const env: NodeJS.ProcessEnv = { PATH: process.env["PATH"] };
    const gateway = await create({ mcpServers: { github: withKey } }, { env });
    expect(await fails(gateway.reloadServer("github"))).toMatchObject({
      message: expect.stringContaining("KEY is not set"),
    });
    env["KEY"] = "k";
    if (reload === "server") await gateway.reloadServer("github");
    else await gateway.reload();
    await ready(gateway, "github");
  }
});

it.each(["its entry is mended in the file", "the envFile is there that was missing"])(
  "one that was wrong from the start is started by a reload when %s [bad-entry-alone]",
  async (mended) => {
    const file = join(temporary(), "toolway.json");
    const envFile = `${file}.env`;
    const write = (entry: object) => writeFileSync(file, JSON.stringify({ mcpServers: { github: entry, one: good } }));
    write({ ...good, envFile });
    const gateway = await create(file, { watch: false });
    expect(stateOf(gateway, "github")).toMatchObject({
      state: "misconfigured",
      lastError: expect.stringContaining("envFile"),
    });
    await ready(gateway, "one");
    const pid = stateOf(gateway, "one")?.pid;
    if (mended.startsWith("its entry is")) write(good);
    else writeFileSync(envFile, "KEY=k\n");
    await gateway.reload();
    await ready(gateway, "github");
    expect(stateOf(gateway, "one"), "the other is not touched").toMatchObject({ state: "ready", pid });
  },
);

it("a server that runs goes on by its old entry when the new one is wrong, and status says so [bad-entry-alone]", async () => {
  const file = join(temporary(), "toolway.json");
  const write = (servers: object) => writeFileSync(file, JSON.stringify({ mcpServers: servers }));
  write({ one: good });
  const gateway = await create(file, { watch: false });
  await ready(gateway, "one");
  const pid = stateOf(gateway, "one")?.pid;
  write({ one: withKey, two: good });
  await gateway.reload();
  await ready(gateway, "two");
  expect(stateOf(gateway, "one")).toMatchObject({ state: "ready", pid });
  expect(stateOf(gateway, "one")?.problems.join()).toContain("its new entry is not used, the one before goes on");
  expect(gateway.status().config.error).toBeUndefined();
  expect(gateway.status().config.keptEntries).toEqual({ one: expect.stringContaining("is not set") });
  write({ one: good });
  await gateway.reload();
  expect(gateway.status().config.keptEntries).toEqual({});
  expect(stateOf(gateway, "one")).toMatchObject({ pid, problems: [] });
});

it("an input is the answer that is kept in the state, also where the config names that; a reload finds a new one", async () => {
  const servers = { one: { ...good, env: { KEY: "${input:key}" } } };
  for (const isNamed of [false, true]) {
    const stateDir = temporary();
    const input = isNamed ? { servers, state: stateDir } : { servers };
    const gateway = await create(input, isNamed ? {} : { stateDir });
    expect(stateOf(gateway, "one")).toMatchObject({
      state: "misconfigured",
      lastError: expect.stringContaining("INPUT_KEY is not set"),
    });
    keepAnswer(stateDir, "key", "typed");
    await gateway.reloadServer("one");
    await ready(gateway, "one");
  }
});
