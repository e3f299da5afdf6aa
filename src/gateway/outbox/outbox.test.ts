// A gateway whose server goes away and comes back, over real sockets: what a client of the SDK is given, what reaches the
// server, and in which order.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, expect, it, vi } from "vitest";
import { Tracker } from "../../../test/fixtures/outbox/tracker.js";
import type { GatewayStatus } from "../../contracts/status.js";
import { findGateway } from "../../control/client.js";
import { createGateway, type Gateway } from "../../index.js";
import { Outbox } from "../../outbox/outbox.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { Mailboxes } from "../mailboxes/mailboxes.js";

const SOON = { timeout: 60_000, interval: 20 };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

async function begin(stateDir: string, port: number, rules = {}): Promise<{ gateway: Gateway; client: Client }> {
  const outbox = { key: "arguments.request_id" };
  const tracker = { type: "http", url: `http://127.0.0.1:${port}/mcp`, tools: { create_issue: { outbox } }, ...rules };
  const gateway = await createGateway({ mcpServers: { tracker } } as never, { stateDir, noAuth: true });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  return { gateway, client: await connect(gateway) };
}

async function connect(gateway: Gateway): Promise<Client> {
  const { url } = await gateway.listen({ port: 0 });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client["connect"]>[0]);
  cleanUp.push(() => client.close());
  return client;
}

it("a write is answered by a server that is up, kept over a restart while it is away, and delivered once and in order [ack-is-durable] [lane-order] [no-double-effect]", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
  const tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(() => tracker.close());
  const first = await begin(stateDir, tracker.port);
  const create = (client: Client, n: number) =>
    client.callTool({ name: "tracker__create_issue", arguments: { n } }) as Promise<JsonObject>;
  expect(await create(first.client, 0)).toEqual({ content: [{ type: "text", text: "issue 1" }] });
  await tracker.close();
  for (const n of [1, 2]) {
    expect((await create(first.client, n))["structuredContent"]).toMatchObject({ queued: true, state: "queued" });
  }
  await first.client.close();
  await first.gateway.close({ drainMs: 0 });
  const second = await begin(stateDir, tracker.port);
  expect((await create(second.client, 3))["structuredContent"]).toMatchObject({ queued: true, position: 2 });
  await tracker.listen();
  await vi.waitFor(() => expect(tracker.done.size).toBe(4), SOON);
  expect([...tracker.done.values()].map(({ n }) => n)).toEqual([0, 1, 2, 3]);
}, 120_000);

it("what is queued stays as it was queued when a reload takes the outbox from its tool [ack-is-durable] [lane-order]", async () => {
  const folder = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(folder, { recursive: true, force: true }));
  const tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(() => tracker.close());
  const configPath = join(folder, "toolway.json");
  const write = (tools: object) => {
    const url = `http://127.0.0.1:${tracker.port}/mcp`;
    writeFileSync(configPath, JSON.stringify({ mcpServers: { tracker: { type: "http", url, tools } } }));
  };
  write({ create_issue: { outbox: { key: "arguments.request_id", lane: "arguments.project" } } });
  const gateway = await createGateway(configPath, { stateDir: join(folder, "state"), noAuth: true });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  const client = await connect(gateway);
  const create = (n: number) =>
    client.callTool({ name: "tracker__create_issue", arguments: { n, project: "site" } }) as Promise<JsonObject>;
  await create(0);
  await tracker.close();
  const receipts = [await create(1), await create(2)].map((one) => one["structuredContent"] as JsonObject);
  expect(receipts).toMatchObject([{ queued: true }, { queued: true }]);
  write({});
  await gateway.reload();
  await tracker.listen();
  await vi.waitFor(() => expect(tracker.done.size).toBe(3), SOON);
  // In their order, each under a key, which the tool has no place for any more.
  expect([...tracker.done.values()].map(({ n }) => n)).toEqual([0, 1, 2]);
  expect([...tracker.done.keys()].slice(1).every((key) => typeof key === "string")).toBe(true);
  // Who has a receipt may ask after it, though nobody is shown the tool any more.
  const [{ receipt: id } = {}] = receipts;
  const ask = (args: JsonObject) => client.callTool({ name: "toolway__receipt", arguments: args });
  await vi.waitFor(
    async () => expect(await ask({ id })).toMatchObject({ structuredContent: { receipt: id, state: "done" } }),
    SOON,
  );
  expect(JSON.stringify(await client.readResource({ uri: `toolway://receipts/${String(id)}` }))).toContain("done");
  await expect(ask({ id: "another" })).rejects.toThrow("Unknown tool");
  expect((await client.listTools()).tools.map(({ name }) => name)).not.toContain("toolway__receipt");
  // A call from then on is one as any other.
  expect(await create(3)).toMatchObject({ content: [{ text: "issue 4" }] });
  await tracker.close();
  await expect(create(4)).rejects.toThrow();
}, 120_000);

it("a write to a server that was ejected never left: it is kept, and delivered once when that is tried and is back [ack-is-durable] [no-double-effect]", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
  const tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(() => tracker.close());
  const rules = { restarts: { max: 0 }, backoff: { baseMs: 10, maxMs: 10 }, ejectedProbeMs: 200 };
  const create = (client: Client, n: number) =>
    client.callTool({ name: "tracker__create_issue", arguments: { n } }) as Promise<JsonObject>;
  const first = await begin(stateDir, tracker.port, rules);
  await create(first.client, 0);
  await tracker.close();
  await first.client.close();
  await first.gateway.close({ drainMs: 0 });
  const { gateway, client } = await begin(stateDir, tracker.port, rules);
  await vi.waitFor(() => expect(gateway.status().servers[0]).toMatchObject({ state: "ejected" }), SOON);
  for (const n of [1, 2]) {
    expect((await create(client, n))["structuredContent"]).toMatchObject({ queued: true, state: "queued" });
  }
  expect(tracker.done.size).toBe(1);
  await tracker.listen();
  await vi.waitFor(() => expect(tracker.done.size).toBe(3), SOON);
  expect([...tracker.done.values()].map(({ n }) => n)).toEqual([0, 1, 2]);
}, 120_000);

it("a write that waits for its server goes out as soon as any call of that is answered [ack-is-durable]", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
  // The longest waits: 0.5, 1, 1.5 and 3 seconds, so that the write is tried at 3 and at 6 seconds.
  const random = vi.spyOn(Math, "random").mockReturnValue(0.999);
  cleanUp.push(() => random.mockRestore());
  const tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(() => tracker.close());
  const { client } = await begin(stateDir, tracker.port, { breaker: { failures: 1_000 } });
  const call = (name: string, args: JsonObject) =>
    client.callTool({ name: `tracker__${name}`, arguments: args }) as Promise<JsonObject>;
  await call("create_issue", { n: 0 });
  await tracker.close();
  expect((await call("create_issue", { n: 1 }))["structuredContent"]).toMatchObject({ queued: true });
  await new Promise((resolve) => setTimeout(resolve, 3_600));
  expect(tracker.done.size).toBe(1);
  await tracker.listen();
  await call("find_issues", {});
  await vi.waitFor(() => expect(tracker.done.size).toBe(2), { timeout: 1_500, interval: 20 });
}, 30_000);

it("a gateway that is closed at once closes its outbox before its store [ack-is-durable]", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
  const faults: unknown[] = [];
  const unforeseen = (error: unknown) => faults.push(error);
  const log = { debug() {}, info() {}, warn() {}, error: (...said: unknown[]) => void faults.push(said) };
  process.on("unhandledRejection", unforeseen);
  cleanUp.push(() => process.off("unhandledRejection", unforeseen));
  const tracker = { type: "http", url: "http://127.0.0.1:9/mcp", tools: { create_issue: { outbox: true } } };
  const gateway = await createGateway({ mcpServers: { tracker } } as never, { stateDir, noAuth: true, log });
  await gateway.close({ drainMs: 0 });
  // What opens it is loaded by now, and so it has failed if it can.
  await import("../../outbox/index.js");
  await new Promise((resolve) => setImmediate(resolve));
  expect(faults).toEqual([]);
});

it("a gateway that ends closes control last: when its journal and its mailboxes are closed, status still says what is left [drain]", async () => {
  const stateDir = mkdtempSync(join(tmpdir(), "toolway-outbox-gateway-"));
  cleanUp.push(() => rmSync(stateDir, { recursive: true, force: true }));
  const tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(() => tracker.close());
  const { gateway, client } = await begin(stateDir, tracker.port);
  await gateway.openControl();
  await client.callTool({ name: "tracker__create_issue", arguments: { n: 0 } });
  await tracker.close();
  await client.callTool({ name: "tracker__create_issue", arguments: { n: 1 } });
  await client.close();
  const control = await findGateway(stateDir);
  const left: [closed: string, waiting: number | undefined][] = [];
  for (const { prototype } of [Outbox, Mailboxes]) {
    const { close } = prototype;
    const spy = vi.spyOn(prototype, "close").mockImplementation(async function (this: never) {
      await close.call(this);
      left.push([prototype.constructor.name, (await control?.get<GatewayStatus>("/status"))?.outbox?.waiting]);
    });
    cleanUp.push(() => spy.mockRestore());
  }
  await gateway.close({ drainMs: 0 });
  expect(left).toEqual([
    ["Outbox", 1],
    ["Mailboxes", 1],
  ]);
  expect(await findGateway(stateDir)).toBeUndefined();
}, 120_000);
