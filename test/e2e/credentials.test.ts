// Credentials that are read live: files and programs that change while agents call, tokens that end in the middle of a
// hundred calls, and what is told of those that are refused.

import { randomBytes } from "node:crypto";
import { readFile, rename, writeFile } from "node:fs/promises";
import { createServer, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterEach, describe, expect, it } from "vitest";
import { closeHttp, listenOnLoopback } from "../fixtures/loopback.js";
import { connect } from "./eras.js";
import { isAlive, startGateway, temporaryDirectory, until } from "./harness.js";
import { statusOf, toolway } from "./operator.js";

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const act of cleanUp.splice(0)) act();
});

/** A server that lets in whoever shows the right token, and shows each its own tools. */
async function guarded(tools: (token: string | undefined) => readonly string[] | undefined) {
  const seen: (string | undefined)[] = [];
  const calls: string[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const token = request.headers.authorization?.replace(/^Bearer /, "");
    const body = request.method === "POST" ? await text(request) : "";
    seen.push(token);
    const mine = tools(token);
    if (mine === undefined) {
      response.writeHead(401, { "www-authenticate": 'Bearer realm="test"' }).end(`no: ${token ?? "nothing"}`);
      return;
    }
    if (body === "") {
      response.writeHead(405).end();
      return;
    }
    const message = JSON.parse(body) as { id?: number; method: string; params?: { arguments?: { n?: number } } };
    if (message.id === undefined) {
      response.writeHead(202).end();
      return;
    }
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "guarded", version: "1" },
      },
      "tools/list": { tools: mine.map((name) => ({ name, inputSchema: { type: "object" } })) },
      "tools/call": { content: [{ type: "text", text: `${message.params?.arguments?.n ?? ""}` }] },
    };
    if (message.method === "tools/call") calls.push(String(message.params?.arguments?.n));
    const result = results[message.method];
    const answer = result === undefined ? { error: { code: -32601, message: "no such method" } } : { result };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...answer }));
  });
  const port = await listenOnLoopback(server);
  cleanUp.push(() => {
    void closeHttp(server);
  });
  return { url: `http://127.0.0.1:${port}/mcp`, seen, calls };
}

describe("a credential from a program", () => {
  it("that ends in the middle of a hundred calls is fetched once, and every call is made once, within the time that they take and a second of that [token-unseen]", async () => {
    const dir = await temporaryDirectory();
    const [tokenPath, countPath, endPath] = [join(dir, "token"), join(dir, "count"), join(dir, "end")];
    await writeFile(tokenPath, "first");
    let good = "first";
    const { url, calls } = await guarded((token) => (token === good ? ["echo"] : undefined));
    const script = `const fs = require("fs"); fs.appendFileSync(${JSON.stringify(countPath)}, "x");
      process.stdout.write(fs.readFileSync(${JSON.stringify(tokenPath)}));
      fs.writeFileSync(${JSON.stringify(endPath)}, String(Date.now()))`;
    const auth = { bearer: { command: [process.execPath, "-e", script] } };
    const gateway = await startGateway({ mcpServers: { remote: { url, auth, trust: "always" } } });
    const agent = await connect("legacy", gateway);
    await agent.waitFor("echo");
    const before = (await readFile(countPath, "utf8")).length;
    // As long as this machine takes for as many with a token that is good.
    const beginMs = Date.now();
    await Promise.all(Array.from({ length: 100 }, (_, n) => agent.text("echo", { n })));
    const usualMs = Date.now() - beginMs;
    calls.length = 0;
    await writeFile(tokenPath, "second");
    const all = Array.from({ length: 100 }, (_, n) => {
      if (n === 50) good = "second";
      return agent.text("echo", { n });
    });
    expect(await Promise.all(all)).toEqual(Array.from({ length: 100 }, (_, n) => `${n}`));
    expect(Date.now() - Number(await readFile(endPath, "utf8"))).toBeLessThan(usualMs + 1_000);
    expect(calls.length).toBe(100);
    expect(new Set(calls).size).toBe(100);
    expect((await readFile(countPath, "utf8")).length - before).toBe(1);
  });

  it("that fails is told to the operator with what the program said, and the tools stay listed [menu-survives]", async () => {
    const dir = await temporaryDirectory();
    const path = join(dir, "token");
    await writeFile(path, "fine");
    const { url } = await guarded((token) => (token === "fine" ? ["echo"] : undefined));
    const script = `const fs = require("fs"); const token = fs.readFileSync(${JSON.stringify(path)}, "utf8");
      if (token === "locked") { console.error("error: the key ring is locked"); process.exit(1) }
      process.stdout.write(token)`;
    const auth = { bearer: { command: [process.execPath, "-e", script], ttlMs: 1 } };
    const gateway = await startGateway({ mcpServers: { remote: { url, auth } } });
    const agent = await connect("legacy", gateway);
    await agent.waitFor("echo");
    await writeFile(path, "locked");
    await expect(agent.call("echo")).rejects.toThrow("the key ring is locked");
    expect(await agent.names()).toEqual(["echo"]);
    const { out } = await toolway(gateway, "status");
    expect(out).toMatch(/remote: the command \S+ gives no token: .*the key ring is locked/);
    await writeFile(path, "fine");
    await until(
      "the program to be asked again",
      async () => (await agent.text("echo", { n: 1 }).catch(() => "")) === "1",
    );
  });
});

describe("a credential in a file", () => {
  it("that is replaced again and again while agents call is followed: every call is made once, and none fails [token-unseen]", async () => {
    const path = join(await temporaryDirectory(), "token");
    await writeFile(path, "token-0");
    const good = new Set(["token-0"]);
    const { url, calls } = await guarded((token) => (token !== undefined && good.has(token) ? ["echo"] : undefined));
    const gateway = await startGateway({ mcpServers: { remote: { url, auth: { bearer: { file: path } } } } });
    const agent = await connect("modern", gateway);
    await agent.waitFor("echo");
    let [next, isOver] = [0, false];
    const results: string[] = [];
    const work = async () => {
      while (!isOver) {
        const n = next++;
        results[n] = await agent.text("echo", { n });
      }
    };
    const working = Promise.all([work(), work(), work(), work()]);
    for (let i = 1; i <= 5; i++) {
      // As those do who rotate: the new one is good before it is there, and then the old one ends.
      good.add(`token-${i}`);
      await writeFile(`${path}.new`, `token-${i}`);
      await rename(`${path}.new`, path);
      good.delete(`token-${i - 1}`);
      const enough = calls.length + 12;
      await until("more calls", () => calls.length >= enough);
    }
    isOver = true;
    await working;
    expect(results).toEqual(Array.from({ length: next }, (_, n) => `${n}`));
    expect([...calls].sort((a, b) => Number(a) - Number(b))).toEqual(results);
  });
});

describe("a program that hangs while it fetches a credential", () => {
  it("ends with a gateway that is killed [no-orphans]", async () => {
    const pidPath = join(await temporaryDirectory(), "pid");
    const script = `require("fs").writeFileSync(${JSON.stringify(pidPath)}, String(process.pid)); setInterval(() => {}, 1000)`;
    const { url } = await guarded(() => ["echo"]);
    const auth = { bearer: { command: [process.execPath, "-e", script] } };
    const gateway = await startGateway({ mcpServers: { remote: { url, auth } } });
    const pid = async () => Number(await readFile(pidPath, "utf8").catch(() => "0"));
    await until("the program to run", async () => (await pid()) > 0);
    await gateway.stop("SIGKILL");
    await until("the program to be gone", async () => !isAlive(await pid()));
  });
});

describe("a credential from a file", () => {
  it("is another as soon as the file is, and the lists are read again for it [agent-10]", async () => {
    const dir = await temporaryDirectory();
    const path = join(dir, "token");
    await writeFile(path, "reader\n");
    const menus: Record<string, readonly string[]> = { reader: ["read"], writer: ["read", "write"] };
    const { url, seen } = await guarded((token) => menus[token ?? ""]);
    const gateway = await startGateway({ mcpServers: { remote: { url, auth: { bearer: { file: path } } } } });
    const agent = await connect("legacy", gateway);
    await agent.waitFor("read");
    expect((await statusOf(gateway, "remote")).credential).toMatchObject({
      source: `the file ${path}`,
      state: "known",
    });
    await writeFile(`${path}.new`, "writer");
    await rename(`${path}.new`, path);
    await until("the agent's list to be another", async () => (await agent.names()).includes("write"));
    expect(agent.notified.map(({ method }) => method)).toContain("notifications/tools/list_changed");
    expect(seen.at(-1)).toBe("writer");
    // The token is shown to nobody, not where the server repeats it either.
    await writeFile(path, "a-secret-that-is-wrong");
    await until("it to be refused", async () => (await statusOf(gateway, "remote")).credential?.state === "refused");
    await expect(agent.call("read")).rejects.toThrow(/refuses our credentials/);
    const { out } = await toolway(gateway, "status", "--json");
    expect(out + gateway.log()).not.toContain("a-secret-that-is-wrong");
    expect(await agent.names()).toEqual(["read", "write"]);
    // A list that the server itself gives shorter is the list.
    const told = agent.notified.length;
    await writeFile(`${path}.new`, "reader");
    await rename(`${path}.new`, path);
    await until("the shorter list", async () => (await agent.names()).join() === "read");
    const since = () => agent.notified.slice(told).map(({ method }) => method);
    await until("the agent to be told", () => since().includes("notifications/tools/list_changed"));
  });

  it("that is not there at the start lets the server come up when it is written", async () => {
    const path = join(await temporaryDirectory(), "token");
    const { url, seen } = await guarded((token) => (token === "late" ? ["read"] : undefined));
    const gateway = await startGateway({ mcpServers: { remote: { url, auth: { bearer: { file: path } } } } });
    await until("a try without", () => seen.includes(undefined));
    await writeFile(path, "late");
    const agent = await connect("legacy", gateway);
    await agent.waitFor("read");
    expect(await agent.call("read")).toBeTruthy();
  });
});

it("an agent's token goes to no server, and a server's challenge to no agent, in either era [tokens-apart]", async () => {
  const shown = `tw_canary${randomBytes(32).toString("base64url")}`;
  const heard: string[] = [];
  let challenge: [status: number, header: string] | undefined;
  const server = createServer(async (request, response) => {
    const body = await text(request);
    heard.push(`${request.rawHeaders.join("\n")}\n${request.url}\n${body}`);
    const { id, method } = (body === "" ? {} : JSON.parse(body)) as { id?: number; method?: string };
    if (method === "tools/call" && challenge !== undefined) {
      response.writeHead(challenge[0], { "www-authenticate": challenge[1] }).end("not you");
      return;
    }
    if (id === undefined) return void response.writeHead(body === "" ? 405 : 202).end();
    const results: Record<string, unknown> = {
      initialize: {
        protocolVersion: "2025-11-25",
        capabilities: { tools: {} },
        serverInfo: { name: "bare", version: "1" },
      },
      "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: "called" }] },
    };
    const result = results[method ?? ""];
    const answer = result === undefined ? { error: { code: -32601, message: "no such method" } } : { result };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  });
  const url = `http://127.0.0.1:${await listenOnLoopback(server)}/mcp`;
  cleanUp.push(() => void closeHttp(server));
  const gateway = await startGateway({ mcpServers: { bare: { url } } }, { auth: true, env: { TOOLWAY_TOKEN: shown } });
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "a", version: "1" },
  };
  const post = async (message: object, headers: Record<string, string>) => {
    const answer = await fetch(gateway.url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${shown}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...message }),
    });
    return { status: answer.status, headers: answer.headers, text: await answer.text() };
  };
  const clientInfo = { name: "a", version: "1" };
  const opened = await post(
    { method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo } },
    {},
  );
  const session = { "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
  const modern = { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "echo" };
  const calls = () =>
    Promise.all([
      post({ method: "tools/call", params: { name: "echo", arguments: {} } }, session),
      post({ method: "tools/call", params: { name: "echo", arguments: {}, _meta: meta } }, modern),
    ]);
  await until("both eras to be served", async () => (await calls()).every((one) => one.text.includes("called")));
  for (const [status, header] of [
    [401, 'Bearer realm="theirs", resource_metadata="https://theirs.example/x"'],
    [403, "Basic realm=theirs"],
  ] as const) {
    challenge = [status, header];
    for (const answer of await calls()) {
      expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([200, null]);
      expect(answer.text).toContain('"error"');
    }
  }
  expect(heard.length).toBeGreaterThan(6);
  for (const request of heard) {
    expect(request).not.toContain(shown);
    expect(request.toLowerCase()).not.toContain("authorization");
  }
});
