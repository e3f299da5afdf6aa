// The gateway as a library: what docs/library.md says, tried on the public API alone.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { ToolListChangedNotificationSchema } from "@modelcontextprotocol/sdk/types.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { everyNameIs } from "../../test/fixtures/lookup.js";
import {
  CallError,
  ConfigError,
  type ConfigInput,
  createGateway,
  createLog,
  Fault,
  type Gateway,
  type GatewayInput,
  type GatewayOptions,
  StateDirError,
} from "../index.js";

const fixture = (name: string) => fileURLToPath(new URL(`../../test/fixtures/servers/${name}.mjs`, import.meta.url));
const entry = (name: string, args: string[] = []) => ({ command: process.execPath, args: [fixture(name), ...args] });

/** Two busy cores start a process in a second or two. */
const SOON = { timeout: 60_000, interval: 50 };

const cleanUp: (() => Promise<unknown> | unknown)[] = [];
afterEach(async () => {
  for (const act of cleanUp.splice(0).reverse()) await act();
});

function temporary(): string {
  const dir = mkdtempSync(join(tmpdir(), "toolway-library-"));
  cleanUp.push(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

async function create(input: GatewayInput, options: GatewayOptions = {}): Promise<Gateway> {
  const gateway = await createGateway(input, { env: { PATH: process.env["PATH"] }, ...options });
  cleanUp.push(() => gateway.close({ drainMs: 0 }));
  return gateway;
}

async function connect(url: string, token?: string): Promise<Client> {
  const client = new Client({ name: "test", version: "1" });
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  await client.connect(transport as Parameters<Client["connect"]>[0]);
  cleanUp.push(() => client.close());
  return client;
}

const json = (result: Record<string, unknown>) =>
  JSON.parse((result["content"] as { text: string }[])[0]?.text ?? "null") as Record<string, unknown>;
const fails = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe("createGateway", () => {
  it("calls a tool of a server that is still starting, lists, tells its state, and closes", async () => {
    const gateway = await create({ mcpServers: { one: entry("stateful"), two: entry("slow") } });
    const result = await gateway.call("one__count");
    expect(json(result)).toMatchObject({ count: 1 });
    expect(json(await gateway.call("two__sleep", { ms: 1, label: "x" }))).toEqual({ slept: 1, label: "x" });
    expect(await gateway.tools()).toContainEqual(
      expect.objectContaining({
        name: "one__count",
        server: "one",
        ownName: "count",
        description: "count of stateful",
      }),
    );
    const { servers, sessions, draining, stateDir } = gateway.status();
    expect(servers.map(({ name, state, counts }) => [name, state, counts.tools])).toEqual([
      ["one", "ready", 2],
      ["two", "ready", 3],
    ]);
    expect({ sessions, draining, stateDir }).toEqual({ sessions: 0, draining: false, stateDir: undefined });
    const pids = servers.map(({ pid }) => pid as number);
    await gateway.close();
    for (const pid of pids) expect(() => process.kill(pid, 0)).toThrow();
  });

  it("listens for agents, who need the token; closing ends their sessions", async () => {
    const gateway = await create({ mcpServers: { one: entry("stateful") } });
    const { url } = await gateway.listen({ port: 0 });
    expect(gateway.status().endpoint).toBe(url);
    await expect(connect(url)).rejects.toThrow(/401|token/);
    const client = await connect(url, gateway.token);
    await vi.waitFor(async () => expect((await client.listTools()).tools).toHaveLength(2), SOON);
    expect(gateway.status().sessions).toBe(1);
    expect(await fails(gateway.listen({ port: 0 }))).toMatchObject({ name: "Fault", code: "invalid" });
    await gateway.close();
    await expect(fetch(url)).rejects.toThrow();
  });

  it("asks for no token where it is told so, and then listens on loopback only", async () => {
    const gateway = await create({ mcpServers: {} }, { noAuth: true });
    expect(await fails(gateway.listen({ host: "0.0.0.0", port: 0 }))).toMatchObject({ name: "Fault", code: "invalid" });
    const { url } = await gateway.listen({ host: "127.0.0.1", port: 0 });
    await connect(url);
  });

  it("does not listen without tokens where a hosts file sends localhost elsewhere", async () => {
    const gateway = await create({ mcpServers: {} }, { noAuth: true });
    const names = everyNameIs("0.0.0.0");
    cleanUp.push(names.restore);
    expect(await fails(gateway.listen({ host: "localhost", port: 0 }))).toMatchObject({
      code: "invalid",
      message: expect.stringContaining("0.0.0.0 is not"),
    });
    expect(names.lookups).toBe(1);
    names.restore();
    const { url } = await gateway.listen({ host: "localhost", port: 0 });
    await connect(url);
  });

  it("rejects a config with mistakes, all of them, before anything is started", async () => {
    const input = { mcpServers: {}, listen: "nowhere", limits: { depth: 0 } } as ConfigInput;
    const error = await fails(createGateway(input));
    expect(error).toBeInstanceOf(ConfigError);
    expect((error as ConfigError).mistakes.length).toBeGreaterThan(1);
    expect(await fails(createGateway("/no/such/file.json"))).toBeInstanceOf(ConfigError);
    // Without the key what is shared would be in clear.
    const engine = { nats: ["nats://127.0.0.1"], key: { env: "KEY" } };
    expect(String(await fails(createGateway({ mcpServers: {}, engine })))).toContain("The variable KEY is not set");
  });
});

it("only what an entry's `only` shows is listed and called, by agents, at /mcp/<server> and by the program [only-is-all]", async () => {
  const gateway = await create({ mcpServers: { one: { ...entry("stateful"), only: ["cou*"] } } }, { noAuth: true });
  const { url } = await gateway.listen({ port: 0 });
  const clients = [await connect(url), await connect(`${url}/one`)];
  for (const [i, client] of clients.entries()) {
    const name = i === 0 ? "one__" : "";
    await vi.waitFor(async () => {
      expect((await client.listTools()).tools.map((tool) => tool.name)).toEqual([`${name}count`]);
    }, SOON);
    expect(json(await client.callTool({ name: `${name}count`, arguments: {} }))).toHaveProperty("count");
    expect(await fails(client.callTool({ name: `${name}whoami`, arguments: {} }))).toMatchObject({ code: -32602 });
  }
  expect((await gateway.tools()).map(({ ownName }) => ownName)).toEqual(["count"]);
  expect(await fails(gateway.call("one__whoami"))).toMatchObject({ fault: "not-found" });
  // The operator is told why; an agent is not.
  for (const typed of ["one__whoami", "one/whoami", "whoami"])
    expect(gateway.hiddenReason(typed)).toContain('has a tool "whoami", and its entry in the config has an "only"');
  for (const typed of ["one__count", "one__nothing"]) expect(gateway.hiddenReason(typed)).toBeUndefined();
});

it("a server on a Unix socket is reached by unix://, in both ways of writing, and shown so", async () => {
  const socket = join(temporary(), "a server.sock");
  const seen: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url);
    if (!request.url?.startsWith("/mcp")) {
      response.writeHead(404).end();
      return;
    }
    const mcp = new McpServer({ name: "on a socket", version: "1" });
    mcp.registerTool("ping", {}, () => ({ content: [{ type: "text", text: '"pong"' }] }));
    const transport = new StreamableHTTPServerTransport();
    void mcp
      .connect(transport as Parameters<McpServer["connect"]>[0])
      .then(() => transport.handleRequest(request, response));
  });
  await new Promise<void>((done) => server.listen(socket, done));
  cleanUp.push(() => new Promise((done) => server.close(done).closeAllConnections()));
  const gateway = await create({
    mcpServers: {
      code: { url: `unix://${socket.replaceAll(" ", "%20")}#/mcp` },
      proxy: { url: `unix://${socket}:/mcp?a=1` },
      gone: { url: `unix://${socket}-not#/mcp` },
    },
  });
  for (const name of ["code", "proxy"]) {
    await vi.waitFor(
      async () => expect((await gateway.tools()).map((tool) => tool.name)).toContain(`${name}__ping`),
      SOON,
    );
    expect(await gateway.call(`${name}__ping`)).toMatchObject({ content: [{ text: '"pong"' }] });
  }
  expect(seen).toContain("/mcp?a=1");
  const stateOf = (name: string) => gateway.status().servers.find((one) => one.name === name);
  expect(stateOf("code")).toMatchObject({ kind: "http", url: `unix://${socket}#/mcp` });
  await vi.waitFor(() => expect(stateOf("gone")?.lastError).toContain("there is no such socket"), SOON);
});

describe("errors of calls", () => {
  it("are typed: what a server answers, what the gateway says for it", async () => {
    const gateway = await create({ mcpServers: { crash: entry("crash"), broken: entry("crash", ["--at", "start"]) } });
    const unknown = await fails(gateway.call("crash__nothing"));
    expect(unknown).toBeInstanceOf(CallError);
    expect(unknown).toMatchObject({ code: -32602, message: expect.stringContaining("crash__nothing") });
    expect(await fails(gateway.call("crash__crash"))).toMatchObject({
      code: -31003,
      data: { fault: "outcome-unknown" },
    });
    // The next call has a new process.
    expect(json(await gateway.call("crash__pid"))).toHaveProperty("pid");
    // Nothing is known of a server that never came up, not even its tools; what can be said is said.
    expect(await fails(gateway.call("broken__pid"))).toMatchObject({
      code: -31001,
      message: expect.stringContaining("MISSING_KEY is not set"),
    });
    const broken = gateway.status().servers.find(({ name }) => name === "broken");
    expect(broken).toMatchObject({ lastError: expect.stringContaining("MISSING_KEY") });
  });

  it("a call that is taken back rejects at once, and the server is told; the signal is let go of", async () => {
    const gateway = await create({ mcpServers: { slow: entry("slow") } });
    await gateway.call("slow__started");
    const abort = new AbortController();
    const added = vi.spyOn(abort.signal, "addEventListener");
    const removed = vi.spyOn(abort.signal, "removeEventListener");
    for (let i = 0; i < 5; i++) await gateway.call("slow__started", {}, { signal: abort.signal });
    expect(removed.mock.calls.length).toBe(added.mock.calls.length);
    const slow = gateway.call("slow__sleep", { ms: 60_000, label: "gone" }, { signal: abort.signal });
    await vi.waitFor(async () => {
      expect(await gateway.call("slow__started")).toMatchObject({
        content: [{ text: expect.stringContaining("gone") }],
      });
    }, SOON);
    abort.abort(new Error("no more"));
    await expect(slow).rejects.toThrow("no more");
    await vi.waitFor(async () => {
      expect(await gateway.call("slow__cancelled")).toMatchObject({
        content: [{ text: expect.stringContaining("gone") }],
      });
    }, SOON);
    await expect(gateway.call("slow__started", {}, { signal: abort.signal })).rejects.toThrow("no more");
  });

  it("a server that asks something of the program gets an error, and the call goes on", async () => {
    const gateway = await create({ mcpServers: { asker: entry("asker") } });
    const result = await gateway.call("asker__elicit", { what: "?" });
    expect(result).toMatchObject({ isError: true });
    expect(json(result)).toMatchObject({ code: -32601 });
  });
});

describe("close", () => {
  it("lets the program's own calls end, and takes no new ones [drain]", async () => {
    const gateway = await create({ mcpServers: { slow: entry("slow") } });
    await gateway.call("slow__started");
    const call = gateway.call("slow__sleep", { ms: 600, label: "last" });
    const closed = gateway.close();
    expect(gateway.status().draining).toBe(true);
    for (const refused of [gateway.call("slow__started"), gateway.listen({ port: 0 }), gateway.reload()]) {
      const error = await fails(refused);
      expect(error).toBeInstanceOf(Fault);
      expect(error).toMatchObject({ code: "closing" });
    }
    expect(json(await call)).toMatchObject({ label: "last" });
    await closed;
    await gateway.close();
  });

  it("waits no longer than it is told; what is cut off has an unknown outcome [unknown-is-said]", async () => {
    const gateway = await create({ mcpServers: { slow: entry("slow") } });
    await gateway.call("slow__started");
    const call = fails(gateway.call("slow__sleep", { ms: 60_000 }));
    await vi.waitFor(() => expect(gateway.status().servers[0]?.inFlight).toBe(1), SOON);
    await gateway.close({ drainMs: 50 });
    expect(await call).toMatchObject({ code: -31003 });
  });

  it("answers calls that wait for a server which never comes up", async () => {
    const gateway = await create({ mcpServers: { deaf: entry("hang", ["--at", "initialize"]) } });
    const call = fails(gateway.call("deaf__hang"));
    await gateway.close({ drainMs: 0 });
    expect(await call).toBeInstanceOf(CallError);
  });
});

describe("state", () => {
  it("in a directory brings the token and the menu back, and is one gateway's at a time", async () => {
    const stateDir = join(temporary(), "state");
    const file = join(temporary(), "toolway.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { one: entry("stateful") } }));
    const first = await create(file, { stateDir, watch: false });
    await first.call("one__count");
    const { token } = first;
    expect(await fails(createGateway(file, { stateDir }))).toBeInstanceOf(StateDirError);
    await first.close();

    // Its server cannot be started now; the menu is what it was.
    const broken = { mcpServers: { one: { command: "/no/such/program" } } };
    const second = await create(broken, { stateDir });
    expect(second.token).toBe(token);
    expect((await second.tools()).map(({ name }) => name)).toEqual(["one__count", "one__whoami"]);
    expect(await fails(second.call("one__count"))).toMatchObject({ code: -31001 });
    await second.close();
    // Given back, whatever happened.
    await (await createGateway(broken, { stateDir })).close();
  });

  it("in memory is one gateway's alone, with a token of its own", async () => {
    const [one, two] = [await create({ mcpServers: {} }), await create({ mcpServers: {} })];
    expect(one.token).not.toBe(two.token);
    const given = await create({ mcpServers: {} }, { env: { TOOLWAY_TOKEN: "x".repeat(40) } });
    expect(given.token).toBe("x".repeat(40));
  });
});

describe("a config that changes", () => {
  it("is applied when its file is edited: other tools, the same process", async () => {
    const file = join(temporary(), "toolway.json");
    const write = (server: object) => writeFileSync(file, JSON.stringify({ mcpServers: { one: server } }));
    write(entry("stateful"));
    const gateway = await create(file);
    const { pid } = json(await gateway.call("one__count"));
    const { url } = await gateway.listen({ port: 0 });
    const client = await connect(url, gateway.token);
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    await client.listTools();

    const tools = { count: { name: "tally", description: "Counts." }, whoami: { hide: true } };
    write({ ...entry("stateful"), tools });
    await vi.waitFor(async () => expect((await gateway.tools()).map(({ name }) => name)).toEqual(["tally"]), SOON);
    await vi.waitFor(() => expect(changes).toBeGreaterThan(0), SOON);
    expect((await client.listTools()).tools).toEqual([
      expect.objectContaining({ name: "tally", description: "Counts." }),
    ]);
    expect(json(await gateway.call("tally"))).toMatchObject({ pid, count: 2 });
    expect(gateway.status().servers[0]).toMatchObject({ restarts: 0, counts: { tools: 1 } });
    expect(await fails(gateway.call("one__whoami"))).toMatchObject({ code: -32602 });
  });

  it("with mistakes changes nothing: status says why, reload() rejects, and a good one is taken again", async () => {
    const file = join(temporary(), "toolway.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { one: entry("stateful") } }));
    const gateway = await create(file, { watch: false });
    const { pid } = json(await gateway.call("one__count"));
    writeFileSync(file, "{ not json");
    expect(await fails(gateway.reload())).toBeInstanceOf(ConfigError);
    expect(gateway.status().config).toMatchObject({
      error: expect.stringContaining(file),
      errorAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(json(await gateway.call("one__count"))).toMatchObject({ pid });
    writeFileSync(file, JSON.stringify({ mcpServers: { one: entry("stateful"), two: entry("slow") } }));
    await gateway.reload();
    expect(gateway.status().config).toMatchObject({ error: undefined, errorAt: undefined });
    expect(json(await gateway.call("two__sleep", { ms: 1 }))).toHaveProperty("slept");
    expect(json(await gateway.call("one__count"))).toMatchObject({ pid });
  });

  it("that takes a server away answers the calls in flight on it", async () => {
    const file = join(temporary(), "toolway.json");
    writeFileSync(file, JSON.stringify({ mcpServers: { slow: entry("slow"), one: entry("stateful") } }));
    const gateway = await create(file, { watch: false });
    await gateway.call("slow__started");
    const call = fails(gateway.call("slow__sleep", { ms: 60_000 }));
    await vi.waitFor(() => expect(gateway.status().servers[0]?.inFlight).toBe(1), SOON);
    writeFileSync(file, JSON.stringify({ mcpServers: { one: entry("stateful") } }));
    await gateway.reload();
    expect(await call).toMatchObject({ code: -31003 });
    expect(await fails(gateway.call("slow__started"))).toMatchObject({ code: -32602 });
  });

  it("with other roles is another menu: who is connected is told", async () => {
    const file = join(temporary(), "toolway.json");
    const write = (roles: object) =>
      writeFileSync(file, JSON.stringify({ mcpServers: { one: entry("stateful") }, roles }));
    write({});
    const gateway = await create(file, { watch: false });
    await gateway.call("one__count");
    const client = await connect((await gateway.listen({ port: 0 })).url, gateway.token);
    let changes = 0;
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => void changes++);
    expect((await client.listTools()).tools).toHaveLength(2);
    write({ default: { deny: ["one"] } });
    await gateway.reload();
    await vi.waitFor(() => expect(changes).toBe(1), SOON);
    expect((await client.listTools()).tools).toEqual([]);
    await expect(client.callTool({ name: "one__count", arguments: {} })).rejects.toMatchObject({ code: -31007 });
    // The program itself is not an agent.
    expect(await gateway.tools()).toHaveLength(2);
  });
});

describe("the log", () => {
  it("says in a line each what comes up and what does not, and no secret of an entry's environment", async () => {
    const lines: string[] = [];
    const log = createLog({ write: (line) => void lines.push(line) });
    const secret = "s3cret-canary-9f2";
    const broken = { ...entry("crash", ["--at", "start"]), env: { API_KEY: secret } };
    const gateway = await create({ mcpServers: { broken, good: entry("stateful") } }, { log });
    await gateway.call("good__count");
    await vi.waitFor(() => expect(lines.join("")).toContain("MISSING_KEY is not set"), SOON);
    expect(lines.join("")).toMatch(/info +server "good": ready after \d+ ms/);
    expect(`${lines.join("")}${JSON.stringify(gateway.status())}`).not.toContain(secret);
  });

  it("is one line of text or of JSON each, whatever is in it", () => {
    const lines: string[] = [];
    const write = (line: string) => void lines.push(line);
    const now = () => Date.UTC(2026, 0, 2, 3, 4, 5, 678);
    const nasty = "a\nb\u001b[31mred\u2028";
    createLog({ write, now }).warn(nasty, { path: "x\ny" });
    createLog({ write, now, format: "json" }).error(nasty, { error: new Error("boom"), text: "mine" });
    createLog({ write, now, format: "json" }).info("long", { blob: "x".repeat(100_000) });
    createLog({ write, now, level: "error" }).warn("not shown");
    expect(lines).toHaveLength(3);
    expect(lines[0]).toBe('03:04:05.678 warn  a b [31mred  path="x\\ny"\n');
    expect(JSON.parse(lines[1] as string)).toMatchObject({
      time: "2026-01-02T03:04:05.678Z",
      level: "error",
      text: expect.stringContaining("red"),
      error: expect.stringContaining("boom"),
    });
    const long = JSON.parse(lines[2] as string) as { text: string };
    expect(long.text).toBe("long");
    expect(lines[2]?.length).toBeLessThan(5_000);
    for (const line of lines) expect(line.trimEnd()).not.toMatch(/[\p{Cc}\u2028]/u);
  });
});

it("docs/library.md names every member and error that it should", () => {
  const docs = readFileSync(fileURLToPath(new URL("../../docs/library.md", import.meta.url)), "utf8");
  for (const word of ["listen(", "`token`", "call(", "tools()", "status()", "reload()", "close("]) {
    expect(docs).toContain(word);
  }
  for (const { name } of [ConfigError, CallError, Fault, StateDirError]) expect(docs).toContain(`\`${name}\``);
});
