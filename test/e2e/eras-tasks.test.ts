// The tasks extension: each server numbers its tasks itself, so the ids that agents hold name their server too.

import { beforeAll, describe, expect, it } from "vitest";
import { connect, send } from "./eras.js";
import { type Gateway, startGateway, startHttpFixture, stdioFixture, until } from "./harness.js";
import { createToken } from "./operator.js";
import { eventsOf, INITIALIZED, initialize, lastOf, openHttpWire, openStdioWire, post } from "./wire.js";

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
      capabilities: { tasks: { list: {}, cancel: {}, requests: { tools: { call: {} } } } },
    });
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
    const listed = (await ask("tasks/list", {})).result as unknown as { tasks: Task[] };
    expect(new Set(listed.tasks.map(({ taskId }) => taskId))).toEqual(new Set(ids));
    expect(listed.tasks).toMatchObject([{ status: "cancelled", weight: 1 }, { status: "cancelled" }]);
    expect((await ask("tasks/get", { taskId: "1" })).error).toMatchObject({ code: -32602 });
  });
});

/** Two principals at one gateway, and what each of them is told. */
describe("tasks of two principals", () => {
  let gateway: Gateway;
  const tokens: Record<string, string> = {};
  let ids = 0;

  beforeAll(async () => {
    const mcpServers = {
      old: stdioFixture("legacy-tasks"),
      lone: stdioFixture("legacy-tasks", [], { isolation: "session" }),
      new: (await startHttpFixture("tasks", ["--era", "modern"])).entry,
      oldhttp: (await startHttpFixture("legacy-tasks")).entry,
    };
    gateway = await startGateway({ names: "prefixed", mcpServers }, { auth: true });
    for (const id of ["ann", "bob"]) tokens[id] = await createToken(gateway, id, "dev");
    const agent = await connect("legacy", gateway, { token: tokens["ann"] ?? "" });
    await agent.waitFor("old__build", "lone__build", "new__greet", "oldhttp__build");
  });

  const bearing = (who: string) => ({ authorization: `Bearer ${tokens[who]}` });

  /** A legacy session of one of them, at a path. */
  async function session(who: string, path = "") {
    const url = `${gateway.url}${path}`;
    const opened = await post(url, initialize("0", "2025-11-25", '{"elicitation":{}}'), bearing(who));
    const headers = { ...bearing(who), "mcp-session-id": opened.headers.get("mcp-session-id") ?? "" };
    await post(url, INITIALIZED, headers);
    const ask = async (method: string, params: object = {}) =>
      JSON.parse(lastOf(await post(url, JSON.stringify({ jsonrpc: "2.0", id: ++ids, method, params }), headers))) as {
        result: { task: Task; tasks: Task[] };
        error: object;
      };
    const begin = async (name: string) => (await ask("tools/call", { name, task: { ttl: 60_000 } })).result.task.taskId;
    return { url, headers, ask, begin };
  }

  const METHODS = ["tasks/get", "tasks/result", "tasks/cancel"];

  it.each([
    ["/mcp", "", "old__build"],
    ["/mcp/old", "/old", "build"],
    ["/mcp/oldhttp", "/oldhttp", "build"],
    ["a server of its own", "/lone", "build"],
  ])("are each its own alone at %s: others neither see nor cancel them [tasks-apart]", async (_name, path, tool) => {
    const [ann, bob] = [await session("ann", path), await session("bob", path)];
    const taskId = await ann.begin(tool);
    expect(taskId).toMatch(/^[\w-]{40,}$/);
    for (const method of METHODS) {
      expect((await bob.ask(method, { taskId })).error).toMatchObject({ code: -32602 });
      expect((await bob.ask(method, { taskId: "1" })).error).toMatchObject({ code: -32602 });
    }
    expect((await bob.ask("tasks/list")).result.tasks).toEqual([]);
    expect((await ann.ask("tasks/list")).result.tasks.map((task) => task.taskId)).toContain(taskId);
    expect((await ann.ask("tasks/get", { taskId })).result).toMatchObject({ taskId, status: "completed" });
  });

  it.each(["", "/new"])("are so in the modern era, at /mcp%s [tasks-apart]", async (path) => {
    const url = `${gateway.url}${path}`;
    const about = (who: string, method: string, taskId: string) =>
      send(url, { method, params: { taskId }, headers: { "mcp-name": taskId, ...bearing(who) }, ...withTasks });
    const params = { name: path === "" ? "new__slow_compute" : "slow_compute", arguments: { seconds: 60 } };
    const begun = await send(url, { method: "tools/call", params, headers: bearing("ann"), ...withTasks });
    const { taskId } = begun.reply.result as unknown as Task;
    expect(taskId).not.toMatch(/^task-/);
    for (const method of ["tasks/get", "tasks/update", "tasks/cancel"]) {
      expect((await about("bob", method, taskId)).reply.error).toMatchObject({ code: -32602 });
      expect((await about("bob", method, "task-1")).reply.error).toMatchObject({ code: -32602 });
    }
    expect((await about("ann", "tasks/get", taskId)).reply.result).toMatchObject({ taskId, status: "working" });
    await about("ann", "tasks/cancel", taskId);
    expect((await about("ann", "tasks/get", taskId)).reply.result).toMatchObject({ taskId, status: "cancelled" });
  });

  it("are so on stdio, where the agent is the default principal [tasks-apart]", async () => {
    const [ann, wire] = [await session("ann"), await openStdioWire(gateway)];
    const ask = async (method: string, params: object = {}) =>
      JSON.parse(lastOf(await wire.send(JSON.stringify({ jsonrpc: "2.0", id: `s${++ids}`, method, params })))) as {
        result: { task: Task; tasks: Task[] };
        error: object;
      };
    const hers = await ann.begin("old__build");
    const its = (await ask("tools/call", { name: "old__build", task: {} })).result.task.taskId;
    for (const method of METHODS) {
      expect((await ask(method, { taskId: hers })).error).toMatchObject({ code: -32602 });
      expect((await ann.ask(method, { taskId: its })).error).toMatchObject({ code: -32602 });
    }
    expect((await ask("tasks/list")).result.tasks.map((task) => task.taskId)).toEqual([its]);
    expect((await ask("tasks/get", { taskId: its })).result).toMatchObject({ taskId: its, status: "completed" });
    await wire.close();
  });

  it("are told of to their owner, under the id that it knows [tasks-apart]", async () => {
    const [ann, bob] = [await session("ann"), await session("bob")];
    const heard: Record<string, string> = { ann: "", bob: "" };
    const stop = new AbortController();
    for (const [who, { url, headers }] of Object.entries({ ann, bob })) {
      const stream = await fetch(url, { headers: { ...headers, accept: "text/event-stream" }, signal: stop.signal });
      void (async () => {
        for await (const chunk of stream.body ?? []) heard[who] += Buffer.from(chunk).toString();
      })().catch(() => {});
    }
    const taskId = await ann.begin("old__announce");
    await until("the notification", () => heard["ann"]?.includes("notifications/tasks/status"));
    expect(eventsOf(heard["ann"] ?? "").map((text) => JSON.parse(text) as object)).toContainEqual(
      expect.objectContaining({ params: expect.objectContaining({ taskId, status: "completed" }) as object }),
    );
    expect(heard["bob"]).not.toContain("notifications/tasks/status");
    stop.abort();
  });

  it("ask their owner, and name the task as each side knows it [tasks-apart]", async () => {
    const ann = await session("ann");
    const taskId = await ann.begin("old__ask");
    const text = JSON.stringify({ jsonrpc: "2.0", id: "r", method: "tasks/result", params: { taskId } });
    const response = await fetch(ann.url, {
      method: "POST",
      headers: { ...ann.headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: text,
    });
    let body = "";
    for await (const chunk of response.body ?? []) {
      body += Buffer.from(chunk).toString();
      const question = eventsOf(body).map((event) => JSON.parse(event) as { id: unknown; method?: string })[0];
      if (question?.method !== "elicitation/create" || body.includes("content")) continue;
      const related = { _meta: { "io.modelcontextprotocol/related-task": { taskId } } };
      expect(question).toMatchObject({ params: related });
      await post(
        ann.url,
        JSON.stringify({ jsonrpc: "2.0", id: question.id, result: { action: "accept", ...related } }),
        ann.headers,
      );
    }
    const answer = JSON.parse(eventsOf(body).at(-1) ?? "") as {
      result: { content: { text: string }[]; _meta: object };
    };
    expect(answer.result._meta).toMatchObject({ "io.modelcontextprotocol/related-task": { taskId } });
    // The server was given its own id back.
    const told = JSON.parse(answer.result.content[0]?.text ?? "") as { action: string; related: string };
    expect(told).toMatchObject({ action: "accept", related: expect.stringMatching(/^\d+$/) as string });
  });

  it("are known to their owner alone after a restart of the gateway [tasks-apart]", async () => {
    const ann = await session("ann");
    const taskId = await ann.begin("oldhttp__build");
    await gateway.stop("SIGKILL");
    gateway = await gateway.again();
    const [again, bob] = [await session("ann"), await session("bob")];
    expect((await again.ask("tasks/get", { taskId })).result).toMatchObject({ taskId, status: "completed" });
    expect((await bob.ask("tasks/get", { taskId })).error).toMatchObject({ code: -32602 });
    expect((await again.ask("tasks/list")).result.tasks.map((task) => task.taskId)).toContain(taskId);
  });

  it("are of one era: what the other cannot do is refused by name, before anything happens", async () => {
    const ann = await session("ann");
    const refused = await ann.ask("tools/call", { name: "new__slow_compute", arguments: {}, task: {} });
    expect(refused.error).toMatchObject({ code: -32601, message: expect.stringContaining("2026-07-28") as string });
    const strict = { name: "old__strict", arguments: {} };
    const { reply } = await send(gateway.url, {
      method: "tools/call",
      params: strict,
      headers: bearing("ann"),
      ...withTasks,
    });
    expect(reply.error).toMatchObject({ code: -32601, message: expect.stringContaining("2025-11-25") as string });
    const taskId = await ann.begin("old__build");
    const headers = { "mcp-name": taskId, ...bearing("ann") };
    const asked = await send(gateway.url, { method: "tasks/get", params: { taskId }, headers, ...withTasks });
    expect(asked.reply.error).toMatchObject({ code: -32602, message: expect.stringContaining("2025-11-25") as string });
    const listed = await send(gateway.url, { method: "tasks/list", headers: bearing("ann"), ...withTasks });
    expect(listed.reply.error).toMatchObject({ code: -32601 });
  });
});
