// What one gateway read of a server, and began there, is known at the others: its lists and its era where the server is away, and
// a task by its id.

import { afterAll, describe, expect, it } from "vitest";
import { send } from "../e2e/eras.js";
import { startHttpFixture } from "../e2e/harness.js";
import { type EngineGateway, startOnEngine } from "../fixtures/engine-gateways.js";
import { NO_NATS, natsPrograms, startNats } from "../fixtures/nats.js";
import { until } from "../fixtures/wait.js";

const title = natsPrograms.length === 0 ? `what gateways know together, ${NO_NATS}` : "what gateways know together";
const withTasks = { capabilities: { extensions: { "io.modelcontextprotocol/tasks": {} } } };

describe.skipIf(natsPrograms.length === 0)(title, () => {
  const gateways: EngineGateway[] = [];
  afterAll(async () => {
    await Promise.all(gateways.map(({ gateway }) => gateway.close({ drainMs: 0 })));
  });

  it("is a task that was begun at one, and of a server that is down the tools and the era [engine-shared] [tasks-apart] [menu-survives]", async () => {
    const nats = await startNats();
    const server = await startHttpFixture("tasks", ["--era", "modern"]);
    const config = { names: "plain", mcpServers: { tasks: { url: server.url } } } as const;
    const started = async () => {
      const one = await startOnEngine(nats, config);
      gateways.push(one);
      return one;
    };
    const [a, b] = [await started(), await started()];
    for (const { gateway } of [a, b]) await gateway.servers.get("tasks")?.firstTry;
    const ask = async ({ url, gateway }: EngineGateway, method: string, params: object, name?: string) => {
      const headers = { authorization: `Bearer ${gateway.token}`, ...(name === undefined ? {} : { "mcp-name": name }) };
      return (await send(url, { method, params: { ...params }, headers, ...withTasks })).reply;
    };

    const call = { name: "slow_compute", arguments: { seconds: 0, label: "here" } };
    const taskId = String((await ask(a, "tools/call", call)).result?.["taskId"]);
    const task = await until("the end of the task, at the other", async () => {
      const { result } = await ask(b, "tasks/get", { taskId }, taskId);
      return result?.["status"] === "completed" ? result : undefined;
    });
    expect([task["taskId"], JSON.stringify(task)]).toEqual([taskId, expect.stringContaining("Computed here")]);

    await server.kill();
    const late = await started();
    const tools = await until("the tools of before", async () => {
      const { result } = await ask(late, "tools/list", {});
      const { tools: listed } = result as { tools: { name: string }[] };
      return listed.length > 0 ? listed.map(({ name }) => name) : undefined;
    });
    expect(tools).toContain("slow_compute");
    expect(late.gateway.status().servers).toMatchObject([{ name: "tasks", listsFromBefore: true }]);
    expect(late.gateway.state.eras.get("tasks")).toMatchObject({ era: "modern" });
  });
});
