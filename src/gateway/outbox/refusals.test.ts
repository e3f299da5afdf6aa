// What may go to a server and what it refuses, by tokens, pins, statuses and sockets that are real: whom a kept write is still
// delivered for, and what holds it until when.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Tracker } from "../../../test/fixtures/outbox/tracker.js";
import { ownToolName } from "../../contracts/names.js";
import type { OutboxEntry } from "../../contracts/outbox.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { hashOf } from "../../tokens/tokens.js";
import { createGateway } from "../create.js";
import type { Gateway } from "../gateway.js";

const SOON = { timeout: 60_000, interval: 20 };
const KEYED = { create_issue: { outbox: { key: "arguments.request_id" } } };
const KEYLESS = { create_issue: { outbox: true } };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
let folder: string;
let tracker: Tracker;
let gateway: Gateway;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "toolway-outbox-refusals-"));
  tracker = new Tracker();
  await tracker.listen();
  cleanUp.push(
    () => rmSync(folder, { recursive: true, force: true }),
    () => tracker.close(),
  );
});
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

/** By the names of the entries: their tools, and what else is in them. */
function write(entries: Record<string, object>, more: object = {}): string {
  const path = join(folder, "toolway.json");
  const url = `http://127.0.0.1:${tracker.port}/mcp`;
  const mcpServers = Object.fromEntries(
    Object.entries(entries).map(([name, entry]) => [name, { type: "http", url, ...entry }]),
  );
  writeFileSync(path, JSON.stringify({ mcpServers, ...more }));
  return path;
}

async function begin(entries: Record<string, object>, noAuth = true, more: object = {}): Promise<string> {
  gateway = await createGateway(write(entries, more), { stateDir: join(folder, "state"), noAuth, watch: false });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  return (await gateway.listen({ port: 0 })).url;
}

async function clientOf(url: string, token?: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  cleanUp.push(() => client.close().catch(() => {}));
  return client;
}

async function connect(url: string, token?: string): Promise<(tool: string, args: JsonObject) => Promise<JsonObject>> {
  const client = await clientOf(url, token);
  return (name, args) => {
    const { key, ...rest } = args;
    const _meta = key === undefined ? {} : { "toolway/idempotencyKey": key };
    return client.callTool({ name, arguments: rest, _meta }) as Promise<JsonObject>;
  };
}

const receiptOf = (result: JsonObject): string => (result["structuredContent"] as JsonObject)["receipt"] as string;
async function shown(receipt: string): Promise<OutboxEntry | undefined> {
  return gateway.outbox?.show(receipt);
}
const stateOf = async (receipt: string) => (await shown(receipt))?.state;
const effects = () => [...tracker.done.values()].map(({ n }) => n);

it("a kept write goes out for whoever may still make it: not past a changed tool, a revoked token or an entry that is gone, but for a token that expired and a run that is over [ack-is-durable]", async () => {
  const url = await begin({ tracker: { tools: KEYED }, gone: { tools: KEYED } }, false);
  const { tokens } = gateway.state;
  const secrets = {
    kept: await tokens.create({ id: "kept", role: "default" }, Date.now()),
    revoked: await tokens.create({ id: "revoked", role: "default" }, Date.now()),
    run: "the secret of a run",
    expired: "",
  };
  const endRun = tokens.lend({ id: "run", role: "default" }, hashOf(secrets.run));
  await vi.waitFor(() => expect(gateway.outbox).toBeDefined(), SOON);
  for (const server of ["tracker", "gone"]) await gateway.outbox?.hold(server, undefined);
  const receipts: Record<string, string> = {};
  for (const [who, token] of Object.entries(secrets)) {
    if (who === "expired") {
      const principal = { id: "expired", role: "default", expires: Date.now() + 8_000 };
      secrets.expired = await tokens.create(principal, Date.now());
    }
    const call = await connect(url, who === "expired" ? secrets.expired : token);
    receipts[who] = receiptOf(await call("tracker__create_issue", { n: who }));
    if (who === "kept") receipts["gone"] = receiptOf(await call("gone__create_issue", { n: "gone" }));
  }
  await tokens.revoke("revoked");
  endRun();
  write({ tracker: { tools: KEYED } });
  await gateway.reload();
  tracker.description = "creates, and tells others";
  await gateway.reloadServer("tracker");
  const tool = ownToolName("create_issue");
  await vi.waitFor(() => expect(gateway.pins.quarantine("tracker", tool)).toBeDefined(), SOON);
  await vi.waitFor(() => expect(tokens.authenticate(secrets.expired, Date.now())).toBeUndefined(), SOON);
  for (const server of ["tracker", "gone"]) await gateway.outbox?.release(server, undefined);
  await vi.waitFor(async () => expect(await stateOf(receipts["gone"] ?? "")).toBe("failed"), SOON);
  await vi.waitFor(async () => expect((await shown(receipts["kept"] ?? ""))?.heldFor).toContain("quarantine"), SOON);
  expect(tracker.calls).toBe(0);
  await gateway.pins.accept("tracker", tool);
  await vi.waitFor(
    () =>
      expect(
        effects()
          .map(String)
          .sort((a, b) => a.localeCompare(b)),
      ).toEqual(["expired", "kept", "run"]),
    SOON,
  );
  expect(await shown(receipts["revoked"] ?? "")).toMatchObject({
    state: "queued",
    heldFor: expect.stringContaining('the token of "revoked" was revoked'),
  });
}, 120_000);

it("a write that is refused with 401 waits for a login, one with 403 for a person, and each is made once then [agent-5] [no-double-effect]", async () => {
  const call = await connect(await begin({ tracker: { tools: KEYED, headers: { Authorization: "Bearer old" } } }));
  await call("tracker__create_issue", { n: 0 });
  tracker.status = 401;
  const first = receiptOf(await call("tracker__create_issue", { n: 1 }));
  expect(await shown(first)).toMatchObject({ state: "queued" });
  tracker.status = undefined;
  await vi.waitFor(() => expect(effects()).toEqual([0, 1]), SOON);
  tracker.status = 403;
  const second = receiptOf(await call("tracker__create_issue", { n: 2 }));
  const { calls } = tracker;
  tracker.status = undefined;
  // Another write of the lane does not go past it.
  const third = receiptOf(await call("tracker__create_issue", { n: 3 }));
  expect(await shown(second)).toMatchObject({ state: "queued", heldFor: expect.stringContaining("403") });
  expect([tracker.calls, effects()]).toEqual([calls, [0, 1]]);
  await gateway.outbox?.release("tracker", undefined);
  await vi.waitFor(() => expect(effects()).toEqual([0, 1, 2, 3]), SOON);
  await vi.waitFor(
    async () => expect(await Promise.all([first, second, third].map(stateOf))).toEqual(["done", "done", "done"]),
    SOON,
  );
}, 120_000);

it("a write that meets no name or no TLS never left: without a key too it is kept, and made when the address is right [ack-is-durable]", async () => {
  const call = await connect(await begin({ tracker: { tools: KEYLESS } }));
  await call("tracker__create_issue", { n: 0 });
  for (const [n, url] of [
    [1, "http://tracker.invalid:1/mcp"],
    [2, `https://127.0.0.1:${tracker.port}/mcp`],
  ] as const) {
    write({ tracker: { tools: KEYLESS, url } });
    await gateway.reload();
    const receipt = receiptOf(await call("tracker__create_issue", { n }));
    expect(await shown(receipt)).toMatchObject({ state: "queued", attempts: 0 });
  }
  write({ tracker: { tools: KEYLESS } });
  await gateway.reload();
  await vi.waitFor(() => expect(effects()).toEqual([0, 1, 2]), SOON);
}, 120_000);

it("a write without a key whose answer was lost is settled by the tool that reads: found it was done, else it is made again [unknown-is-said] [no-double-effect]", async () => {
  const confirm = { tool: "find_issues", arguments: { query: "{key}" }, found: "/issues/0" };
  const tools = { create_issue: { outbox: { confirm } }, find_issues: { readOnly: true } };
  const call = await connect(await begin({ tracker: { tools } }));
  const create = (n: number) => call("tracker__create_issue", { n, title: `t-${n}`, key: `t-${n}` });
  for (const [n, cut] of [
    [1, "after"],
    [2, "before"],
  ] as const) {
    tracker.cut = cut;
    const result = await create(n);
    await vi.waitFor(() => expect(effects()).toHaveLength(n), SOON);
    if (result["structuredContent"] !== undefined) {
      await vi.waitFor(async () => expect(await stateOf(receiptOf(result))).toBe("done"), SOON);
    }
  }
  expect([tracker.calls, effects()]).toEqual([3, [1, 2]]);
}, 120_000);

it("a call that waits for its credential has not left: taken back it is cancelled, and when its time is over it is queued, though its server knows no keys [unknown-is-said] [no-double-effect]", async () => {
  const hold = join(folder, "hold");
  // Each token is another, so that the server's refusal leads to a new one; while the file is there, none comes.
  const script = `const { existsSync } = require("node:fs");
    const look = () => (existsSync(${JSON.stringify(hold)}) ? setTimeout(look, 20) : console.log("token-" + process.pid));
    look();`;
  const auth = { bearer: { command: [process.execPath, "-e", script] } };
  const url = await begin({ tracker: { tools: KEYLESS, auth, callTimeoutMs: 2_000 } });
  const call = await connect(url);
  await call("tracker__create_issue", { n: "first" });
  writeFileSync(hold, "");
  tracker.status = 401;
  const takenBack = new AbortController();
  const client = await clientOf(url);
  const params = { name: "tracker__create_issue", arguments: { n: "taken back" } };
  const given = client.callTool(params, undefined, { signal: takenBack.signal }).catch(() => {});
  await vi.waitFor(() => expect(tracker.calls).toBe(2), SOON);
  takenBack.abort();
  await given;
  const last = async () => (await gateway.outbox?.list({ limit: 1 }))?.[0];
  await vi.waitFor(async () => expect((await last())?.state).toBe("cancelled"), SOON);
  const late = await call("tracker__create_issue", { n: "late" });
  expect(late["structuredContent"]).toMatchObject({ state: "queued", why: expect.stringContaining("its credential") });
  rmSync(hold);
  tracker.status = undefined;
  await vi.waitFor(async () => expect(await stateOf(receiptOf(late))).toBe("done"), SOON);
  expect(effects()).toEqual(["first", "late"]);
}, 120_000);

it("a menu that narrows after a write was kept holds up no delivery: it is for what is begun [ack-is-durable]", async () => {
  const menus = [{ when: { phase: "review" }, hide: ["tracker/create_issue"] }];
  const url = await begin({ tracker: { tools: KEYED } }, false, { menus });
  const secret = await gateway.state.tokens.create({ id: "ann", role: "default" }, Date.now());
  const call = await connect(url, secret);
  await call("tracker__create_issue", { n: 0 });
  await tracker.close();
  const receipt = receiptOf(await call("tracker__create_issue", { n: 1 }));
  await gateway.setContext("ann", { phase: "review" });
  await expect(call("tracker__create_issue", { n: 2 })).rejects.toThrow(/menus\[0\]/);
  await tracker.listen();
  await vi.waitFor(async () => expect(await stateOf(receipt)).toBe("done"), SOON);
  expect(effects()).toEqual([0, 1]);
}, 120_000);

it("a kept write goes out with the credential of then, and not with that of the moment in which it was taken [ack-is-durable]", async () => {
  const env = "TRACKER_TOKEN_OF_A_TEST";
  vi.stubEnv(env, "old");
  cleanUp.push(() => vi.unstubAllEnvs());
  const call = await connect(await begin({ tracker: { tools: KEYED, auth: { bearer: { env } } } }));
  await call("tracker__create_issue", { n: 0 });
  await tracker.close();
  const receipt = receiptOf(await call("tracker__create_issue", { n: 1 }));
  vi.stubEnv(env, "new");
  await tracker.listen();
  await vi.waitFor(async () => expect(await stateOf(receipt)).toBe("done"), SOON);
  expect(tracker.authorizations).toEqual(["Bearer old", "Bearer new"]);
}, 120_000);

it("a role that allows nothing but a tool whose calls are kept is given receipts too, which no role names; one without that tool is not", async () => {
  const roles = { writer: { allow: ["tracker/create_issue"] }, reader: { allow: ["tracker/find_issues"] } };
  const url = await begin({ tracker: { tools: KEYED } }, false, { roles, unlistedRoles: "deny" });
  const [writer, reader] = await Promise.all(
    Object.keys(roles).map(async (role) => {
      return clientOf(url, await gateway.state.tokens.create({ id: role, role }, Date.now()));
    }),
  );
  const namesOf = async (client?: Client) => (await client?.listTools())?.tools.map(({ name }) => name);
  await vi.waitFor(
    async () => expect(await namesOf(writer)).toEqual(["tracker__create_issue", "toolway__receipt"]),
    SOON,
  );
  expect(await namesOf(reader)).toEqual(["tracker__find_issues"]);
  await tracker.close();
  const made = (await writer?.callTool({ name: "tracker__create_issue", arguments: { n: 1 } })) as JsonObject;
  const id = receiptOf(made);
  const told = (await writer?.callTool({ name: "toolway__receipt", arguments: { id } })) as JsonObject;
  expect(told["structuredContent"]).toMatchObject({ receipt: id, state: "queued" });
  const others = await reader?.callTool({ name: "toolway__receipt", arguments: { id } }).catch(String);
  expect(JSON.stringify(others)).not.toContain("queued");
}, 120_000);
