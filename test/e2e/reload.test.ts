// A changed config file is applied while the gateway runs: only what changed is restarted.

import { expect, it } from "vitest";
import { callJson, connectV1, toolNames, waitForTools } from "./clients.js";
import { isAlive, startGateway, stdioFixture, until } from "./harness.js";

interface Who {
  readonly pid: number;
}

const one = { mcpServers: { crash: stdioFixture("crash") } };
const two = { mcpServers: { crash: stdioFixture("crash"), stateful: stdioFixture("stateful") } };

it("a server that is added appears, the others keep running, the session goes on", async () => {
  const gateway = await startGateway(one);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid");
  const { pid } = await callJson<Who>(client, "pid");
  await gateway.writeConfig(two);
  await waitForTools(client, "pid", "count");
  expect((await callJson<Who>(client, "pid")).pid).toBe(pid);
  expect(await callJson(client, "count")).toMatchObject({ count: 1 });
});

it("a server that is removed goes from the menu, and its process ends", async () => {
  const gateway = await startGateway(two);
  const client = await connectV1(gateway.url);
  await waitForTools(client, "pid", "whoami");
  const { pid } = await callJson<Who>(client, "whoami");
  await gateway.writeConfig(one);
  await until("the menu without it", async () => !(await toolNames(client)).includes("count"));
  await until("its end", () => !isAlive(pid));
  await expect(client.callTool({ name: "count", arguments: {} })).rejects.toMatchObject({ code: -32602 });
});

it("a changed entry restarts that server alone", async () => {
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

it("a broken edit keeps the old config running, and the log says so; a good one after it is applied", async () => {
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
