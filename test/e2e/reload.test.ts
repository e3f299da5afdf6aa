// A changed config file is applied while the gateway runs: only what changed is restarted.

import { readFile } from "node:fs/promises";
import { request } from "node:http";
import { expect, it } from "vitest";
import { callJson, connectV1, toolNames, waitForTools } from "./clients.js";
import { isAlive, sleep, startGateway, stdioFixture, until } from "./harness.js";
import { runCli } from "./operator.js";
import { initialize, openHttpWire } from "./wire.js";

interface Who {
  readonly pid: number;
}

const one = { mcpServers: { crash: stdioFixture("crash") } };
const two = { mcpServers: { crash: stdioFixture("crash"), stateful: stdioFixture("stateful") } };

it.concurrent("a server that is added appears, the others keep running, the session goes on", async () => {
  const gateway = await startGateway(one);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid");
  const { pid } = await callJson<Who>(client, "pid");
  await gateway.writeConfig(two);
  await waitForTools(client, "pid", "count");
  expect((await callJson<Who>(client, "pid")).pid).toBe(pid);
  expect(await callJson(client, "count")).toMatchObject({ count: 1 });
});

it.concurrent("a server that is removed goes from the menu, and its process ends", async () => {
  const gateway = await startGateway(two);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid", "whoami");
  const { pid } = await callJson<Who>(client, "whoami");
  await gateway.writeConfig(one);
  await until("the menu without it", async () => !(await toolNames(client)).includes("count"));
  await until("its end", () => !isAlive(pid));
  await expect(client.callTool({ name: "count", arguments: {} })).rejects.toMatchObject({ code: -32602 });
});

it.concurrent("what `add` writes and `remove` takes out is applied, and a server that does not start is not written [config-kept]", async () => {
  const gateway = await startGateway(one);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid");
  const named = ["--config", gateway.configPath];
  const { command = "", args = [] } = stdioFixture("stateful");
  const added = await runCli("add", ...named, "stateful", command, ...args);
  expect(added).toMatchObject({ code: 0, err: "" });
  expect(added.out).toContain("The gateway that runs for it starts the server by itself.");
  await waitForTools(client, "pid", "count");
  const before = await readFile(gateway.configPath, "utf8");
  const failed = await runCli("add", ...named, "bad", command, "-e", "console.error('no key'); process.exit(3)");
  expect(failed).toMatchObject({ code: 1, out: "" });
  expect(failed.err).toContain("no key");
  expect(await readFile(gateway.configPath, "utf8")).toBe(before);
  expect(await runCli("remove", "stateful", ...named)).toMatchObject({ code: 0 });
  await until("the menu without it", async () => !(await toolNames(client)).includes("count"));
});

it.concurrent("a changed entry restarts that server alone", async () => {
  const gateway = await startGateway(two);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid", "whoami");
  const crash = await callJson<Who>(client, "pid");
  const stateful = await callJson<Who>(client, "whoami");
  const changed = stdioFixture("stateful", [], { env: { CHANGED: "1" } });
  await gateway.writeConfig({ mcpServers: { ...two.mcpServers, stateful: changed } });
  await until("a new process", async () => (await callJson<Who>(client, "whoami")).pid !== stateful.pid);
  expect((await callJson<Who>(client, "pid")).pid).toBe(crash.pid);
  await until("the old one's end", () => !isAlive(stateful.pid));
});

it.concurrent("a broken edit keeps the old config running, and the log says so; a good one after it is applied", async () => {
  const gateway = await startGateway(one);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid");
  const { pid } = await callJson<Who>(client, "pid");
  const before = gateway.log().length;
  await gateway.writeConfig('{ "mcpServers": { "crash": { "comand": "node" } }');
  await until("a word in the log", () => gateway.log().slice(before).includes(gateway.configPath));
  expect((await callJson<Who>(client, "pid")).pid).toBe(pid);
  await gateway.writeConfig(two);
  await waitForTools(client, "count");
  expect((await callJson<Who>(client, "pid")).pid).toBe(pid);
});

/** One POST with these headers, by a client that lets them be set; its status. */
function knock(port: number, headers: Record<string, string>, body = initialize("0")): Promise<number> {
  return new Promise((resolve, reject) => {
    const all = { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers };
    const req = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers: all }, (res) => {
      res.resume();
      res.on("end", () => resolve(res.statusCode ?? 0));
    });
    req.on("error", reject);
    req.end(body);
  });
}

it.concurrent("names, origins, limits and the idleness of sessions change without a restart [restart-unseen]", async () => {
  const gateway = await startGateway(one);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid");
  const { pid } = await callJson<Who>(client, "pid");
  const padded = initialize("0") + " ".repeat(50_000);
  const seen = async () => [
    await knock(gateway.port, { host: "gate.example" }),
    await knock(gateway.port, { origin: "https://app.example" }),
    await knock(gateway.port, {}, padded),
  ];
  expect(await seen()).toEqual([403, 403, 200]);
  const settings = { allowedHosts: ["gate.example"], allowedOrigins: ["https://app.example"] };
  await gateway.writeConfig({ ...one, ...settings, limits: { bodyBytes: 20_000 } });
  await until("the new settings", async () => (await knock(gateway.port, { host: "gate.example" })) === 200);
  expect(await seen()).toEqual([200, 200, 413]);
  expect(gateway.log()).not.toContain("at the next start");
  await gateway.writeConfig(one);
  await until("those from before", async () => (await knock(gateway.port, { host: "gate.example" })) === 403);
  expect(await seen()).toEqual([403, 403, 200]);
  const session = await openHttpWire(gateway.url);
  await gateway.writeConfig({ ...one, sessions: { idleMs: 500 } });
  await until("the end of a session", async () => {
    await sleep(1_000);
    return (await session.post('{"jsonrpc":"2.0","id":1,"method":"ping"}')).status === 404;
  });
  const again = await connectV1(gateway.url);
  expect((await callJson<Who>(again, "pid")).pid).toBe(pid);
});
