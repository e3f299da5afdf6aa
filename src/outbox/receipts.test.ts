// Agents ask after their writes through a pipeline; the writes themselves are a stand-in for the queue.

import { afterEach, describe, expect, it, vi } from "vitest";
import { Agent } from "../../test/fixtures/agent.js";
import { names, StandInServer, setUpPipeline, tools } from "../../test/fixtures/pipeline.js";
import type { Caller } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { Receipt, Receipts } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { parseMessage, type RequestMessage } from "../protocol/message.js";
import { TASKS_EXTENSION } from "../protocol/modern.js";
import { type Reply, renderReply, resultBytes } from "../protocol/reply.js";
import { LocalReceiptHandler } from "./receipts.js";

const CREATE = ownToolName("create_issue");
const START_MS = 1_800_000_000_000;

function receipt(id: string, more: Partial<Receipt> = {}): Receipt {
  return {
    id,
    server: "tracker",
    tool: CREATE,
    state: "queued",
    idempotencyKey: `key of ${id}`,
    position: 0,
    takenMs: START_MS + 1,
    sinceMs: START_MS + 1,
    why: "the server is away",
    attempts: 0,
    result: undefined,
    error: undefined,
    ...more,
  };
}

class StandInReceipts implements Receipts {
  readonly all = new Map<string, { principal: string; receipt: Receipt }>();
  readonly listeners = new Set<(principal: string, receipt: Receipt) => void>();

  set(principal: string, one: Receipt): Receipt {
    this.all.set(one.id, { principal, receipt: one });
    for (const listener of this.listeners) listener(principal, one);
    return one;
  }

  get(principal: string, id: string): Receipt | undefined {
    const found = this.all.get(id);
    return found?.principal === principal ? found.receipt : undefined;
  }

  of(principal: string, limit: number): Receipt[] {
    const own = [...this.all.values()].filter((one) => one.principal === principal).map((one) => one.receipt);
    return own.reverse().slice(0, limit);
  }

  async cancel(principal: string, id: string): Promise<Receipt | undefined> {
    const found = this.get(principal, id);
    return found?.state === "queued" ? this.set(principal, { ...found, state: "cancelled" }) : found;
  }

  onChange(listener: (principal: string, receipt: Receipt) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

function setUp({ tells = true, roles = {} } = {}) {
  const tracker = Object.assign(new StandInServer("tracker"), { outbox: new Set([CREATE]) });
  const whole = setUpPipeline([tracker, new StandInServer("wiki")], roles);
  whole.pipeline.fromServers.onList("tracker", "tools", tools("create_issue", "find_issues"));
  whole.pipeline.fromServers.onList("wiki", "tools", tools("read"));
  const receipts = new StandInReceipts();
  const handler = new LocalReceiptHandler({
    receipts,
    keyOf: ({ id }) => id,
    hasOutbox: (scope) => scope !== "wiki",
    tells: () => tells,
    subscribers: whole.pipeline.sessions.ours,
    taskIds: {
      expose: (task) => JSON.stringify(task),
      open: (text, principal) => {
        const task = JSON.parse(text) as never;
        return (task as { principal: string }).principal === principal ? task : undefined;
      },
    },
    wall: () => START_MS,
  });
  whole.pipeline.receipts = handler;
  return { ...whole, receipts, handler };
}

const text = (answer: JsonObject, index = 0): string =>
  ((answer["result"] as JsonObject)["content"] as { text: string }[])[index]?.text ?? "";
const structured = (answer: JsonObject): JsonObject =>
  (answer["result"] as JsonObject)["structuredContent"] as JsonObject;
const asked = (agent: Agent, args: JsonObject = {}) => agent.call("toolway__receipt", args).answer();
const rendered = (reply: Reply) => JSON.parse(renderReply(reply as never, "1").toString()) as JsonObject;

afterEach(() => vi.useRealTimers());

describe("the tool that says what became of a write", () => {
  it("is listed for whoever sees a tool whose calls are kept, and for nobody else", async () => {
    const whole = setUp({ roles: { reader: { allow: ["tracker/find_issues", "wiki"] } } });
    expect(await names(new Agent(whole, "ann"))).toContain("toolway__receipt");
    expect(await names(new Agent(whole, "ann2", "default", "tracker"))).toContain("toolway__receipt");
    expect(await names(new Agent(whole, "bob", "reader"))).toEqual(["tracker__find_issues", "wiki__read"]);
    expect(await names(new Agent(whole, "cid", "default", "wiki"))).toEqual(["read"]);
    const list = (await new Agent(whole, "dan").send("tools/list").answer())["result"] as { tools: JsonObject[] };
    expect(list.tools.at(-1)?.["annotations"]).toEqual({ readOnlyHint: true, openWorldHint: false });
    const templates = (await new Agent(whole, "eve").send("resources/templates/list").answer())["result"];
    expect(JSON.stringify(templates)).toContain("toolway://receipts/{id}");
  });

  it("says of one receipt all that is known, with the server's whole result, in text and in structured content", async () => {
    const { receipts, ...whole } = setUp();
    const ann = new Agent(whole, "ann");
    receipts.set("ann", receipt("r1", { position: 2 }));
    const waiting = await asked(ann, { id: "r1" });
    expect(structured(waiting)).toMatchObject({
      receipt: "r1",
      state: "queued",
      position: 2,
      idempotencyKey: "key of r1",
    });
    expect(text(waiting)).toMatch(
      /waits to be delivered\. 2 before it\. the server is away\.[\s\S]*idempotencyKey: key of r1/,
    );
    const result = { content: [{ type: "image", data: "AA==", mimeType: "image/png" }], structuredContent: { n: 7 } };
    receipts.set("ann", receipt("r1", { state: "done", position: undefined, result: JSON.stringify(result) }));
    const done = await asked(ann, { id: "r1" });
    expect(structured(done)).toMatchObject({ state: "done", result });
    expect((done["result"] as JsonObject)["content"]).toContainEqual(result.content[0]);
    receipts.set("ann", receipt("r1", { state: "failed", error: '{"code":-1,"message":"no such project"}' }));
    expect(structured(await asked(ann, { id: "r1" }))).toMatchObject({ error: { message: "no such project" } });
  });

  it("lists an agent's own, the newest first, and knows nobody else's [receipts-apart]", async () => {
    const { receipts, ...whole } = setUp();
    receipts.set("ann", receipt("r1"));
    receipts.set("bob", receipt("r2"));
    receipts.set("ann", receipt("r3"));
    const ann = new Agent(whole, "ann");
    const { receipts: own } = structured(await asked(ann)) as { receipts: JsonObject[] };
    expect(own.map((one) => one["receipt"])).toEqual(["r3", "r1"]);
    expect(structured(await asked(ann, { limit: 1 }))["receipts"]).toHaveLength(1);
    const other = await asked(ann, { id: "r2" });
    expect(other["result"]).toMatchObject({ isError: true });
    expect(text(other)).toBe('You have no receipt "r2". Call toolway__receipt without an id for all that you have.');
    expect(text(await asked(ann, { id: "r9" }))).toBe(text(other).replace("r2", "r9"));
    expect(text(await asked(new Agent(whole, "cid")))).toContain("You have no receipts");
  });

  it.each([
    [{ id: 7 }, '"id" is the id of a receipt'],
    [{ id: "r1", wait: "long" }, '"wait" is a number of seconds, 45 at most'],
    [{ wait: 5 }, '"wait" needs "id"'],
    [{ limit: 0 }, '"limit" is a number from 1 to 100'],
  ])("says what is wrong with %j", async (args, said) => {
    expect(text(await asked(new Agent(setUp(), "ann"), args))).toContain(said);
  });

  it("waits for the end with progress, and 45 seconds at most", async () => {
    vi.useFakeTimers();
    const { receipts, ...whole } = setUp();
    const ann = new Agent(whole, "ann");
    receipts.set("ann", receipt("r1"));
    const params = { name: "toolway__receipt", arguments: { id: "r1", wait: 1_000 }, _meta: { progressToken: "p" } };
    const first = ann.send("tools/call", params);
    vi.advanceTimersByTime(44_000);
    expect(first.replies).toEqual([]);
    expect(ann.heard).toHaveLength(8);
    expect(ann.heard[0]).toMatchObject({
      method: "notifications/progress",
      params: { progressToken: "p", progress: 1 },
    });
    vi.advanceTimersByTime(1_000);
    expect(structured(await first.answer())).toMatchObject({ state: "queued" });
    const second = ann.send("tools/call", params);
    receipts.set("ann", receipt("r1", { state: "sending" }));
    expect(second.replies).toEqual([]);
    receipts.set("ann", receipt("r1", { state: "done", result: '{"content":[]}' }));
    expect(structured(await second.answer())).toMatchObject({ state: "done" });
    expect(vi.getTimerCount()).toBe(0);
  });

  it("lets go of a question that was taken back", async () => {
    vi.useFakeTimers();
    const { receipts, ...whole } = setUp();
    receipts.set("ann", receipt("r1"));
    const sent = new Agent(whole, "ann").call("toolway__receipt", { id: "r1", wait: 40 });
    sent.onCancel?.("enough");
    expect(vi.getTimerCount()).toBe(0);
    receipts.set("ann", receipt("r1", { state: "done" }));
    expect(sent.replies).toHaveLength(1);
  });

  it("answers whoever waits when the gateway ends, and holds no timer then", async () => {
    vi.useFakeTimers();
    const { receipts, handler, ...whole } = setUp();
    receipts.set("ann", receipt("r1"));
    const sent = new Agent(whole, "ann").call("toolway__receipt", { id: "r1", wait: 40 });
    handler.close();
    expect(structured(await sent.answer())).toMatchObject({ state: "queued" });
    expect(vi.getTimerCount()).toBe(0);
    expect(receipts.listeners.size).toBe(0);
  });
});

describe("the resource of a receipt", () => {
  it("is read by its principal alone, and tells who subscribed of each change [receipts-apart]", async () => {
    const { receipts, ...whole } = setUp();
    const uri = "toolway://receipts/r1";
    receipts.set("ann", receipt("r1"));
    const [ann, bob] = [new Agent(whole, "ann", "default", "tracker"), new Agent(whole, "bob")];
    for (const method of ["resources/read", "resources/subscribe"]) {
      expect(await bob.send(method, { uri }).answer()).toMatchObject({
        error: { message: `Resource not found: ${uri}` },
      });
    }
    expect(await ann.send("resources/subscribe", { uri }).answer()).toMatchObject({ result: {} });
    receipts.set("ann", receipt("r1", { state: "done", result: '{"content":[]}' }));
    expect(ann.heard).toEqual([{ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } }]);
    expect(bob.heard).toEqual([]);
    const { contents } = (await ann.send("resources/read", { uri }).answer())["result"] as { contents: JsonObject[] };
    expect(contents).toHaveLength(1);
    expect(JSON.parse(String(contents[0]?.["text"]))).toMatchObject({ state: "done", result: { content: [] } });
    await ann.send("resources/unsubscribe", { uri }).answer();
    receipts.set("ann", receipt("r1"));
    expect(ann.heard).toHaveLength(1);
  });

  it("is told of again to a session that was restored, at any path", () => {
    const { receipts, ...whole } = setUp();
    const uri = "toolway://receipts/r1";
    const ann = new Agent(whole, "ann");
    whole.pipeline.sessionClosed(ann);
    const restored = Object.assign(ann, { subscribed: new Map([["", new Set([uri])]]) });
    whole.pipeline.sessionOpened(restored, "tracker");
    receipts.set("ann", receipt("r1", { state: "done" }));
    expect(ann.heardMethods()).toEqual(["notifications/resources/updated"]);
    whole.pipeline.catchUp(restored, "tracker");
    expect(ann.heard.at(-1)).toMatchObject({ method: "notifications/resources/updated", params: { uri } });
    whole.pipeline.sessionClosed(ann);
    const before = ann.heard.length;
    receipts.set("ann", receipt("r1"));
    expect(ann.heard).toHaveLength(before);
  });

  it("of a server that has none of the kind is that server's own business", async () => {
    const whole = setUp();
    const wiki = new Agent(whole, "ann", "default", "wiki");
    expect(await wiki.call("toolway__receipt").answer()).toMatchObject({ error: { code: -32602 } });
  });
});

describe("what an agent gets whose write was kept", () => {
  const legacy = { principal: { id: "ann", role: "default" }, era: "legacy", capabilities: {} } as unknown as Caller;

  it("says in text and in structured content that it is not done, and how to ask", () => {
    const { handler } = setUp();
    const answer = rendered(handler.taken(legacy, receipt("r1", { position: 3 })));
    const facts = structured(answer);
    expect(facts).toMatchObject({
      queued: true,
      receipt: "r1",
      state: "queued",
      tool: "create_issue",
      idempotencyKey: "key of r1",
      position: 3,
      why: "the server is away",
      ask: { tool: "toolway__receipt", arguments: { id: "r1" } },
    });
    for (const [name, value] of Object.entries(facts)) {
      if (["queued", "note", "ask"].includes(name)) continue;
      expect(text(answer)).toContain(`${name}: ${String(value)}`);
    }
    expect(text(answer)).toContain(
      'Queued, not done yet: the call of "create_issue" is kept on disk until "tracker" takes it.',
    );
    expect(text(answer)).toContain('call toolway__receipt with {"id":"r1"}');
    expect(JSON.stringify(answer)).not.toContain("resource_link");
    expect(text(rendered(handler.taken(legacy, receipt("r2", { state: "sending" }))))).toContain(
      "which has not answered so far",
    );
  });

  it("hears once of its end in its next result, and not of what it has asked after or had as a result", () => {
    const { handler, receipts } = setUp();
    const reply = () => resultBytes('{"content":[{"type":"text","text":"own"}],"x":1.0}');
    const told = () => rendered(handler.withNews(legacy, reply()));
    handler.taken(legacy, receipts.set("ann", receipt("r1")));
    receipts.set("ann", receipt("live"));
    expect(renderReply(handler.withNews(legacy, reply()) as never, "1")).toEqual(renderReply(reply(), "1"));
    receipts.set("ann", receipt("live", { state: "done" }));
    receipts.set("ann", receipt("r1", { state: "done" }));
    receipts.set("ann", receipt("old", { takenMs: START_MS - 5, state: "unknown" }));
    const other = { ...legacy, principal: { id: "bob", role: "default" } } as Caller;
    expect(rendered(handler.withNews(other, reply()))["result"]).toMatchObject({ content: [{ text: "own" }] });
    const block = {
      type: "text",
      text: "Receipt r1 (create_issue) is done.\nReceipt old (create_issue) has an unknown outcome.",
    };
    const withNews = handler.withNews(legacy, reply());
    expect(renderReply(withNews as never, "1").toString()).toContain(`"own"},${JSON.stringify(block)}],"x":1.0`);
    expect((told()["result"] as JsonObject)["content"]).toHaveLength(1);
  });

  it("keeps the news for the next result where a reply has no place for them, and has none where the config says so", () => {
    const quiet = setUp({ tells: false });
    quiet.handler.taken(legacy, quiet.receipts.set("ann", receipt("r1")));
    quiet.receipts.set("ann", receipt("r1", { state: "done" }));
    expect(quiet.handler.withNews(legacy, { kind: "result", result: { content: [] } })).toMatchObject({
      result: { content: [] },
    });
    const { handler, receipts } = setUp();
    handler.taken(legacy, receipts.set("ann", receipt("r1")));
    receipts.set("ann", receipt("r1", { state: "expired" }));
    const error: Reply = { kind: "error", error: { code: -1, message: "no" } };
    expect(handler.withNews(legacy, error)).toBe(error);
    expect(handler.withNews(legacy, resultBytes('{"content":[]}'))).not.toBe(error);
  });
});

describe("a modern agent that knows tasks", () => {
  const caller = {
    principal: { id: "ann", role: "default" },
    era: "modern",
    sessionKey: "s",
    capabilities: { extensions: { [TASKS_EXTENSION]: {} } },
  } as unknown as Caller;
  const ask = async (
    handler: LocalReceiptHandler,
    method: string,
    taskId: string,
    more: Partial<Caller> = {},
  ): Promise<JsonObject> => {
    const message = parseMessage(
      JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { taskId } }),
    ) as RequestMessage;
    return new Promise((resolve) => {
      const reply = (one: Reply) => resolve(rendered(one));
      const call = {
        caller: { ...caller, ...more },
        message,
        scope: undefined,
        reply,
        onCancel: undefined,
      } as AgentCall;
      expect(handler.handle(call)).toBe(true);
    });
  };

  it("gets a task, which ends as its write does, and can take it back [receipts-apart]", async () => {
    const { handler, receipts } = setUp();
    const begun = rendered(handler.taken(caller, receipts.set("ann", receipt("r1"))))["result"] as JsonObject;
    expect(begun).toMatchObject({ resultType: "task", status: "working", ttlMs: 604_800_000 });
    const id = String(begun["taskId"]);
    const ends: [Partial<Receipt>, JsonObject][] = [
      [{ state: "sending" }, { status: "working" }],
      [
        { state: "done", result: '{"content":[]}' },
        { status: "completed", result: { content: [] } },
      ],
      [
        { state: "failed", error: '{"code":-7,"message":"m"}' },
        { status: "failed", error: { code: -7, message: "m" } },
      ],
      [{ state: "expired" }, { status: "failed", error: { data: { fault: "timeout" } } }],
      [{ state: "unknown" }, { status: "failed", error: { data: { fault: "outcome-unknown" } } }],
      [{ state: "cancelled" }, { status: "cancelled" }],
    ];
    for (const [become, said] of ends) {
      receipts.set("ann", receipt("r1", become));
      expect((await ask(handler, "tasks/get", id))["result"]).toMatchObject({ taskId: id, ...said });
    }
    receipts.set("ann", receipt("r1"));
    expect(await ask(handler, "tasks/cancel", id)).toMatchObject({ result: {} });
    expect((await ask(handler, "tasks/get", id))["result"]).toMatchObject({ status: "cancelled" });
    const message = parseMessage(
      `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":${JSON.stringify(id)}}}`,
    );
    const other = { ...caller, principal: { id: "bob", role: "default" } };
    expect(handler.handle({ caller: other, message, scope: undefined } as never)).toBe(false);
  });

  it("gets no task without the extension, nor in the legacy era", () => {
    const { handler } = setUp();
    for (const more of [{ capabilities: {} }, { era: "legacy" as const }]) {
      expect(structured(rendered(handler.taken({ ...caller, ...more } as Caller, receipt("r1"))))["queued"]).toBe(true);
    }
  });
});
