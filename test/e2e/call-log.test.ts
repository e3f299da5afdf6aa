// Calls in the log of a gateway that runs: one line each, who made it and what came of it, and never what was said.

import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { HistoryAnswer } from "../../src/contracts/control/history.js";
import { callText, connectStdioV1, connectV1, connectV2, waitForTools } from "./clients.js";
import { type Gateway, root, type ServerEntry, startGateway, temporaryDirectory, until } from "./harness.js";
import { callTool, createToken, refusal, toolway } from "./operator.js";

const SECRET = "only-agent-and-server-know-this";
const JSON_LOG = { TOOLWAY_LOG_FORMAT: "json" };
const demo: ServerEntry = { command: process.execPath, args: [join(root, "dist/demo/server.js")] };
const config = { mcpServers: { demo } };

type Line = Readonly<Record<string, unknown>>;

function linesOf(log: string): Line[] {
  return log.split("\n").flatMap((line) => (line.startsWith('{"time"') ? [JSON.parse(line) as Line] : []));
}

const callsIn = (gateway: Gateway) => linesOf(gateway.log()).filter(({ text }) => text === "call");

it("a call of an agent of either era, and one that is refused, are a line each, without what was said [calls-recorded]", async () => {
  const gateway = await startGateway(config, { env: { ...JSON_LOG, TOOLWAY_LOG_LEVEL: "debug" } });
  const [legacy, modern] = [await connectV1(gateway.url), await connectV2(gateway.url)];
  await waitForTools(legacy, "echo");
  await callText(legacy, "echo", { text: SECRET });
  await callText(modern, "echo", { text: SECRET });
  await callText(modern, "now", { timeZone: SECRET });
  await expect(legacy.callTool({ name: "missing", arguments: { text: SECRET } })).rejects.toThrow();
  const calls = await until("four lines", () => {
    const found = callsIn(gateway).filter(({ level }) => level === "info");
    return found.length >= 4 && found;
  });
  const known = { principal: "local", role: "default", client: "toolway-e2e/1.0.0", method: "tools/call" };
  expect(calls).toEqual([
    expect.objectContaining({ ...known, server: "demo", tool: "echo", outcome: "ok", ms: expect.any(Number) }),
    expect.objectContaining({ ...known, server: "demo", tool: "echo", outcome: "ok", id: expect.any(Number) }),
    expect.objectContaining({ ...known, server: "demo", tool: "now", outcome: "tool-error" }),
    expect.objectContaining({ ...known, tool: "missing", outcome: "not-found" }),
  ]);
  expect(gateway.log()).not.toContain(SECRET);
  // What is counted agrees with what is logged.
  const { out } = await toolway(gateway, "metrics");
  const counted = /^mcp_server_operation_duration_seconds_count\{(.*mcp_method_name="tools\/call".*)\} (\d+)$/gm;
  expect([...out.matchAll(counted)].map(([, labels, count]) => `${labels} ${count}`)).toEqual([
    'toolway_server="demo",mcp_method_name="tools/call",gen_ai_tool_name="echo" 2',
    'toolway_server="demo",mcp_method_name="tools/call",gen_ai_tool_name="now",error_type="tool_error" 1',
    'mcp_method_name="tools/call",error_type="not_found" 1',
  ]);
  expect(out).toContain('toolway_server_state{toolway_server="demo",state="ready"} 1');
  const sent = 'toolway_server="demo",mcp_method_name="tools/call",network_transport="pipe"';
  expect(out).toContain(`mcp_client_operation_duration_seconds_count{${sent}} 2`);
  expect(out).toContain(`mcp_client_operation_duration_seconds_count{${sent},error_type="tool_error"} 1`);
  expect(out).toContain('toolway_server_starts_total{toolway_server="demo",reason="first"} 1');
  expect(out).toMatch(/^toolway_store_commit_seconds_count [1-9]/m);
  expect(out).not.toContain(SECRET);
  const { out: shown } = await toolway(gateway, "calls", "--tool", "echo", "--json");
  const kept = shown
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
  expect(kept).toHaveLength(2);
  expect(kept[0]).toMatchObject({ server: "demo", outcome: "ok", serverMs: expect.any(Number) });
  expect((await toolway(gateway, "calls", "--failed")).out).toMatch(
    / local demo\/now: tool-error, .*\n.* local missing: not-found/,
  );
  const { history } = JSON.parse((await toolway(gateway, "top", "--json")).out) as { history: HistoryAnswer };
  expect(history.servers).toMatchObject([{ server: "demo", calls: 3, errors: 1, restarts: 0 }]);
  // At debug it tells of lists, sessions and connections, too.
  expect(callsIn(gateway)).toContainEqual(expect.objectContaining({ level: "debug", method: "tools/list" }));
  const session = { text: "session opened", principal: "local", client: "toolway-e2e" };
  expect(linesOf(gateway.log())).toContainEqual(expect.objectContaining(session));
  expect(linesOf(gateway.log())).toContainEqual(
    expect.objectContaining({ text: "connection opened", peer: "127.0.0.1", open: expect.any(Number) }),
  );

  // An edit of the config ends it, and begins it again.
  await gateway.writeConfig({ ...config, log: { calls: false } });
  await until("the edit", () => gateway.log().includes("config applied"));
  const before = callsIn(gateway).length;
  await callText(legacy, "echo", { text: "not logged" });
  await gateway.writeConfig({ ...config, log: { calls: true } });
  await until("the next edit", () => gateway.log().split("config applied").length > 2);
  await callText(legacy, "echo", { text: "logged" });
  await until("one line more", () => callsIn(gateway).length > before);
  expect(callsIn(gateway)).toHaveLength(before + 1);
});

it("whose token it was, and in which role, is told of a call that is denied, and inspect says why [calls-recorded]", async () => {
  const roles = { reader: { deny: ["demo/now"] } };
  const gateway = await startGateway({ ...config, roles }, { auth: true, env: JSON_LOG });
  const token = await createToken(gateway, "ann", "reader");
  await until("a refusal", () => refusal(gateway.url, "now", {}, token));
  const denied = { principal: "ann", role: "reader", server: "demo", tool: "now", outcome: "denied" };
  await until("its line", () => callsIn(gateway).length > 0);
  expect(callsIn(gateway)).toContainEqual(expect.objectContaining(denied));
  expect(gateway.log()).not.toContain(token);
  const { status } = await fetch(gateway.url, {
    method: "POST",
    headers: { authorization: "Bearer wrong" },
    body: "{}",
  });
  expect(status).toBe(401);
  const { out: metrics } = await toolway(gateway, "metrics");
  expect(metrics).toMatch(/^toolway_refused_total\{rule="role"\} [1-9]/m);
  expect(metrics).toMatch(/^toolway_refused_total\{rule="token"\} [1-9]/m);
  const { out } = await toolway(gateway, "inspect", "now");
  expect(out).toContain("timeZone  string");
  expect(out).toMatch(/reader: no, .*deny "demo\/now"\n +\(any other role\): yes/);
});

it("a log that nobody reads delays neither calls nor the end of the gateway [calls-recorded]", async () => {
  const pipe = join(await temporaryDirectory(), "log");
  execFileSync("mkfifo", [pipe]);
  // Opened for both, so that it can be opened, and is full after 64 KiB.
  const under = ["/bin/sh", "-c", 'exec "$@" 2<>"$0"', pipe];
  const gateway = await startGateway(config, { under, env: JSON_LOG });
  // Each line has more than 200 bytes.
  for (let round = 0; round < 7; round++) {
    await Promise.all(Array.from({ length: 50 }, () => callTool(gateway.url, "echo", { text: "hello" })));
  }
  gateway.signal("SIGTERM");
  await gateway.exited;
});

it("is off where nobody asked for it: over stdio, and with --no-call-log", async () => {
  const quiet = await startGateway(config, { args: ["--no-call-log"], env: JSON_LOG });
  const client = await connectV1(quiet.url);
  await waitForTools(client, "echo");
  await callText(client, "echo", { text: "hello" });
  await quiet.stop();
  expect(callsIn(quiet)).toEqual([]);

  for (const more of [[], ["--call-log"]]) {
    const agent = await connectStdioV1(quiet, undefined, more);
    const said: string[] = [];
    const { stderr } = agent.transport as unknown as { stderr: NodeJS.ReadableStream };
    stderr.on("data", (chunk: Buffer) => said.push(String(chunk)));
    await waitForTools(agent, "echo");
    await callText(agent, "echo", { text: "hello" });
    const ended = new Promise((resolve) => stderr.once("close", resolve));
    await agent.close();
    await ended;
    expect(said.join("").includes("call demo/echo: ok")).toBe(more.length > 0);
  }
});

it("what becomes of a server is in fields of its own in JSON, and in words alone where people read [told-why]", async () => {
  const broken: ServerEntry = { command: "/bin/sh", args: ["-c", "echo 'no such key' >&2; exit 3"] };
  const mcpServers = { demo, broken, "odd name": { command: "x", env: { KEY: `\${TOOLWAY_TEST_UNSET}` } } };
  const gateway = await startGateway({ mcpServers }, { env: JSON_LOG });
  const about = (server: string) => linesOf(gateway.log()).filter((line) => line["server"] === server && line["state"]);
  await until("both", () => about("demo").length > 0 && about("broken").length > 0);
  expect(about("demo")[0]).toEqual({
    time: expect.any(String),
    level: "info",
    text: expect.stringMatching(/^server "demo": ready after \d+ ms$/),
    server: "demo",
    state: "ready",
    from: "starting",
    readyAfterMs: expect.any(Number),
  });
  expect(about("broken")[0]).toMatchObject({
    level: "warn",
    text: expect.stringContaining("no such key"),
    state: "backoff",
    from: "starting",
    reason: expect.any(String),
    nextTryInMs: expect.any(Number),
  });
  expect(about("odd name")).toMatchObject([{ level: "error", state: "misconfigured" }]);
  const other = await startGateway({ mcpServers });
  await until("its line", () => other.log().includes('server "demo": ready after'));
  expect(other.log()).not.toContain("readyAfterMs");
  expect(other.log()).not.toContain("state=");
});
