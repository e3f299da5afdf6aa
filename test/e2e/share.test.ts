// A machine that shares its tools, by the command line, and a client that knows the frames of a mailbox alone.

import { type ChildProcess, spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { BareClient, type BareReply, closeBareClients } from "../fixtures/mailbox/bare-client.js";
import { cli, type Gateway, root, startGateway, stdioFixture, temporaryDirectory, until } from "./harness.js";
import { createToken, toolway } from "./operator.js";

let broker: Gateway;
let brokerUrl: string;
let folder: string;
let ledger: string;
let sharer: Sharer;
const tokens: Record<string, string> = {};

class Sharer {
  readonly child: ChildProcess;
  readonly lines: Record<string, unknown>[] = [];
  err = "";
  readonly exited: Promise<number | null>;

  constructor(config: string, token: string, ...more: string[]) {
    const line = [cli, "share", config, "--broker", brokerUrl, "--as", "studio", "--state", join(folder, "state")];
    this.child = spawn(process.execPath, [...line, "--json", ...more], {
      cwd: root,
      env: { ...process.env, TOOLWAY_TOKEN: token },
    });
    let rest = "";
    this.child.stdout?.on("data", (chunk: Buffer) => {
      const parts = (rest + chunk.toString()).split("\n");
      rest = parts.pop() ?? "";
      for (const part of parts) this.lines.push(JSON.parse(part) as Record<string, unknown>);
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.err += chunk.toString();
    });
    this.exited = new Promise((done) => this.child.once("exit", done));
  }

  async ready(): Promise<this> {
    await until("the sharer to be connected", () => {
      if (this.child.exitCode !== null) throw new Error(this.err);
      return this.lines.some(({ state }) => state === "connected") && this.lines.some(({ kind }) => kind === "sharing");
    });
    return this;
  }
}

const ROLES = {
  researcher: { allow: ["ledger/echo", "ledger/note", "ledger/wait"] },
  nobody: { allow: [] },
};

async function writeConfig(more: object = {}): Promise<string> {
  const path = join(folder, "mcp.json");
  const env = { LEDGER: ledger };
  await writeFile(
    path,
    JSON.stringify({ mcpServers: { ledger: stdioFixture("ledger", [], { env }) }, roles: ROLES, ...more }),
  );
  return path;
}

beforeAll(async () => {
  broker = await startGateway({ mcpServers: {}, mailboxes: {} } as never, { auth: true });
  brokerUrl = `${broker.origin.replace("http", "ws")}/mailboxes`;
  folder = await temporaryDirectory();
  ledger = join(folder, "ledger.txt");
  await writeFile(ledger, "");
  tokens["studio"] = await createToken(broker, "studio", "sharer");
  for (const [id, role] of [
    ["listed", "researcher"],
    ["unlisted", "guest"],
    ["locked", "nobody"],
  ] as const) {
    tokens[id] = await createToken(broker, id, role, "studio");
  }
  sharer = await new Sharer(await writeConfig(), tokens["studio"] ?? "").ready();
});
afterAll(async () => {
  closeBareClients();
  sharer?.child.kill();
  await sharer?.exited;
});

const workers = new Map<string, Promise<BareClient>>();

/** One for each, since two of one address would share what comes for it. */
function worker(id: string): Promise<BareClient> {
  const known = workers.get(id) ?? connected(id);
  workers.set(id, known);
  return known;
}

async function connected(id: string): Promise<BareClient> {
  const client = await BareClient.connect(brokerUrl, id, tokens[id] ?? "");
  client.send({ kind: "subscribe" });
  return client;
}

async function ask(client: BareClient, id: string, body: unknown): Promise<BareReply> {
  client.deliver("studio", id, body);
  return client.replyTo(id);
}

it("shares what a role may see, under plain names, and says at its start what that is [only-is-all]", async () => {
  const { lines } = sharer;
  expect(lines.find(({ kind }) => kind === "sharing")).toMatchObject({
    servers: [{ name: "ledger", tools: 4 }],
    tools: ["note", "echo", "wait", "secret"],
    roles: [
      { role: "researcher", tools: 3 },
      { role: "nobody", tools: 0 },
    ],
    unlistedRoles: "allow",
  });
  const names = async (id: string) =>
    (await ask(await worker(id), `list-${id}`, { op: "manifest" })).manifest?.map((entry) => entry.function.name);
  expect(await names("listed")).toEqual(["note", "echo", "wait"]);
  expect(await names("unlisted")).toEqual(["note", "echo", "wait", "secret"]);
  expect(await names("locked")).toEqual([]);
});

it("refuses on the call what the list hides, by tool and role, and says what it cannot read", async () => {
  const call = async (id: string, tool: string, more: object = {}) =>
    ask(await worker(id), `${id}-${tool}-${JSON.stringify(more)}`, { op: "call", tool, ...more });
  expect((await call("listed", "secret")).error).toMatch(/'secret' is not allowed for role 'researcher'/);
  expect((await call("locked", "echo")).error).toMatch(/'echo' is not allowed for role 'nobody'/);
  expect((await call("unlisted", "secret")).result).toMatchObject({ success: true });
  expect((await call("listed", "missing")).error).toContain("missing");
  expect((await call("listed", "echo", { arguments: "[1]" })).error).toContain("bad mcp request");
  expect((await ask(await worker("listed"), "odd", { op: "dance" })).error).toContain("bad mcp request");
  // Each in one line of its log: who, as what, and what for.
  for (const [id, role, tool] of [
    ["listed", "researcher", "ledger/secret"],
    ["locked", "nobody", "ledger/echo"],
  ]) {
    const line = new RegExp(`^.*call ${tool}: denied,.* principal="mailbox/${id}" role="${role}".*$`, "m");
    await until(`the refusal of ${tool}`, () => line.test(sharer.err));
  }
});

it("passes arguments on as they were written, as an object or as a text", async () => {
  const client = await worker("listed");
  const verbatim = '{"big":12345678901234567890,"e":1e3,"text":"a\\u00e9"}';
  client.socket.send(
    `{"kind":"deliver","to":"studio","message":{"id":"v-1","kind":"mcp_request","body":{"op":"call","tool":"echo","arguments":${verbatim}}}}`,
  );
  expect((await client.replyTo("v-1")).result?.result).toBe(verbatim);
  expect((await ask(client, "v-2", { op: "call", tool: "echo", arguments: verbatim })).result?.result).toBe(verbatim);
  expect((await ask(client, "v-3", { op: "call", tool: "echo", arguments: "" })).result?.result).toBe("{}");
});

it("answers eight calls at once, each with its own, and lets them overlap [crossed-never]", async () => {
  const client = await worker("listed");
  const ids = Array.from({ length: 8 }, (_, n) => `at-once-${n}`);
  for (const id of ids) client.deliver("studio", id, { op: "call", tool: "echo", arguments: { id } });
  const seen = new Map<string, string | undefined>();
  while (seen.size < ids.length) {
    const message = await client.message();
    client.send({ kind: "ack", id: message.id });
    seen.set(String(message["correlation_id"]), (message["body"] as BareReply).result?.result);
  }
  for (const id of ids) expect(seen.get(id)).toBe(JSON.stringify({ id }));
  // None of them ends before all four are under way.
  const go = join(folder, "all-four");
  const waits = Array.from({ length: 4 }, (_, n) => `wait-${n}`);
  for (const id of waits) client.deliver("studio", id, { op: "call", tool: "wait", arguments: { until: go } });
  const underWay = async () => (await readFile(ledger, "utf8")).split(`waiting for ${go}\n`).length - 1;
  await until("all four to be under way", async () => (await underWay()) === waits.length);
  await writeFile(go, "");
  const texts: string[] = [];
  while (texts.length < waits.length) {
    const message = await client.message();
    client.send({ kind: "ack", id: message.id });
    texts.push((message["body"] as BareReply).result?.result ?? "");
  }
  expect(texts).toEqual(waits.map(() => "waited for the file"));
});

it("answers a message that comes again with the same reply, and runs it once [no-double-effect]", async () => {
  const client = await worker("listed");
  const body = { op: "call", tool: "note", arguments: { text: "once" } };
  const first = await ask(client, "again", body);
  const second = await ask(client, "again", body);
  expect(second).toEqual(first);
  expect(first.result?.result).toBe("noted once");
  expect((await readFile(ledger, "utf8")).split("\n").filter((line) => line === "once")).toHaveLength(1);
  expect((await ask(client, "again", { ...body, arguments: { text: "twice" } })).error).toContain("another message");
});

it("keeps its token to itself: no door takes it, no child has it [secrets-unseen]", async () => {
  const { readdir } = await import("node:fs/promises");
  const status = await toolway(
    { configPath: join(folder, "mcp.json"), stateDir: join(folder, "state") } as Gateway,
    "token",
    "list",
  );
  expect([status.code, status.out]).toEqual([0, expect.not.stringContaining("from TOOLWAY_TOKEN")]);
  let children = 0;
  for (const pid of (await readdir("/proc")).filter((name) => /^\d+$/.test(name))) {
    const [command, environment] = await Promise.all(
      ["cmdline", "environ"].map((file) => readFile(`/proc/${pid}/${file}`, "utf8").catch(() => "")),
    );
    if (command?.includes("ledger.mjs") && environment?.includes(ledger)) {
      children++;
      expect(environment).not.toContain(tokens["studio"]);
    }
  }
  expect(children).toBe(1);
  expect(tokens["studio"]).toMatch(/^tw_/);
});

it("says that the outcome is unknown of what was begun when it was killed, and runs it once [no-double-effect] [unknown-is-said]", async () => {
  const client = await worker("listed");
  client.deliver("studio", "cut", { op: "call", tool: "note", arguments: { text: "cut off", hang: true } });
  await until("the effect", async () => (await readFile(ledger, "utf8")).includes("cut off"));
  sharer.child.kill("SIGKILL");
  await sharer.exited;
  sharer = await new Sharer(await writeConfig(), tokens["studio"] ?? "").ready();
  const reply = await client.replyTo("cut");
  expect(reply).toMatchObject({ outcome: "unknown" });
  expect(reply.error).toContain("note");
  expect((await ask(client, "after", { op: "call", tool: "echo" })).result?.success).toBe(true);
  expect((await readFile(ledger, "utf8")).split("\n").filter((line) => line === "cut off")).toHaveLength(1);
});

it("lets a call under way end at SIGTERM, and ends with 0 [drain]", async () => {
  const client = await worker("listed");
  const go = join(folder, "go");
  client.deliver("studio", "draining", { op: "call", tool: "wait", arguments: { until: go } });
  await until("the call to be under way", async () => (await readFile(ledger, "utf8")).includes(`waiting for ${go}`));
  sharer.child.kill("SIGTERM");
  await writeFile(go, "");
  expect((await client.replyTo("draining")).result?.result).toBe("waited for the file");
  expect(await sharer.exited).toBe(0);
});

it("ends with 1 and the reason where the broker refuses its token", async () => {
  const refused = new Sharer(await writeConfig(), "tw_wrong");
  expect(await refused.exited).toBe(1);
  expect(refused.lines.some(({ state }) => state === "refused")).toBe(true);
  expect(refused.err).toMatch(/refused/);
});
