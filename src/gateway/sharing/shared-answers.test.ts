// What a machine that shares its tools answers without running anything, and from whose memory: real brokers, sockets and
// servers; those who call know the frames of docs/mailbox-protocol.md alone, but where a gateway of ours is the worker.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/fixtures/folders.js";
import { closeGateways, entry, listed, start } from "../../../test/fixtures/gateways.js";
import { BareClient } from "../../../test/fixtures/mailbox/bare-client.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import { until } from "../../../test/fixtures/wait.js";
import { UNPROMISED_MS } from "../../upstream/lists/age.js";
import type { Gateway } from "../gateway.js";

let test: TestBroker;
let machine: Gateway;
/** A gateway that uses the machine's tools, and when it had read them. */
let worker: Gateway;
let listedMs: number;
let folder: string;
let ledger: string;
const clients = new Map<string, BareClient>();

/** More calls than these tests pay for would be refused. */
const BUDGET = { calls: 3, windowMs: 3_600_000 };

const settings = (roles: object) => ({
  mcpServers: {
    ledger: entry("ledger", [], { env: { LEDGER: ledger } }),
    cached: entry("cached", [], { tools: { stamp: { cache: true } } }),
  },
  share: { broker: test.url, as: "studio", token: "studio-token", calls: 2 },
  roles,
});

beforeAll(async () => {
  test = await TestBroker.open();
  folder = temporaryFolder("toolway-shared-answers-");
  ledger = join(folder, "ledger.txt");
  writeFileSync(ledger, "");
  const configPath = join(folder, "toolway.json");
  writeFileSync(configPath, JSON.stringify(settings({ researcher: { allow: ["ledger", "cached"] } })));
  machine = await start(configPath, { stateDir: join(folder, "machine") });
  await machine.listen({ host: "127.0.0.1", port: 0 });
  await listed(machine, "ledger", "cached");
  await until("the line", () => machine.status().shares?.some(({ state }) => state === "connected"));
  const studio = { mailbox: "studio", broker: test.url, token: "worker-token" };
  worker = await start({ mcpServers: { studio } }, { stateDir: join(folder, "worker") });
  await until("the tools", async () => (await worker.tools()).some(({ name }) => name.endsWith("note")));
  listedMs = performance.now();
});
afterAll(async () => {
  await closeGateways();
  await test.end();
});

async function client(address: string, token: string): Promise<BareClient> {
  const known = clients.get(address);
  if (known !== undefined) return known;
  const made = await BareClient.connect(test.url, address, token);
  made.send({ kind: "subscribe" });
  clients.set(address, made);
  return made;
}

async function ask(one: BareClient, id: string, body: object): Promise<Record<string, unknown>> {
  one.deliver("studio", id, body);
  for (;;) {
    const message = await one.message();
    one.send({ kind: "ack", id: message.id });
    if (message["correlation_id"] === id) return message["body"] as Record<string, unknown>;
  }
}

const note = (text: string) => ({ op: "call", tool: "ledger__note", arguments: { text } });

describe("tools that are shared through a broker", () => {
  it("run as many calls at once as their config says, and no more [bounded]", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const ids = Array.from({ length: 6 }, (_, n) => `wait-${n}`);
    for (const id of ids) bare.deliver("studio", id, { op: "call", tool: "ledger__wait", arguments: { ms: 50 } });
    const most: number[] = [];
    for (let n = 0; n < ids.length; n++) {
      const message = await bare.message();
      bare.send({ kind: "ack", id: message.id });
      most.push(Number(/at most (\d+)/.exec(JSON.stringify(message["body"]))?.[1]));
    }
    expect(Math.max(...most)).toBe(2);
  });

  it("keep private answers of the cache apart by worker and by the session that it names [host-8]", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const params = { name: "cached__stamp", arguments: { key: "k", cacheScope: "private" }, _meta: meta };
    const runOf = async (one: BareClient, session: string, id: string) => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
      return Number(/\\"run\\":(\d+)/.exec(JSON.stringify(await ask(one, id, { op: "rpc", session, message })))?.[1]);
    };
    const [bare, other] = [await client("worker-1#bare", "worker-token"), await client("worker-2#bare", "other-token")];
    expect(await runOf(bare, "a", "stamp-1")).toBe(1);
    expect(await runOf(bare, "a", "stamp-2")).toBe(1);
    expect(await runOf(bare, "b", "stamp-3")).toBe(2);
    expect(await runOf(other, "a", "stamp-4")).toBe(3);
    expect(await runOf(bare, "a", "stamp-5")).toBe(1);
  });

  it("refuse a name that nobody has without a message to their machine, while it is there and tells of changes [menu-current]", async () => {
    const { broker } = test;
    const deliver = broker.deliver.bind(broker);
    const sent: string[] = [];
    broker.deliver = async (sender, frame, by) => {
      if (sender.owner === "worker-1") sent.push(frame.message.body);
      await deliver(sender, frame, by);
    };
    // Any other server would be asked again after so long.
    await until("an old list", () => performance.now() - listedMs > UNPROMISED_MS + 100);
    const before = sent.length;
    listedMs = performance.now();
    await expect(worker.call("ledger__nothing", {})).rejects.toMatchObject({ code: -32602 });
    expect(sent.slice(before)).toEqual([]);
    broker.deliver = deliver;
  });

  it("answer a finished message as they did, whatever roles and budgets say by now, and charge it once [no-double-effect]", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const effects = () => readFileSync(ledger, "utf8").split("\n").filter(Boolean);
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(settings({ researcher: { budget: BUDGET } })));
    await machine.reload();
    const first = await ask(bare, "paid-1", note("first"));
    expect(first).toMatchObject({ result: { success: true } });
    for (let i = 0; i < 5; i++) expect(await ask(bare, "paid-1", note("first"))).toEqual(first);
    for (const id of ["paid-2", "paid-3"]) expect(await ask(bare, id, note(id))).toMatchObject({ result: {} });
    expect(await ask(bare, "paid-4", note("one too many"))).toMatchObject({ error: expect.stringContaining("budget") });
    writeFileSync(join(folder, "toolway.json"), JSON.stringify(settings({ researcher: { allow: [] } })));
    await machine.reload();
    expect(await ask(bare, "lost", note("lost"))).toMatchObject({ error: expect.stringContaining("not allowed") });
    expect(await ask(bare, "paid-1", note("first"))).toEqual(first);
    expect(effects()).toEqual(["first", "paid-2", "paid-3"]);
  });
});
