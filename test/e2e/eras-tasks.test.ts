// The tasks extension: each server numbers its tasks itself, so the ids that agents hold name their server too.

import { beforeAll, describe, expect, it } from "vitest";
import { connect, send } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { lastOf, openHttpWire } from "./wire.js";

const EXTENSION = "io.modelcontextprotocol/tasks";
const withTasks = { capabilities: { elicitation: {}, extensions: { [EXTENSION]: {} } } };

interface Task {
  readonly taskId: string;
  readonly status: string;
  readonly result?: { readonly content: readonly { readonly text: string }[] };
  readonly inputRequests?: Record<string, object>;
}

describe("tasks across servers", () => {
  let gateway: Gateway;

  beforeAll(async () => {
    const era = ["--era", "modern"];
    const { entry } = await startHttpFixture("tasks", era);
    const mcpServers = { http: entry, stdio: stdioFixture("tasks", era), plain: stdioFixture("asker") };
    gateway = await startGateway({ names: "prefixed", mcpServers });
    await (await connect("legacy", gateway)).waitFor("http__greet", "stdio__greet", "plain__elicit");
  });

  const call = (name: string, args: object) => ({ method: "tools/call", params: { name, arguments: args } });

  async function begun(name: string, args: object): Promise<string> {
    const { reply } = await send(gateway.url, { ...call(name, args), ...withTasks });
    expect(reply.result).toMatchObject({ resultType: "task", taskId: expect.any(String) as string });
    return (reply.result as unknown as Task).taskId;
  }

  async function about(method: string, taskId: string, more: object = {}): Promise<Task> {
    const headers = { "mcp-name": taskId };
    const { reply } = await send(gateway.url, { method, params: { taskId, ...more }, headers, ...withTasks });
    expect(reply.error).toBeUndefined();
    return reply.result as unknown as Task;
  }

  it("ids of two servers do not meet, and each leads back to its own", async () => {
    const ids = await Promise.all(
      ["http", "stdio"].map((server) => begun(`${server}__slow_compute`, { seconds: 0, label: server })),
    );
    expect(new Set(ids).size).toBe(2);
    for (const [at, server] of ["http", "stdio"].entries()) {
      const task = await until("the task to end", async () => {
        const now = await about("tasks/get", ids[at] ?? "");
        return now.status === "completed" ? now : undefined;
      });
      expect(task.taskId).toBe(ids[at]);
      expect(task.result?.content[0]?.text).toBe(`Computed ${server}`);
    }
  });

  it.each(["http", "stdio"])("a task of the %s server asks, is answered and is cancelled by its id", async (server) => {
    const asking = await begun(`${server}__confirm_delete`, { filename: "a.txt" });
    const parked = await until("the question", async () => {
      const now = await about("tasks/get", asking);
      return now.status === "input_required" ? now : undefined;
    });
    const keys = Object.keys(parked.inputRequests ?? {});
    const response = { action: "accept", content: { confirm: true } };
    await about("tasks/update", asking, { inputResponses: Object.fromEntries(keys.map((key) => [key, response])) });
    await until("the end", async () => (await about("tasks/get", asking)).status === "completed");
    const long = await begun(`${server}__slow_compute`, { seconds: 60, label: "long" });
    await about("tasks/cancel", long);
    expect((await about("tasks/get", long)).status).toBe("cancelled");
  });

  it("an id that nobody gave is -32602", async () => {
    const headers = { "mcp-name": "task-1" };
    const { reply } = await send(gateway.url, {
      method: "tasks/get",
      params: { taskId: "task-1" },
      headers,
      ...withTasks,
    });
    expect(reply.error).toMatchObject({ code: -32602 });
  });

  it("an agent without the extension gets a plain result, or is told that it lacks it", async () => {
    const legacy = await connect("legacy", gateway);
    expect(await legacy.text("http__slow_compute", { seconds: 0, label: "now" })).toBe("Computed now");
    await expect(legacy.call("http__failing_job")).rejects.toMatchObject({ code: -32021 });
    const { reply } = await send(gateway.url, call("http__failing_job", {}));
    expect(reply.error).toMatchObject({
      code: -32021,
      data: { requiredCapabilities: { extensions: { [EXTENSION]: {} } } },
    });
  });

  it("a legacy server's tools are called as ever by an agent with the extension", async () => {
    const { reply } = await send(gateway.url, { ...call("plain__whoami", {}), ...withTasks });
    expect(reply.result).toMatchObject({ resultType: "complete" });
  });
});

describe("tasks of 2025-11-25", () => {
  it("of two legacy servers are told apart, fetched and cancelled by a legacy agent", async () => {
    const server = (name: string) => stdioFixture("legacy-tasks", ["--name", name]);
    const mcpServers = { one: server("one"), two: server("two"), plain: stdioFixture("asker") };
    const gateway = await startGateway({ names: "prefixed", mcpServers });
    await (await connect("legacy", gateway)).waitFor("one__build", "two__build", "plain__elicit");
    const wire = await openHttpWire(gateway.url);
    let id = 0;
    const ask = async (method: string, params: object): Promise<{ result: { task: Task }; error: object }> =>
      JSON.parse(lastOf(await wire.send(JSON.stringify({ jsonrpc: "2.0", id: ++id, method, params }))));
    const introduced = JSON.parse(wire.initialized) as { result: object };
    expect(introduced.result).toMatchObject({
      capabilities: { tasks: { cancel: {}, requests: { tools: { call: {} } } } },
    });
    expect(introduced.result).not.toHaveProperty("capabilities.tasks.list");
    const begun = await Promise.all(
      ["one", "two"].map((name) => ask("tools/call", { name: `${name}__build`, task: { ttl: 60_000 } })),
    );
    const ids = begun.map(({ result }) => result.task.taskId);
    expect(new Set(ids).size).toBe(2);
    for (const [at, name] of ["one", "two"].entries()) {
      const taskId = ids[at] ?? "";
      expect((await ask("tasks/get", { taskId })).result).toMatchObject({ taskId, status: "completed" });
      expect((await ask("tasks/result", { taskId })).result).toMatchObject({
        content: [{ text: `built by ${name}` }],
        _meta: { "io.modelcontextprotocol/related-task": { taskId } },
      });
      expect((await ask("tasks/cancel", { taskId })).result).toMatchObject({ taskId, status: "cancelled" });
    }
    expect((await ask("tasks/get", { taskId: "1" })).error).toMatchObject({ code: -32602 });
  });
});
