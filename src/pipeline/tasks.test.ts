// Tasks on their way through a pipeline, with stand-ins for the servers: whose they are, which ids agents see, and what
// happens where something is full or cannot be written.

import { randomBytes } from "node:crypto";
import { describe, expect, it, vi } from "vitest";
import { Agent, notification } from "../../test/fixtures/agent.js";
import { StandInServer } from "../../test/fixtures/pipeline.js";
import { TestClock } from "../../test/fixtures/test-clock.js";
import { Cache } from "../cache/cache.js";
import { Catalog } from "../catalog/catalog.js";
import type { Caller } from "../contracts/caller.js";
import type { ServerHandle, Servers } from "../contracts/servers.js";
import type { DurableMap } from "../contracts/store.js";
import type { ServerIntro, UpstreamCall } from "../contracts/upstream.js";
import { compileMenus } from "../policy/menus.js";
import { compilePolicy, type PolicyConfig } from "../policy/policy.js";
import { Fault } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { type NotificationMessage, parseMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../protocol/reply.js";
import { createSteadySealer } from "../runtime/seal.js";
import { MemoryMap } from "../store/memory-map.js";
import { Pipeline } from "./pipeline.js";
import { TaskIds } from "./tasks/ids.js";
import { TaskOwners } from "./tasks/owners.js";
import type { TaskLimits, TaskRecord } from "./tasks/table.js";
import { hasTasks, taskRefusal } from "./tasks.js";

const RELATED = "io.modelcontextprotocol/related-task";
const EXTENSION = "io.modelcontextprotocol/tasks";

/** Counts its tasks from 1, as many do, and knows nothing of who began which. */
class TaskServer extends StandInServer {
  override intro: ServerIntro = {
    version: "2025-11-25",
    capabilities: { tools: {}, tasks: { cancel: {}, requests: { tools: { call: {} } } } },
    serverInfo: {},
    instructions: undefined,
  };
  readonly notified: JsonObject[] = [];
  tasks = new Map<string, string>();
  down = false;
  silent = false;

  override send(call: UpstreamCall): void {
    const message = JSON.parse(call.render(1)) as JsonObject;
    this.received.push(message);
    if (this.silent) return;
    call.reply(this.down ? faultReply(new Fault("unavailable", "It is down.")) : this.#answer(message));
  }

  #answer({ method, params }: JsonObject): Reply {
    const { taskId, task } = params as { taskId?: string; task?: object };
    if (method === "tools/call") {
      if (task === undefined && this.intro.era !== "modern") return resultBytes('{"content":[],"taskId":"plain"}');
      const id = String(this.tasks.size + 1);
      this.tasks.set(id, "working");
      if (this.intro.era !== "modern") return resultBytes(`{"task":{"taskId":"${id}","status":"working","x":1.0}}`);
      return { ...resultBytes(`{"resultType":"task","taskId":"${id}","status":"working"}`), era: "modern" };
    }
    const status = this.tasks.get(taskId ?? "");
    if (status === undefined) {
      const reply = resultBytes("{}");
      const error = '{"jsonrpc":"2.0","id":0,"error":{"code":-32602,"message":"No such task"}}';
      return { ...reply, bytes: Buffer.from(error) };
    }
    if (method === "tasks/cancel") this.tasks.set(taskId ?? "", "cancelled");
    if (method === "tasks/result") return resultBytes(`{"content":[],"_meta":{"${RELATED}":{"taskId":"${taskId}"}}}`);
    return resultBytes(`{"taskId":"${taskId}","status":"${this.tasks.get(taskId ?? "")}","x":1.0}`);
  }

  override cancel(call: UpstreamCall): void {
    call.reply(faultReply(new Fault("cancelled", "Cancelled.")));
  }

  override notify({ text }: NotificationMessage): void {
    this.notified.push(JSON.parse(text) as JsonObject);
  }

  get methods(): unknown[] {
    return this.received.map(({ method }) => method);
  }
}

interface SetUp {
  readonly roles?: PolicyConfig["roles"];
  readonly map?: DurableMap<TaskRecord>;
  readonly limits?: TaskLimits;
  readonly key?: Uint8Array;
  readonly servers?: readonly TaskServer[];
}

function setUp({ roles = {}, map, limits, key = randomBytes(32), servers }: SetUp = {}) {
  const clock = new TestClock();
  const [one, two] = servers ?? [new TaskServer("one"), new TaskServer("two")];
  if (one === undefined || two === undefined) throw new Error("two servers");
  const all = new Map([one, two].map((server) => [server.name, server as ServerHandle]));
  const catalog = new Catalog({
    names: "prefixed",
    menu: "full",
    serverInfo: { name: "toolway" },
    seal: (value) => value,
    unseal: (text) => text,
  });
  catalog.setServers([one, two]);
  const sealer = createSteadySealer(key);
  const pipeline = new Pipeline({
    catalog,
    cache: new Cache({ maxBytes: 1_000_000, entriesPerTool: 64, maxTtlMs: 60_000 }, clock),
    policy: compilePolicy({ roles, unlistedRoles: "allow" }),
    pins: { check: () => ({ differs: false }), quarantine: () => undefined, isQuarantined: () => false },
    now: clock.now,
    version: "0",
    taskIds: new TaskIds({ seal: (value) => sealer.seal("t", value), unseal: (text) => sealer.unseal("t", text) }),
    taskOwners: new TaskOwners({
      map: map ?? new MemoryMap("tasks"),
      wall: () => clock.wall(),
      failed: () => {},
      ...(limits === undefined ? {} : { limits }),
    }),
    onKnown: () => {},
    log: () => {},
  });
  const hosted: Servers = {
    names: [...all.keys()],
    all: all.values(),
    handles: [...all.values()],
    get: (name) => all.get(name),
    sessionClosed() {},
  };
  pipeline.attach(hosted);
  for (const server of [one, two]) {
    pipeline.fromServers.onIntro(server.name, server.intro, server, undefined);
    const value = { name: "build", execution: { taskSupport: server.name === "two" ? "required" : "optional" } };
    pipeline.fromServers.onList(server.name, "tools", [{ json: JSON.stringify(value), value }]);
  }
  const at = (id: string, scope?: string, role = "default") => {
    const agent = new Agent({ pipeline }, id, role, scope);
    const tool = (server: string) => (scope === undefined ? `${server}__build` : "build");
    return Object.assign(agent, {
      async begin(server = scope ?? "one"): Promise<string> {
        const { result } = await agent.send("tools/call", { name: tool(server), task: { ttl: 1 } }).answer();
        return (result as { task: { taskId: string } }).task.taskId;
      },
      async listed(): Promise<string[]> {
        const { result } = await agent.send("tasks/list").answer();
        return (result as { tasks: { taskId: string }[] }).tasks.map(({ taskId }) => taskId);
      },
    });
  };
  return { pipeline, one, two, clock, at };
}

describe.each([
  ["/mcp", undefined],
  ["/mcp/<server>", "one"],
])("a task at %s", (_path, scope) => {
  it("is known by a sealed id, the same each time, which leads back to it", async () => {
    const { at } = setUp();
    const ann = at("ann", scope);
    const id = await ann.begin();
    expect(id).toMatch(/^[\w-]{40,}$/);
    expect((await ann.send("tasks/get", { taskId: id }).answer())["result"]).toMatchObject({ taskId: id, x: 1 });
    expect((await ann.send("tasks/result", { taskId: id }).answer())["result"]).toMatchObject({
      _meta: { [RELATED]: { taskId: id } },
    });
    expect(await ann.listed()).toEqual([id]);
  });

  it("of another principal is unknown, is not listed, and is not told of [tasks-apart]", async () => {
    const { at, one, pipeline } = setUp();
    const [ann, bob] = [at("ann", scope), at("bob", scope)];
    const id = await ann.begin();
    one.received.length = 0;
    for (const method of ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"]) {
      expect(await bob.send(method, { taskId: id }).code()).toBe(-32602);
      // The server's own id is nobody's.
      expect(await bob.send(method, { taskId: "1" }).code()).toBe(-32602);
    }
    expect(await bob.listed()).toEqual([]);
    pipeline.fromServers.onNotification(
      "one",
      notification("notifications/tasks/status", { taskId: "1", status: "done" }),
      bob,
    );
    expect(bob.heard).toEqual([]);
    expect(ann.heard).toMatchObject([{ params: { taskId: id, status: "done" } }]);
    expect(one.received).toEqual([]);
  });

  it("is not told of, nor asked for, once the role may not use its tool any more", async () => {
    const { at, one, pipeline } = setUp();
    const ann = at("ann", scope, "dev");
    const id = await ann.begin();
    one.received.length = 0;
    pipeline.setPolicy(compilePolicy({ roles: { dev: { deny: ["one/build"] } }, unlistedRoles: "allow" }));
    expect(await ann.send("tasks/result", { taskId: id }).code()).toBe(-31007);
    expect(await ann.listed()).toEqual([]);
    ann.heard.length = 0;
    pipeline.fromServers.onNotification("one", notification("notifications/tasks/status", { taskId: "1" }), undefined);
    expect(ann.heard).toEqual([]);
    expect(one.received).toEqual([]);
    // A role that may use this tool alone may ask about its tasks.
    pipeline.setPolicy(compilePolicy({ roles: { dev: { allow: ["one/build"] } }, unlistedRoles: "allow" }));
    expect((await ann.send("tasks/get", { taskId: id }).answer())["result"]).toMatchObject({ taskId: id });
  });

  it("goes on whatever menus hide since: its agent is told, asks and cancels, and begins no other [under-way]", async () => {
    const { at, one, pipeline } = setUp();
    pipeline.setMenus(compileMenus([{ when: { phase: "review" }, hide: ["one"] }]));
    const ann = at("ann", scope);
    const id = await ann.begin();
    pipeline.changeContext("ann", { phase: "review" });
    ann.heard.length = 0;
    expect((await ann.send("tasks/get", { taskId: id }).answer())["result"]).toMatchObject({ taskId: id });
    expect(await ann.listed()).toEqual([id]);
    pipeline.fromServers.onNotification("one", notification("notifications/tasks/status", { taskId: "1" }), undefined);
    expect(ann.heard).toMatchObject([{ params: { taskId: id } }]);
    await ann.send("tasks/cancel", { taskId: id }).answer();
    expect(one.tasks.get("1")).toBe("cancelled");
    const name = scope === undefined ? "one__build" : "build";
    expect(await ann.send("tools/call", { name, task: {} }).code()).toBe(-31007);
  });
});

describe("the owner of a task", () => {
  it("is whoever began it last, where a server counts anew [tasks-apart]", async () => {
    const { at, one } = setUp();
    const [ann, bob] = [at("ann"), at("bob")];
    const before = await ann.begin();
    one.tasks.clear();
    const after = await bob.begin();
    expect(await ann.send("tasks/get", { taskId: before }).code()).toBe(-32602);
    expect((await bob.send("tasks/get", { taskId: after }).answer())["result"]).toMatchObject({ taskId: after });
  });

  it("is known after a restart of the gateway", async () => {
    const [map, key] = [new MemoryMap<TaskRecord>("tasks"), randomBytes(32)];
    const first = setUp({ map, key });
    const id = await first.at("ann").begin();
    const { at } = setUp({ map, key, servers: [first.one, first.two] });
    expect(await at("ann").listed()).toEqual([id]);
    expect(await at("bob").send("tasks/get", { taskId: id }).code()).toBe(-32602);
  });

  it("is on disk before the agent hears of the task [ack-is-durable]", async () => {
    let written = (): void => {};
    const map = new MemoryMap<TaskRecord>("tasks");
    const put = map.put.bind(map);
    map.put = (key, value) =>
      new Promise<void>((resolve) => {
        written = () => resolve(put(key, value));
      });
    const { at } = setUp({ map });
    const sent = at("ann").send("tools/call", { name: "one__build", task: {} });
    await new Promise(setImmediate);
    expect(sent.replies).toEqual([]);
    written();
    expect((await sent.answer())["result"]).toMatchObject({ task: { status: "working" } });
    expect([...map.entries()]).toHaveLength(1);
  });

  it("that cannot be written is told so, and the task is cancelled", async () => {
    const map = new MemoryMap<TaskRecord>("tasks");
    map.put = () => Promise.reject(new Error("No room left on the disk."));
    const { at, one } = setUp({ map });
    const ann = at("ann");
    const { error } = await ann.send("tools/call", { name: "one__build", task: {} }).answer();
    expect(error).toMatchObject({ code: -31003, message: expect.stringContaining("No room left") as string });
    expect(one.tasks.get("1")).toBe("cancelled");
    expect(await ann.listed()).toEqual([]);
  });

  it("with too many tasks begins no more, until some have ended; others go on [bounded]", async () => {
    const { at, one } = setUp({ limits: { ofPrincipal: 2, all: 10 } });
    const [ann, bob] = [at("ann"), at("bob")];
    const [first] = [await ann.begin(), await ann.begin()];
    one.received.length = 0;
    const { error } = await ann.send("tools/call", { name: "one__build", task: {} }).answer();
    expect(error).toMatchObject({ code: -31006, message: expect.stringContaining("cancel some") as string });
    // It was refused before it had any effect, and plain calls go on.
    expect(one.received).toEqual([]);
    expect((await ann.call("one__build").answer())["result"]).toMatchObject({ taskId: "plain" });
    await bob.begin();
    await ann.send("tasks/cancel", { taskId: first }).answer();
    await ann.begin();
    expect(await ann.send("tasks/get", { taskId: first }).code()).toBe(-32602);
  });

  it("is a session where each has a process of its own: they may number their tasks alike", async () => {
    const { at, one, pipeline } = setUp();
    one.isolation = "session";
    const ann = at("ann");
    const other = new Agent({ pipeline }, "other");
    other.principal.id = "ann";
    const id = await ann.begin();
    expect(await ann.listed()).toEqual([id]);
    expect(await other.send("tasks/get", { taskId: id }).code()).toBe(-32602);
  });
});

describe("tasks/list over many servers", () => {
  it("goes on where the page before ended, whatever came and went meanwhile", async () => {
    const { at, one, clock } = setUp();
    const [ann, bob] = [at("ann"), at("bob")];
    const ids: string[] = [];
    for (let i = 0; i < 70; i++) {
      ids.push(await ann.begin(i % 2 === 0 ? "one" : "two"));
      await bob.begin();
      clock.advance(1);
    }
    const first = (await ann.send("tasks/list").answer())["result"] as {
      tasks: { taskId: string }[];
      nextCursor: string;
    };
    expect(first.tasks.map(({ taskId }) => taskId)).toEqual(ids.slice(0, 50));
    one.tasks.delete("1");
    ids.push(await ann.begin());
    const second = (await ann.send("tasks/list", { cursor: first.nextCursor }).answer())["result"];
    expect(second).not.toHaveProperty("nextCursor");
    expect((second as typeof first).tasks.map(({ taskId }) => taskId)).toEqual(ids.slice(50));
    expect(await bob.send("tasks/list", { cursor: first.nextCursor }).code()).toBe(-32602);
    expect(await ann.send("tasks/list", { cursor: "made up" }).code()).toBe(-32602);
  });

  it("has the tasks of a server that is down as they were last, and those of the others as they are [one-bad-server]", async () => {
    const { at, one, two, clock } = setUp();
    const ann = at("ann");
    await ann.begin("one");
    clock.advance(1);
    await ann.begin("two");
    one.down = true;
    two.tasks.set("1", "completed");
    const { result } = await ann.send("tasks/list").answer();
    expect(result).toMatchObject({ tasks: [{ status: "working" }, { status: "completed" }] });
  });

  it("does not wait for a server that says nothing [one-bad-server]", async () => {
    vi.useFakeTimers();
    try {
      const { at, one } = setUp();
      const ann = at("ann");
      const id = await ann.begin();
      one.silent = true;
      const sent = ann.send("tasks/list");
      await vi.advanceTimersByTimeAsync(4_999);
      expect(sent.replies).toEqual([]);
      await vi.advanceTimersByTimeAsync(1);
      expect((await sent.answer())["result"]).toMatchObject({ tasks: [{ taskId: id, status: "working" }] });
    } finally {
      vi.useRealTimers();
    }
  });

  it("is taken back when the agent cancels it", async () => {
    const { at, one } = setUp();
    const ann = at("ann");
    await ann.begin();
    one.silent = true;
    const sent = ann.send("tasks/list");
    sent.onCancel?.("enough");
    expect(await sent.code()).toBe(-31008);
  });
});

describe("tasks across eras", () => {
  const modern = (era: "legacy" | "modern", server: TaskServer) => {
    if (era === "modern") {
      server.intro = { ...server.intro, era, capabilities: { tools: {}, extensions: { [EXTENSION]: {} } } };
    }
    return server;
  };
  const callOf = (message: JsonObject, caller: Partial<Caller>, pipeline: Pipeline): Promise<Reply> =>
    new Promise((reply) => {
      const agent = new Agent({ pipeline }, "ann");
      const of = {
        principal: agent.principal,
        sessionKey: agent.sessionKey,
        logLevel: undefined,
        clientInfo: {},
        version: "",
        setLogLevel: () => {},
        notify: () => {},
        ask: () => Promise.reject(new Error("no")),
        capabilities: { extensions: { [EXTENSION]: {} } },
        era: "modern" as const,
        ...caller,
      };
      const text = JSON.stringify({ jsonrpc: "2.0", id: 1, ...message });
      const request = parseMessage(text) as RequestMessage;
      pipeline.handle({ caller: of, message: request, scope: undefined, reply, onCancel: undefined });
    });

  it("a legacy agent cannot make a task of a modern server's tool, and is told so before the call is made", async () => {
    const server = modern("modern", new TaskServer("one"));
    const { at } = setUp({ servers: [server, new TaskServer("two")] });
    const { error } = await at("ann").send("tools/call", { name: "one__build", task: {} }).answer();
    expect(error).toMatchObject({
      code: -32601,
      message: expect.stringMatching(/one.*2026-07-28.*Leave "task" out/) as string,
    });
    expect(server.received).toEqual([]);
  });

  it("a modern agent cannot call a legacy server's tool that runs only as a task, and is told so", async () => {
    const { pipeline, two } = setUp();
    const reply = await callOf({ method: "tools/call", params: { name: "two__build" } }, {}, pipeline);
    expect(reply).toMatchObject({ error: { code: -32601, message: expect.stringContaining("2025-11-25") as string } });
    expect(two.received).toEqual([]);
  });

  it("a task of the modern era that cannot be kept is cancelled, and its call refused; other calls go on", async () => {
    const server = modern("modern", new TaskServer("one"));
    const { pipeline } = setUp({ servers: [server, new TaskServer("two")], limits: { ofPrincipal: 1, all: 10 } });
    const call = () => callOf({ method: "tools/call", params: { name: "one__build" } }, {}, pipeline);
    expect((await call()).kind).toBe("bytes");
    expect(await call()).toMatchObject({
      error: { code: -31006, message: expect.stringContaining("was told to cancel it") as string },
    });
    expect(server.methods).toEqual(["tools/call", "tools/call", "tasks/cancel"]);
    expect([...server.tasks.values()]).toEqual(["working", "cancelled"]);
  });

  it("a task is asked about in the era in which it was begun", async () => {
    const { at, pipeline } = setUp();
    const id = await at("ann").begin();
    const reply = await callOf({ method: "tasks/get", params: { taskId: id } }, {}, pipeline);
    expect(reply).toMatchObject({ error: { code: -32602, message: expect.stringContaining("2025-11-25") as string } });
  });
});

it("a notification that names its task has the id that its agent knows", async () => {
  const { at, pipeline } = setUp();
  const [ann, bob] = [at("ann"), at("bob")];
  const id = await ann.begin();
  const said = notification("notifications/message", { level: "info", data: 1, _meta: { [RELATED]: { taskId: "1" } } });
  pipeline.fromServers.onNotification("one", said, bob);
  expect(bob.heard).toEqual([]);
  expect(ann.heard).toMatchObject([{ params: { data: 1, _meta: { [RELATED]: { taskId: id } } } }]);
});

it("a call that belongs to a task names it to its server by the server's own id", async () => {
  const { at, one } = setUp();
  const [ann, bob] = [at("ann"), at("bob")];
  const id = await ann.begin();
  await ann.call("one__build", {}, { [RELATED]: { taskId: id } }).answer();
  expect(one.received.at(-1)).toMatchObject({ params: { _meta: { [RELATED]: { taskId: "1" } } } });
  expect(await bob.call("one__build", {}, { [RELATED]: { taskId: id } }).code()).toBe(-32602);
});

it("a result that is no task keeps what it says of tasks of its own", async () => {
  const { at } = setUp();
  expect((await at("ann").call("one__build").answer())["result"]).toEqual({ content: [], taskId: "plain" });
});

it("servers that have tasks are known in both eras", () => {
  const intro = { version: "", serverInfo: {}, instructions: undefined };
  expect(hasTasks({ ...intro, capabilities: { extensions: { [EXTENSION]: {} } } })).toBe(true);
  expect(hasTasks({ ...intro, capabilities: { tasks: { list: {} } } })).toBe(true);
  expect(hasTasks({ ...intro, capabilities: { extensions: {} } })).toBe(false);
  expect(hasTasks(undefined)).toBe(false);
});

it("tasks are an extension that a modern request must declare", () => {
  const modern = { era: "modern", capabilities: {} } as never;
  const declaring = { era: "modern", capabilities: { extensions: { [EXTENSION]: {} } } } as never;
  expect(taskRefusal(modern, "tasks/get")).toMatchObject({ code: -32021, data: { requiredCapabilities: {} } });
  expect(taskRefusal(declaring, "tasks/get")).toBeUndefined();
  expect(taskRefusal(declaring, "tasks/result")).toMatchObject({ code: -32601 });
  expect(taskRefusal(declaring, "tasks/list")).toMatchObject({ code: -32601 });
});

describe("what agents tell servers of tasks", () => {
  const STATUS = "notifications/tasks/status";
  const tell = (pipeline: Pipeline, from: Caller, method: string, params: JsonObject | string) => {
    const json = typeof params === "string" ? params : JSON.stringify(params);
    const message = parseMessage(`{"jsonrpc":"2.0","method":"${method}","params":${json}}`);
    pipeline.handleNotification(from, message as NotificationMessage, "one");
  };

  it("reaches a shared server under its own ids, and of no task that is not the agent's [tasks-apart]", async () => {
    const { at, one, pipeline } = setUp();
    const [ann, bob] = [at("ann", "one"), at("bob", "one")];
    const [anns, bobs, elsewhere] = [await ann.begin(), await bob.begin(), await at("ann", "two").begin()];
    tell(pipeline, ann, STATUS, `{"taskId":"${anns}","n":1.0}`);
    tell(pipeline, ann, "notifications/x", { taskId: "2", _meta: { [RELATED]: { taskId: anns } } });
    expect(one.notified).toEqual([
      { jsonrpc: "2.0", method: STATUS, params: { taskId: "1", n: 1 } },
      { jsonrpc: "2.0", method: "notifications/x", params: { taskId: "2", _meta: { [RELATED]: { taskId: "1" } } } },
    ]);
    one.notified.length = 0;
    for (const id of ["1", "2", bobs, elsewhere, "made-up", 2, undefined]) {
      tell(pipeline, ann, STATUS, { taskId: id });
      tell(pipeline, ann, "notifications/tasks", { taskId: id });
      tell(pipeline, ann, STATUS, { taskId: anns, _meta: { [RELATED]: { taskId: String(id) } } });
      if (typeof id === "string") tell(pipeline, ann, "notifications/x", { _meta: { [RELATED]: { taskId: id } } });
    }
    tell(pipeline, ann, STATUS, `{"taskId":"${anns}","taskId":"2"}`);
    expect(one.notified).toEqual([]);
    tell(pipeline, ann, "notifications/x", {});
    expect(one.notified).toHaveLength(1);
  });

  it("reaches a server of its own also of tasks that the agent itself runs, never of another's [tasks-apart]", async () => {
    const { at, one, pipeline } = setUp();
    one.isolation = "session";
    const [ann, bob] = [at("ann", "one"), at("bob", "one")];
    const [anns, bobs] = [await ann.begin(), await bob.begin()];
    for (const id of [anns, bobs, "mine"]) tell(pipeline, ann, STATUS, { taskId: id });
    expect(one.notified.map(({ params }) => (params as JsonObject)["taskId"])).toEqual(["1", "mine"]);
  });

  it("reaches nobody once the agent may not use the tool that began it [tasks-apart]", async () => {
    const { at, one, pipeline } = setUp();
    const ann = at("ann", "one");
    const id = await ann.begin();
    pipeline.setPolicy(compilePolicy({ roles: { default: { deny: ["one/build"] } }, unlistedRoles: "allow" }));
    tell(pipeline, ann, STATUS, { taskId: id });
    expect(one.notified).toEqual([]);
  });
});
