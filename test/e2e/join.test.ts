// The tools of a machine behind a mailbox, used by a gateway that is its own broker, and by `toolway join`.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ScriptedSharer } from "../fixtures/mailbox/scripted-sharer.js";
import { track } from "./clients.js";
import { cli, type Gateway, root, startGateway, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, hasTool, listed, made, refusal, runCli, statusOf } from "./operator.js";

let gateway: Gateway;
let broker: string;
let sharerToken: string;
let workerToken: string;
let agentToken: string;
let studio: ScriptedSharer;
const children: ChildProcess[] = [];

beforeAll(async () => {
  gateway = await startGateway(
    { mailboxes: {}, mcpServers: { studio: { mailbox: "studio", awayWaitMs: 50 } } } as never,
    { auth: true },
  );
  broker = gateway.origin.replace("http", "ws");
  sharerToken = await createToken(gateway, "studio", "sharer");
  agentToken = await createToken(gateway, "agent", "dev");
  workerToken = await createToken(gateway, "worker-1", "dev", "studio");
  studio = await share();
});
afterAll(async () => {
  studio.close();
  for (const child of children) {
    child.kill();
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
});

const TOOL = '{"name":"shoot","description":"Takes a picture.","inputSchema":{"type":"object"}}';

/** A machine with one tool, which says what it was called with. */
function share(): Promise<ScriptedSharer> {
  return ScriptedSharer.open(
    broker,
    ({ id, method, params }) => {
      const result =
        method === "server/discover"
          ? '{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}}}'
          : method === "tools/list"
            ? `{"resultType":"complete","tools":[${TOOL}],"ttlMs":0,"cacheScope":"private"}`
            : JSON.stringify({
                resultType: "complete",
                content: [{ type: "text", text: JSON.stringify(params?.["arguments"]) }],
              });
      return `{"message":{"jsonrpc":"2.0","id":${id},"result":${result}}}`;
    },
    sharerToken,
  );
}

interface Joined {
  readonly child: ChildProcess;
  readonly url: string;
  readonly token: string;
  readonly state: string;
  readonly err: () => string;
}

async function join(state: string): Promise<Joined> {
  const words = ["join", "--broker", broker, "--from", "studio", "--listen", "127.0.0.1:0", "--state", state, "--json"];
  const child = spawn(process.execPath, [cli, ...words], {
    cwd: root,
    env: { ...process.env, TOOLWAY_TOKEN: workerToken },
  });
  children.push(child);
  let err = "";
  child.stderr.on("data", (text: Buffer) => {
    err += text.toString();
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const { endpoint } = JSON.parse(line.toString()) as { endpoint: string };
  const token = (await runCli("token", "show", "--state", state)).out.trim();
  return { child, url: endpoint, token, state, err: () => err };
}

/** A client that starts `toolway join` as one of its servers, and what that says on stderr. */
async function joinOnStdio(at: string): Promise<{ client: Client; err: () => string }> {
  const state = await temporaryDirectory();
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [cli, "join", "--broker", at, "--from", "studio", "--state", state],
    cwd: root,
    env: { ...(process.env as Record<string, string>), TOOLWAY_TOKEN: workerToken },
    stderr: "pipe",
  });
  let err = "";
  transport.stderr?.on("data", (text: Buffer) => {
    err += text.toString();
  });
  const client = track(new Client({ name: "stdio", version: "1.0.0" }));
  await client.connect(transport as never);
  return { client, err: () => err };
}

/** Where those who joined want the answers to their calls, from the `first`th message on. */
function inboxes(first: number): Set<string> {
  const calls = studio.asked.slice(first).filter(({ rpc }) => rpc.method === "tools/call");
  return new Set(calls.map(({ message }) => message.from).filter((one) => one.startsWith("worker-1")));
}

it("are tools of a gateway that keeps the mailboxes itself: no socket and no token is needed for it", async () => {
  await until("the tool", () => hasTool(gateway.url, "shoot", agentToken));
  expect(made(await callTool(gateway.url, "shoot", { at: "cat" }, agentToken))).toEqual({ at: "cat" });
  expect(studio.asked.at(-1)?.message.from).toMatch(/^#mcp-[0-9a-f]{16}$/);
  expect(await statusOf(gateway, "studio")).toMatchObject({ kind: "mailbox", state: "ready", era: "modern" });
});

it("are tools of `toolway join`, whose door does not take the broker's token", async () => {
  const { url, token, child } = await join(await temporaryDirectory());
  await until("the tool", () => hasTool(url, "shoot", token));
  expect(made(await callTool(url, "shoot", { at: "dog" }, token))).toEqual({ at: "dog" });
  expect([...inboxes(0)]).toEqual([expect.stringMatching(/^worker-1#mcp-[0-9a-f]{16}$/)]);
  const headers = { authorization: `Bearer ${workerToken}`, "content-type": "application/json" };
  expect((await fetch(url, { method: "POST", headers, body: "{}" })).status).toBe(401);
  child.kill();
  await once(child, "exit");
});

it("are tools of `toolway join` on stdio, for a client that starts it as a server", async () => {
  const { client } = await joinOnStdio(broker);
  const names = async () => (await client.listTools()).tools.map(({ name }) => name);
  await until("the tool", async () => (await names()).includes("shoot"));
  const { content } = await client.callTool({ name: "shoot", arguments: { at: "fox" } });
  expect(content).toEqual([{ type: "text", text: '{"at":"fox"}' }]);
});

it("are none as long as there is no broker: `toolway join` runs, and says on stderr why its list is empty [told-why]", async () => {
  const { client, err } = await joinOnStdio("ws://127.0.0.1:1");
  // For who looks at it, beside what the log says.
  const said =
    /^The broker at ws:\/\/127\.0\.0\.1:1.* cannot be reached just now.*Until then the tools of studio are those known from before, or none\.$/m;
  await until("why", () => said.test(err()));
  expect((await client.listTools()).tools).toEqual([]);
  // It goes on: whoever comes back finds it there.
  expect(await client.ping()).toEqual({});
});

it("stay listed while the machine is away, also after a restart, and a call says since when it is [menu-survives]", async () => {
  const state = await temporaryDirectory();
  const before = studio.asked.length;
  const first = await join(state);
  await until("the tool", () => hasTool(first.url, "shoot", first.token));
  await callTool(first.url, "shoot", {}, first.token);
  const inbox = inboxes(before);
  expect(inbox.size).toBe(1);
  studio.close();
  await until("its end", () => studio.closes.length > 0);
  expect(await listed(first.url, first.token)).toEqual(["shoot"]);
  first.child.kill();
  await once(first.child, "exit");
  const second = await join(state);
  expect(await listed(second.url, second.token)).toEqual(["shoot"]);
  await until("what is missing", () => second.err().includes("studio is away"));
  const told = await until("that it is away", async () => {
    const { message } = await refusal(gateway.url, "shoot", {}, agentToken);
    return message.includes("away") ? message : undefined;
  });
  expect(told).toMatch(/studio is away since \d\d:\d\d/);
  studio = await share();
  await until("an answer", async () => (await callTool(second.url, "shoot", {}, second.token)).result !== undefined);
  // Its inbox is the one that it had: what was answered meanwhile is there.
  expect(inboxes(0)).toEqual(inbox);
});

it("are demanded by --require: without them it ends, and says why", async () => {
  const state = await temporaryDirectory();
  const ran = await runCli("join", "--broker", "ws://127.0.0.1:1", "--from", "studio", "--state", state, "--require");
  expect(ran.code).toBe(1);
  expect(ran.err).toMatch(/The broker at ws:\/\/127\.0\.0\.1:1.* cannot be reached just now/);
  expect(await runCli("join", "--from", "studio")).toMatchObject({ code: 2 });
});
