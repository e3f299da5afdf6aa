// Tools that are shared through a broker: the fourteen things that a simple broker of tools gets wrong, one test for each.
// The broker, its store and its sockets are real, as are the machine that shares and its servers. Those who call know the
// frames of docs/mailbox-protocol.md alone, but where a gateway of ours is the worker.

import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../test/fixtures/folders.js";
import { closeGateways, entry, listed, start } from "../../../test/fixtures/gateways.js";
import { BareClient, type BareReply, type Frame } from "../../../test/fixtures/mailbox/bare-client.js";
import { ScriptedSharer } from "../../../test/fixtures/mailbox/scripted-sharer.js";
import { TestBroker } from "../../../test/fixtures/mailbox/test-broker.js";
import { sleep, until } from "../../../test/fixtures/wait.js";
import type { Gateway } from "../gateway.js";

const ROLES = { researcher: { allow: ["ledger/note", "ledger/echo", "ledger/wait", "slow", "fidelity", "stateful"] } };

let test: TestBroker;
let machine: Gateway;
/** A gateway that uses the machine's tools. */
let worker: Gateway;
let ledger: string;
let silent: BareClient;
let closedAfterMs: Promise<number>;

beforeAll(async () => {
  test = await TestBroker.open();
  const connectedMs = performance.now();
  silent = await BareClient.open(test.url);
  closedAfterMs = silent.next("nothing").then(
    () => 0,
    () => performance.now() - connectedMs,
  );
  const folder = temporaryFolder("toolway-shared-tools-");
  ledger = join(folder, "ledger.txt");
  await writeFile(ledger, "");
  const mcpServers = {
    ledger: entry("ledger", [], { env: { LEDGER: ledger } }),
    slow: entry("slow"),
    fidelity: entry("fidelity"),
    stateful: entry("stateful", [], { isolation: "session" }),
  };
  const share = { broker: test.url, as: "studio", token: "studio-token" };
  machine = await start(
    { mcpServers, share, roles: ROLES, unlistedRoles: "deny" },
    { stateDir: join(folder, "machine") },
  );
  await machine.listen({ host: "127.0.0.1", port: 0 });
  await listed(machine, "ledger", "slow", "fidelity");
  const studio = { mailbox: "studio", broker: test.url, token: "worker-token" };
  const barn = { mailbox: "barn", broker: test.url, token: "other-token", awayWaitMs: 1 };
  worker = await start({ names: "prefixed", mcpServers: { studio, barn } }, { stateDir: join(folder, "worker") });
  await worker.listen({ host: "127.0.0.1", port: 0 });
  await until("the machine's tools", async () => (await toolsOf(worker)).includes("studio__ledger__note"));
});
afterAll(async () => {
  await closeGateways();
  await test.end();
});

async function toolsOf(gateway: Gateway): Promise<string[]> {
  return (await gateway.tools()).map(({ name }) => name);
}

const effects = async (text: string) => (await readFile(ledger, "utf8")).split("\n").filter((it) => it === text).length;

const clients = new Map<string, Promise<BareClient>>();

/** One for each address: two of one would share what comes. */
function client(address: string, token: string): Promise<BareClient> {
  const known = clients.get(address) ?? BareClient.connect(test.url, address, token);
  if (!clients.has(address)) void known.then((one) => one.send({ kind: "subscribe" }));
  clients.set(address, known);
  return known;
}

/** What the broker says of this delivery. */
async function settled(one: BareClient, id: string): Promise<Frame> {
  for (;;) {
    const frame = await one.next("delivered", "error");
    if (frame["id"] === id) return frame;
  }
}

async function ask(one: BareClient, id: string, body: unknown, message: object = {}): Promise<BareReply> {
  one.deliver("studio", id, body, {}, message);
  return one.replyTo(id);
}

const call = (tool: string, args: object = {}) => ({ op: "call", tool, arguments: args });

describe("tools that are shared through a broker", () => {
  it("1: know a caller by its token: what it says of its id, its role or its address counts for nothing", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const claims = { from: { session_id: "root", role: "admin" }, role: "admin" };
    const { error } = await ask(bare, "claims", call("ledger__secret"), claims);
    expect(error).toMatch(/'ledger__secret' is not allowed for role 'researcher'/);
    await expect(
      BareClient.connect(test.url, "worker-1", "worker-token", { agent: { session_id: "worker-1", role: "admin" } }),
    ).rejects.toThrow(/the role "researcher"/);
  });

  it("2: are open to no role that is not listed, nor to a caller without one, where the config says so; its word for it is in the refusal", async () => {
    const guest = await client("guest", "guest-token");
    expect(await ask(guest, "list", { op: "manifest" })).toEqual({ manifest: [] });
    const { error } = await ask(guest, "call", call("ledger__secret"));
    expect(error).toMatch(/'ledger__secret' is not allowed for role '<none>'/);
  });

  it("3: are answered to whoever asked, and to no address that a message names", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const other = await client("worker-2#bare", "other-token");
    const body = { ...call("ledger__echo"), reply_to: "worker-2#bare" };
    expect((await ask(bare, "to-me", body, { reply_to: "worker-2#bare" })).result).toMatchObject({ success: true });
    // Whatever was sent to it before this has come by now.
    await ask(other, "to-other", call("ledger__echo"));
    expect(other.left.filter(({ kind }) => kind === "message")).toEqual([]);
  });

  it("4: run a message once that comes again, and answer it as they did [no-double-effect]", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const first = await ask(bare, "again", call("ledger__note", { text: "again" }));
    expect(await ask(bare, "again", call("ledger__note", { text: "again" }))).toEqual(first);
    expect(await effects("again")).toBe(1);
  });

  it("5: see one id when a worker sends its call again, because it was never told that it is delivered [no-double-effect]", async () => {
    const { broker } = test;
    const deliver = broker.deliver.bind(broker);
    const ids: string[] = [];
    broker.deliver = async (sender, frame, by) => {
      await deliver(sender, frame, by);
      if (sender.owner !== "worker-1" || !frame.message.body.includes("once more")) return;
      ids.push(frame.message.id);
      // It is on disk, and whoever sent it is not told.
      if (ids.length > 1) return;
      for (const one of [...test.connections]) if (one.owner === "worker-1") one.end("for the test");
      clients.delete("worker-1#bare");
    };
    const result = await worker.call("studio__ledger__note", { text: "once more" });
    broker.deliver = deliver;
    expect(result).toMatchObject({ content: [{ text: "noted once more" }] });
    expect(new Set(ids).size).toBe(1);
    expect(await effects("once more")).toBe(1);
  });

  it("6: run so many calls at once and no more; others wait where they are safe [bounded]", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    const ids = Array.from({ length: 80 }, (_, n) => `wait-${n}`);
    for (const id of ids) bare.deliver("studio", id, call("ledger__wait", { ms: 100 }));
    const most: number[] = [];
    for (let n = 0; n < ids.length; n++) {
      const message = await bare.message();
      bare.send({ kind: "ack", id: message.id });
      most.push(Number(/at most (\d+)/.exec((message["body"] as BareReply).result?.result ?? "")?.[1]));
    }
    expect(Math.max(...most)).toBeLessThanOrEqual(64);
    expect(Math.max(...most)).toBeGreaterThan(1);
  });

  it("7: are reached over a connection whose delivery to a full mailbox was refused, by the name of the limit [bounded]", async () => {
    const bare = await client("worker-2#bare", "other-token");
    const HALF = 5_000;
    // As many as one connection may have under way.
    const AT_ONCE = 500;
    for (let from = 0; from < HALF; from += AT_ONCE) {
      for (let n = from; n < from + AT_ONCE; n++) bare.deliver("loft", `full-${n}`, {}, {}, { kind: "note" });
      expect(await settled(bare, `full-${from + AT_ONCE - 1}`)).toMatchObject({ kind: "delivered" });
    }
    bare.deliver("loft", "one-more", {}, {}, { kind: "note" });
    expect(await settled(bare, "one-more")).toMatchObject({
      kind: "error",
      reason: 'half of the mailbox "loft" is yours already, and no sender gets more',
    });
    expect((await ask(bare, "still", call("ledger__echo"))).result).toMatchObject({ success: true });
  });

  it("8: leave a message that is none of theirs to whoever it is for", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    bare.deliver("studio", "a-note", { for: "somebody else" }, {}, { kind: "note" });
    // The machine has taken and answered what came after it.
    await ask(bare, "after-it", call("ledger__echo"));
    const reader = await BareClient.connect(test.url, "studio", "studio-token");
    reader.send({ kind: "subscribe", kinds: ["note"] });
    expect(await reader.message()).toMatchObject({ id: "a-note", body: { for: "somebody else" } });
    reader.send({ kind: "ack", id: "a-note" });
    reader.socket.close();
  });

  it("9: do not run what has ended before it came, and hear of what is cancelled", async () => {
    const bare = await client("worker-1#bare", "worker-token");
    bare.deliver("studio", "cancelled", call("slow__sleep", { ms: 600_000, label: "taken back" }));
    const labels = async (tool: string) => {
      const reply = await ask(bare, `${tool}-${performance.now()}`, call(tool));
      return reply.result?.result.includes("taken back");
    };
    await until("its start", () => labels("slow__started"));
    bare.send({ kind: "cancel", to: "studio", correlation_id: "cancelled" });
    await until("its end", () => labels("slow__cancelled"));

    const slow = call("slow__sleep", { ms: 600_000, label: "too slow" });
    bare.deliver("studio", "slow", slow, { left_ms: 500 });
    expect(await bare.replyTo("slow")).toMatchObject({
      error: expect.stringContaining("The deadline of the call has passed"),
    });

    const other = await client("worker-2#bare", "other-token");
    other.deliver("barn", "ended", {}, { left_ms: 1 });
    expect(await other.replyTo("ended")).toMatchObject({ outcome: "not run" });
    const barn = await BareClient.connect(test.url, "barn", "barn-token");
    barn.send({ kind: "subscribe", kinds: ["mcp_request"] });
    other.deliver("barn", "lives");
    expect((await barn.message()).id).toBe("lives");
    barn.send({ kind: "ack", id: "lives" });
    // It has read the acknowledgement when it says that there is nothing more of that name.
    barn.send({ kind: "ack", id: "lives" });
    await barn.next("error");
    barn.socket.terminate();
  });

  it("10: give their whole results: images, structured content, what we do not know, and errors with their codes", async () => {
    const whole = {
      content: [{ type: "image", data: "aGk=", mimeType: "image/png", annotations: { audience: ["user"] } }],
      structuredContent: { n: [1, { deep: null }] },
      _meta: { "fixture/x": 1 },
      "x-unknown": { a: 1 },
    };
    const template = `{"jsonrpc":"2.0","id":@ID@,"result":${JSON.stringify(whole)}}`;
    const bare = await client("worker-1#bare", "worker-token");
    const { result } = await ask(bare, "whole", call("fidelity__answer", { template }));
    expect(result?.mcp).toMatchObject(whole);
    expect(await worker.call("studio__fidelity__answer", { template })).toMatchObject(whole);
    const failing = '{"jsonrpc":"2.0","id":@ID@,"error":{"code":-32099,"message":"Odd","data":{"x":1}}}';
    await expect(worker.call("studio__fidelity__answer", { template: failing })).rejects.toMatchObject({
      code: -32099,
      data: { x: 1 },
    });
  });

  it("11: stay listed where their machine cannot say what it has [menu-survives]", async () => {
    const answers = (list: string) => (rpc: { id: number; method: string }) => {
      const discovered = '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}';
      const said = rpc.method === "tools/list" ? list : `"result":${discovered}`;
      return `{"message":{"jsonrpc":"2.0","id":${rpc.id},${said}}}`;
    };
    const tool = '{"name":"shoot","inputSchema":{"type":"object"}}';
    const barn = await ScriptedSharer.open(
      test.url,
      answers(`"result":{"resultType":"complete","tools":[${tool}],"ttlMs":0,"cacheScope":"public"}`),
      "barn-token",
      "barn",
    );
    await until("its tool", async () => (await toolsOf(worker)).includes("barn__shoot"));
    const lists = () => barn.asked.filter(({ rpc }) => rpc.method === "tools/list").length;
    const before = lists();
    barn.answer = answers('"error":{"code":-32603,"message":"The list is broken"}');
    await worker.reloadServer("barn");
    await until("the broken list to be asked for", () => lists() > before);
    expect(await toolsOf(worker)).toContain("barn__shoot");
    barn.close();
    expect(await toolsOf(worker)).toContain("barn__shoot");
  });

  it("12: are shared by nobody whose token the broker refuses, which is final and stands in the status", async () => {
    const share = { broker: test.url, as: "studio", token: "wrong" };
    const stateDir = temporaryFolder("toolway-refused-");
    const said: string[] = [];
    const refused = await start({ mcpServers: {}, share }, { stateDir, note: (text) => said.push(text) });
    await refused.listen({ host: "127.0.0.1", port: 0 });
    await until("the refusal", () => refused.status().shares?.some(({ state }) => state === "refused"));
    expect(said.join("\n")).toContain("does not come back by itself");
  });

  it("13: take ids for nothing but ids and share their load; order is the broker's, and whoever says nothing is cut off", async () => {
    const other = await client("worker-2#bare", "other-token");
    for (const to of ["../studio", "*", ">", "barn/../studio"]) {
      other.deliver(to, `to ${to}`);
      expect(await settled(other, `to ${to}`)).toMatchObject({ kind: "error" });
    }
    const kinds = ["mcp_request"];
    const barns = await Promise.all([0, 1].map(() => BareClient.connect(test.url, "barn", "barn-token")));
    for (const barn of barns) barn.send({ kind: "subscribe", kinds });
    const dates = ["2030-01-01", "1970-01-01", "2000-01-01", "1999-01-01"];
    for (const [n, created_at] of dates.entries()) other.deliver("barn", `order-${n}`, {}, {}, { created_at });
    await until("all of them", () => barns.reduce((sum, { left }) => sum + left.length, 0) === dates.length);
    const came = barns.map(({ left }) => left.map((frame) => (frame["message"] as { id: string }).id));
    // None has what the other has, and each has its own in the order in which they were sent, whatever their dates say.
    const inOrder = (ids: readonly string[]) => [...ids].sort((a, b) => a.localeCompare(b));
    for (const ids of came) expect(ids).toEqual(inOrder(ids));
    expect(inOrder(came.flat())).toEqual(dates.map((_, n) => `order-${n}`));
    for (const barn of barns) barn.socket.terminate();
    // Within a second or two of the five that it has; a busy machine is late.
    expect(await closedAfterMs).toBeGreaterThan(4_900);
    expect(silent.left.at(-1)).toMatchObject({ kind: "error" });
  });

  it("14: come again from the broker by themselves when a lease has run out, and are dead letters after five", async () => {
    const other = await client("worker-2#bare", "other-token");
    const barn = await BareClient.connect(test.url, "barn", "barn-token");
    const LEASE_MS = 30_000;
    barn.send({ kind: "subscribe", kinds: ["mcp_request"] });
    other.deliver("barn", "held");
    const takes = async (id: string) => {
      for (;;) {
        const message = await barn.message();
        if (message.id === id) return message;
        barn.send({ kind: "ack", id: message.id });
      }
    };
    await takes("held");
    for (let failures = 1; failures <= 5; failures++) {
      test.aheadMs += LEASE_MS + 1;
      // The broker looks at its clock when something comes.
      other.deliver("barn", `look-${failures}`);
      if (failures < 5) await takes("held");
    }
    const { error } = await other.replyTo("held");
    expect(error).toContain('"barn" failed with it 5 times');
    barn.socket.terminate();
  });

  it("of a server with a process for each session go by worker and by the session that it names [crossed-never]", async () => {
    const meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientCapabilities": {},
    };
    const counted = async (one: BareClient, session: string, id: string) => {
      const params = { name: "stateful__count", arguments: {}, _meta: meta };
      const body = { op: "rpc", session, message: { jsonrpc: "2.0", id: 1, method: "tools/call", params } };
      return JSON.stringify(await ask(one, id, body));
    };
    const bare = await client("worker-1#bare", "worker-token");
    const other = await client("worker-2#bare", "other-token");
    const text = (n: number) => `{\\"count\\":${n},`;
    expect(await counted(bare, "a", "count-1")).toContain(text(1));
    expect(await counted(bare, "a", "count-2")).toContain(text(2));
    expect(await counted(bare, "b", "count-3")).toContain(text(1));
    // Another worker that says the same is another.
    expect(await counted(other, "a", "count-4")).toContain(text(1));
    expect(await counted(bare, "a", "count-5")).toContain(text(3));
  });

  it("are never said to be none while that is not known: a bare list waits for a server that starts, and is an error where none can be asked", async () => {
    const bare = await client("worker-2#bare", "other-token");
    const folder = temporaryFolder("toolway-late-");
    const go = join(folder, "go");
    const { args } = entry("ledger");
    const late = `const{existsSync}=require("fs");const t=setInterval(()=>{if(!existsSync(${JSON.stringify(go)}))return;clearInterval(t);import(${JSON.stringify(args[0])})},10)`;
    const share = { broker: test.url, as: "barn", token: "barn-token" };
    const servers = [
      { command: process.execPath, args: ["-e", late], env: { LEDGER: ledger } },
      { command: process.execPath, args: ["-e", "process.exit(1)"] },
    ];
    const replies: BareReply[] = [];
    for (const [n, server] of servers.entries()) {
      const stateDir = join(folder, `state-${n}`);
      const one = await start({ mcpServers: { server }, share }, { stateDir, lasting: true });
      await one.listen({ host: "127.0.0.1", port: 0 });
      bare.deliver("barn", `unknown-${n}`, { op: "manifest" });
      // As long as a list waits that is not the first one: a wrong answer would have come by then.
      await sleep(400);
      await writeFile(go, "");
      replies.push(await bare.replyTo(`unknown-${n}`));
      await one.close({ drainMs: 0 });
    }
    expect(replies[0]?.manifest?.map((tool) => tool.function.name)).toEqual(["note", "echo", "wait", "secret"]);
    expect(replies[1]).toEqual({ error: expect.stringContaining("not known which tools") });
  });
});
