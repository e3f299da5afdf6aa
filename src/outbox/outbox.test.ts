// The outbox as a whole, on a real store in a folder of its own, with a server and a clock that do as they are told.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Caller } from "../contracts/caller.js";
import { ownToolName } from "../contracts/names.js";
import type { OutboxTerms, Receipt } from "../contracts/outbox.js";
import type { AgentCall } from "../contracts/service.js";
import type { Store } from "../contracts/store.js";
import { Fault, type FaultOptions } from "../protocol/errors.js";
import type { JsonObject } from "../protocol/jsonrpc.js";
import { makeMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../protocol/reply.js";
import { openStore } from "../store/local/store.js";
import type { WriteRecord } from "./lanes/write.js";
import { OutboxOperations } from "./operator.js";
import { type DeliveryVerdict, Outbox, type OutboxParts } from "./outbox.js";

const TOOL = ownToolName("create_issue");
const KEYED: OutboxTerms = {
  key: { in: "argument", path: ["request_id"] },
  lane: { by: "principal" },
  maxAgeMs: 86_400_000,
  onUnknown: "skip",
  confirm: undefined,
  tells: true,
};
const KEYLESS: OutboxTerms = { ...KEYED, key: undefined };
const AWAY = faultReply(new Fault("unavailable", "Nothing listens there."));
const LOST = faultReply(new Fault("outcome-unknown", "It went away."));
const DONE = resultBytes('{"content":[],"structuredContent":{"number":7}}');
const httpFault = (code: Fault["code"], status: number, more: FaultOptions["wire"] = {}) =>
  faultReply(new Fault(code, `HTTP ${status}.`, { wire: { status, ...more } }));

let dir: string;
let store: Store;
let world: World;

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), "toolway-outbox-"));
  store = await openStore({ dir });
  world = new World(store);
});
afterEach(async () => {
  await world.outbox.close();
  await store.close();
  rmSync(dir, { recursive: true, force: true });
});

interface Made {
  readonly call: AgentCall;
  readonly replies: Reply[];
}

class World {
  nowMs = 1_000;
  wallMs = Date.UTC(2026, 0, 1);
  terms: OutboxTerms = KEYED;
  verdict: DeliveryVerdict;
  /** What reached the way to the server, in its order. */
  readonly sent: AgentCall[] = [];
  readonly logged: string[] = [];
  outbox: Outbox;
  desk: OutboxOperations;
  #made = 0;

  constructor(on: Store, more: Partial<OutboxParts> = {}) {
    const clock = { now: () => this.nowMs, wall: () => this.wallMs };
    this.outbox = new Outbox({
      store: on,
      clock,
      random: () => 0.999,
      limits: { maxWrites: 1e6, maxBytes: 1e9 },
      terms: (server) => (server === "plain" ? undefined : this.terms),
      send: (call) => void this.sent.push(call),
      judge: () => this.verdict,
      hasToken: () => true,
      receiptReply: (_call, receipt) => ({ kind: "result", result: { queued: true, receipt } }),
      log: (_level, text) => void this.logged.push(text),
      ...more,
    });
    this.desk = new OutboxOperations(this.outbox, clock);
    this.outbox.start();
  }

  make(args: JsonObject, more: { meta?: JsonObject; principal?: string; ask?: Caller["ask"] } = {}): Made {
    const replies: Reply[] = [];
    const { meta, principal = "anna", ask } = more;
    const caller = {
      principal: { id: principal, role: "agent" },
      sessionKey: principal,
      era: "legacy",
      version: "2025-06-18",
      capabilities: { sampling: {} },
      clientInfo: {},
      logLevel: undefined,
      setLogLevel() {},
      notify() {},
      ask: ask ?? (() => Promise.reject(new Fault("no-caller", "no"))),
    } as Caller;
    const params = { name: "tracker__create_issue", arguments: args, ...(meta === undefined ? {} : { _meta: meta }) };
    const message = makeMessage({ jsonrpc: "2.0", id: ++this.#made, method: "tools/call", params }) as RequestMessage;
    const call: AgentCall = {
      caller,
      message,
      scope: undefined,
      reply: (reply) => void replies.push(reply),
      onCancel: undefined,
    };
    return { call, replies };
  }

  call(
    args: JsonObject,
    more: { meta?: JsonObject; principal?: string; server?: string; ask?: Caller["ask"] } = {},
  ): Made {
    const made = this.make(args, more);
    this.outbox.take(made.call, more.server ?? "tracker", TOOL);
    return made;
  }

  /** A call whose server is away: its receipt. */
  async queued(args: JsonObject, more: { server?: string; principal?: string } = {}): Promise<Receipt> {
    const made = this.call(args, more);
    await this.rest();
    if (made.replies.length === 0) await this.answer(AWAY);
    return receiptOf(made);
  }

  /** Answers the last that was sent. */
  async answer(reply: Reply, at = -1): Promise<void> {
    this.sent.at(at)?.reply(reply);
    await this.rest();
  }

  /** Until what is being written is on disk, and what follows from it is done. */
  async rest(): Promise<void> {
    for (let i = 0; i < 4; i++) {
      await this.outbox.settled();
      await nextTurn();
    }
  }

  async pass(ms: number): Promise<void> {
    this.nowMs += ms;
    this.wallMs += ms;
    this.outbox.tick();
    await this.rest();
  }

  /** The program is killed, and started again on the same disk. */
  again(): World {
    const next = new World(store);
    next.nowMs = this.nowMs;
    return next;
  }

  args(at: number): JsonObject {
    return this.sent.at(at)?.message.params?.["arguments"] as JsonObject;
  }

  get records(): WriteRecord[] {
    return [...store.map<WriteRecord>("outbox").entries()].map(([, record]) => record);
  }
}

function receiptOf({ replies }: Made): Receipt {
  const [reply] = replies;
  if (reply?.kind !== "result") throw new Error(`no receipt, but ${JSON.stringify(reply)}`);
  return (reply.result as { receipt: Receipt }).receipt;
}

const errorOf = (reply: Reply | undefined): string =>
  reply?.kind === "error" ? reply.error.message : JSON.stringify(reply);

describe("a key", () => {
  it("is minted and on disk with the call before the first byte leaves [ack-is-durable]", async () => {
    world.call({ title: "a" });
    expect(world.sent).toHaveLength(0);
    await world.rest();
    expect(world.sent).toHaveLength(1);
    expect(world.records[0]?.state).toBe("sending");
    const key = world.args(0)["request_id"];
    expect(key).toMatch(/^[\w-]{43}$/);
    expect([...store.map<string>("outbox-messages").entries()][0]?.[1]).toContain(key as string);
    expect(world.sent[0]?.message.params?.["name"]).toBe(TOOL);
  });

  it("of the agent's own argument goes as it is, and finds the same result again; another call under it is refused [no-double-effect]", async () => {
    const first = world.call({ title: "a", request_id: "mine" });
    await world.rest();
    expect(world.args(0)).toEqual({ title: "a", request_id: "mine" });
    await world.answer(DONE);
    expect(first.replies).toEqual([DONE]);
    const again = world.call({ request_id: "mine", title: "a" });
    await world.rest();
    expect(again.replies).toEqual([{ kind: "result", result: { content: [], structuredContent: { number: 7 } } }]);
    expect(world.sent).toHaveLength(1);
    expect(() => world.call({ title: "b", request_id: "mine" })).toThrow(/used for another call/);
  });

  it("of two agents does not meet at the server, and no text but the key is changed", async () => {
    const meta = { "toolway/idempotencyKey": "1", traceparent: "x" };
    world.call({ n: 1 }, { meta });
    world.call({ n: 1 }, { meta, principal: "bert" });
    await world.rest();
    expect(world.args(0)["request_id"]).not.toBe(world.args(1)["request_id"]);
    expect(world.sent[0]?.message.params?.["_meta"]).toEqual(meta);
  });

  it("is minted where the agent's is no text or empty", async () => {
    world.call({ request_id: 5 });
    world.call({ request_id: "" }, { principal: "bert" });
    await world.rest();
    for (const at of [0, 1]) expect(world.args(at)["request_id"]).toMatch(/^[\w-]{43}$/);
  });

  it("joins a call to the one that is under way", async () => {
    const first = world.call({ request_id: "mine" });
    const second = world.call({ request_id: "mine" });
    await world.rest();
    await world.answer(DONE);
    expect(world.sent).toHaveLength(1);
    expect([first.replies, second.replies]).toEqual([[DONE], [DONE]]);
  });
});

describe("a call whose server is up", () => {
  it("gets the server's own answer, which is on disk before", async () => {
    const { replies } = world.call({ title: "a" });
    await world.rest();
    world.sent[0]?.reply(DONE);
    expect(replies).toEqual([]);
    await world.rest();
    expect(replies).toEqual([DONE]);
    expect(world.records[0]).toMatchObject({ state: "done", hasResult: true });
    const [receipt] = world.desk.of("anna", 10);
    expect(receipt).toMatchObject({ state: "done", result: '{"content":[],"structuredContent":{"number":7}}' });
    expect(world.desk.get("bert", receipt?.id ?? "")).toBeUndefined();
  });

  it("and that refuses it, gets that refusal, whatever its status", async () => {
    for (const status of [400, 404, 409, 422]) {
      const { replies } = world.call({ status });
      await world.rest();
      const refusal = httpFault("protocol", status);
      await world.answer(refusal);
      expect(replies).toEqual([refusal]);
      expect(world.records.at(-1)?.state).toBe("failed");
    }
  });

  it("of another tool is none of the outbox's", () => {
    expect(world.outbox.take(world.make({}).call, "plain", TOOL)).toBe(false);
  });
});

describe("a write that did not arrive", () => {
  it("is queued, which is on disk before its agent is told, and delivered as from nobody when the server is back [ack-is-durable]", async () => {
    const made = world.call({ n: 1 }, { meta: { progressToken: 5, "a/b": 1 } });
    await world.rest();
    world.sent[0]?.reply(AWAY);
    expect(made.replies).toEqual([]);
    await world.rest();
    const { id, state, position } = receiptOf(made);
    expect([state, position]).toEqual(["queued", 0]);
    expect(world.records[0]?.state).toBe("queued");
    world.outbox.poke("tracker");
    await world.rest();
    const [, second] = world.sent;
    expect(second?.message.params?.["_meta"]).toEqual({ "a/b": 1 });
    expect(second?.caller.capabilities).toEqual({});
    expect(world.args(1)).toEqual(world.args(0));
    await world.answer(DONE);
    expect(world.desk.get("anna", id)).toMatchObject({ state: "done" });
    expect(world.logged.join("\n")).toContain(`(receipt ${id}) was delivered`);
    expect(world.logged.join("\n")).not.toContain('"n"');
  });

  it("keeps the order of its lane, live calls included [lane-order]", async () => {
    await world.queued({ n: 1 });
    await world.queued({ n: 2 });
    const live = world.call({ n: 3 });
    await world.rest();
    expect(receiptOf(live)).toMatchObject({ state: "queued", position: 2 });
    world.outbox.poke("tracker");
    await world.rest();
    for (const n of [1, 2, 3]) {
      expect(world.args(-1)["n"]).toBe(n);
      expect(world.sent).toHaveLength(n + 1);
      await world.answer(DONE);
    }
  });

  it("waits its turn behind a live one, and its agent gets the real result", async () => {
    world.call({ n: 1 });
    const second = world.call({ n: 2 });
    await world.rest();
    expect(world.sent).toHaveLength(1);
    await world.answer(DONE);
    expect(second.replies).toEqual([]);
    expect(world.sent).toHaveLength(2);
    await world.answer(DONE);
    expect(second.replies).toEqual([DONE]);
  });

  it("backs off, and honours Retry-After", async () => {
    const made = world.call({});
    await world.rest();
    await world.answer(httpFault("unavailable", 429, { retryAfterMs: 10_000 }));
    expect(receiptOf(made).state).toBe("queued");
    await world.pass(9_000);
    expect(world.sent).toHaveLength(1);
    await world.pass(1_001);
    expect(world.sent).toHaveLength(2);
  });

  it("waits for the login with all of its server, is tried with one, and others go on [lane-order]", async () => {
    world.terms = { ...KEYED, lane: { by: "argument", path: ["project"] } };
    for (const project of ["a", "b"]) world.call({ project });
    await world.rest();
    await world.answer(httpFault("unauthorized", 401), 0);
    await world.answer(httpFault("unauthorized", 401), 1);
    const other = world.call({ project: "c" }, { server: "wiki" });
    await world.rest();
    expect(world.sent).toHaveLength(3);
    await world.answer(DONE);
    expect(other.replies).toEqual([DONE]);
    expect(world.desk.lanes().map(({ heldFor }) => heldFor)).toEqual(["HTTP 401.", "HTTP 401."]);
    await world.pass(1_000);
    expect(world.sent).toHaveLength(4);
    await world.answer(DONE);
    expect(world.sent).toHaveLength(5);
  });

  it("holds its lane where it is forbidden, until a person lets it go", async () => {
    await world.queued({ n: 1 });
    world.outbox.poke("tracker");
    await world.rest();
    await world.answer(httpFault("unauthorized", 403));
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(2);
    expect(await world.desk.release("tracker", undefined)).toBe(1);
    await world.rest();
    expect(world.sent).toHaveLength(3);
  });
});

describe("a write that may have happened", () => {
  const lost: [string, Reply][] = [
    ["lost", LOST],
    ["timed out", faultReply(new Fault("timeout", "Too late."))],
    ...[408, 500, 502, 503, 504, 200].map((status): [string, Reply] => [
      `answered ${status}`,
      httpFault(status === 200 || status === 408 ? "protocol" : "outcome-unknown", status),
    ]),
  ];
  it.each(lost)("(%s) goes again under its key, and is unknown without one [unknown-is-said]", async (_what, reply) => {
    const keyed = world.call({ n: 1 });
    await world.rest();
    await world.answer(reply);
    expect(receiptOf(keyed).state).toBe("queued");
    await world.pass(1_000);
    expect(world.args(1)).toEqual(world.args(0));
    await world.answer(DONE);
    world.terms = KEYLESS;
    const keyless = world.call({ n: 2 }, { principal: "bert" });
    await world.rest();
    await world.answer(reply);
    expect(keyless.replies).toEqual([reply]);
    expect(world.desk.of("bert", 1)[0]?.state).toBe("unknown");
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(3);
  });

  it("is asked for again where the server says that the first still runs, five times", async () => {
    const made = world.call({});
    await world.rest();
    await world.answer(LOST);
    for (let i = 0; i < 6; i++) {
      await world.pass(60_000);
      expect(world.sent).toHaveLength(i + 2);
      await world.answer(httpFault("protocol", 409));
    }
    expect(world.desk.get("anna", receiptOf(made).id)?.state).toBe("unknown");
  });

  it("is settled by the tool that the config names for it [unknown-is-said]", async () => {
    const find = ownToolName("find_issues");
    world.terms = { ...KEYLESS, confirm: { tool: find, arguments: '{"query":"{key}"}', found: "/issues/0" } };
    const made = world.call({}, { meta: { "toolway/idempotencyKey": "mine" } });
    await world.rest();
    await world.answer(LOST);
    await world.pass(1_000);
    expect(world.sent.at(-1)?.message.params).toEqual({ name: find, arguments: { query: "mine" } });
    await world.answer({ kind: "result", result: { structuredContent: { issues: [] } } });
    expect(world.args(-1)).toEqual({});
    await world.answer(LOST);
    await world.pass(2_000);
    await world.answer({ kind: "result", result: { structuredContent: { issues: [{}] } } });
    expect(world.desk.get("anna", receiptOf(made).id)?.state).toBe("done");
    expect(world.sent).toHaveLength(4);
  });

  it.each<[string, DeliveryVerdict]>([
    ["the server refuses the repeat", undefined],
    ["the server is gone from the config", { kind: "denied", why: "It is no longer in the config." }],
  ])("is not called failed where %s [unknown-is-said]", async (_what, verdict) => {
    const made = world.call({});
    await world.rest();
    await world.answer(LOST);
    world.verdict = verdict;
    await world.pass(60_000);
    if (verdict === undefined) await world.answer(httpFault("protocol", 422));
    expect(world.desk.get("anna", receiptOf(made).id)?.state).toBe("unknown");
  });

  it("is not asked for by a key that never left: not to find it would say nothing, and the write would be made twice [unknown-is-said]", async () => {
    const find = ownToolName("find_issues");
    world.terms = { ...KEYLESS, confirm: { tool: find, arguments: '{"query":"{key}"}', found: "/issues/0" } };
    const made = world.call({});
    await world.rest();
    await world.answer(LOST);
    await world.pass(60_000);
    expect(world.sent).toHaveLength(1);
    expect(made.replies).toEqual([LOST]);
    expect(world.records[0]?.state).toBe("unknown");
  });

  it("is asked for by its key as it is, whatever signs are in it [no-double-effect]", async () => {
    const key = "a$&b$$c$'d";
    world.terms = {
      ...KEYLESS,
      confirm: { tool: ownToolName("find_issues"), arguments: '{"query":"<{key}>"}', found: "/issues/0" },
    };
    world.call({}, { meta: { "toolway/idempotencyKey": key } });
    await world.rest();
    await world.answer(LOST);
    await world.pass(1_000);
    expect(world.args(-1)).toEqual({ query: `<${key}>` });
  });

  it("stops its lane where the config wants that, until a person says what became of it", async () => {
    world.terms = { ...KEYLESS, onUnknown: "hold" };
    world.call({ n: 1 });
    const second = world.call({ n: 2 });
    await world.rest();
    await world.answer(LOST);
    await world.pass(60_000);
    expect(world.sent).toHaveLength(1);
    expect(receiptOf(second).state).toBe("queued");
    const [, first] = world.desk.of("anna", 2);
    await world.desk.resolve(first?.id ?? "", "done");
    await world.rest();
    expect(world.sent).toHaveLength(2);
  });
});

describe("an agent's patience", () => {
  it("ends after 20 s with a receipt, the send goes on, and its reply ends the receipt", async () => {
    const made = world.call({});
    await world.rest();
    await world.pass(19_000);
    expect(made.replies).toEqual([]);
    await world.pass(1_000);
    const { id, state } = receiptOf(made);
    expect(state).toBe("sending");
    await world.pass(60_000);
    expect(world.sent).toHaveLength(1);
    await world.answer(DONE);
    expect(world.desk.get("anna", id)?.state).toBe("done");
    expect(made.replies).toHaveLength(1);
  });

  it("begins anew with progress, and stands still while the agent is asked", async () => {
    let answerAsk = () => {};
    const ask = () => new Promise<never>((_resolve, reject) => (answerAsk = () => reject(new Error("no"))));
    const made = world.call({}, { ask });
    await world.rest();
    await world.pass(15_000);
    world.sent[0]?.caller.notify({ method: "notifications/progress", params: {}, text: "{}" });
    await world.pass(15_000);
    const request = makeMessage({ jsonrpc: "2.0", id: 1, method: "sampling/createMessage" }) as RequestMessage;
    const asked = world.sent[0]?.caller.ask(request, new AbortController().signal).catch(() => {});
    await world.pass(600_000);
    expect(made.replies).toEqual([]);
    answerAsk();
    await asked;
    await world.pass(4_000);
    expect(made.replies).toEqual([]);
    await world.pass(1_000);
    expect(receiptOf(made).state).toBe("sending");
  });
});

describe("a cancel", () => {
  it("before the first byte withdraws the write", async () => {
    const { call, replies } = world.call({});
    call.onCancel?.("enough");
    await world.rest();
    expect(world.sent).toHaveLength(0);
    expect(errorOf(replies[0])).toContain("not sent");
    expect(world.records[0]?.state).toBe("cancelled");
  });

  it("after it is passed to the server, and the call is never sent again [unknown-is-said]", async () => {
    const { call, replies } = world.call({});
    await world.rest();
    const reasons: unknown[] = [];
    const [sent] = world.sent;
    if (sent !== undefined) sent.onCancel = (reason) => void reasons.push(reason);
    call.onCancel?.("enough");
    expect(reasons).toEqual(["enough"]);
    await world.answer(faultReply(new Fault("cancelled", "enough")));
    expect(errorOf(replies[0])).toBe("enough");
    expect(world.records[0]?.state).toBe("unknown");
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(1);
  });

  it("after the answer does nothing", async () => {
    const made = world.call({});
    await world.rest();
    await world.answer(AWAY);
    expect(made.call.onCancel).toBeUndefined();
    expect(receiptOf(made).state).toBe("queued");
  });

  it("of a receipt takes back what has not been sent", async () => {
    const { id } = await world.queued({});
    expect(await world.desk.cancel("bert", id)).toBeUndefined();
    expect(await world.desk.cancel("anna", id)).toMatchObject({ state: "cancelled" });
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.sent).toHaveLength(1);
  });
});

describe("a kill", () => {
  it("while a write is sent: it goes again under its key, and is unknown without one [no-double-effect] [unknown-is-said]", async () => {
    world.call({ n: 1 });
    await world.rest();
    world.terms = KEYLESS;
    world.call({ n: 2 }, { principal: "bert" });
    await world.rest();
    const next = world.again();
    await next.rest();
    expect(next.sent.map(({ message }) => message.params?.["arguments"])).toEqual([world.args(0)]);
    expect(next.desk.of("bert", 1)[0]?.state).toBe("unknown");
    await next.answer(DONE);
    expect(next.desk.of("anna", 1)[0]?.state).toBe("done");
    await next.outbox.close();
  });

  it("loses nothing that is queued, its key and its order [ack-is-durable] [lane-order]", async () => {
    const ids = [];
    for (const n of [1, 2, 3]) ids.push((await world.queued({ n, request_id: `k${n}` })).id);
    const next = world.again();
    await next.rest();
    for (const n of [1, 2, 3]) {
      expect(next.args(-1)).toEqual({ n, request_id: `k${n}` });
      await next.answer(DONE);
    }
    expect(ids.map((id) => next.desk.get("anna", id)?.state)).toEqual(["done", "done", "done"]);
    await next.outbox.close();
  });
});

describe("the disk", () => {
  it("that is full takes nothing: the agent is told that it was not queued, nothing is sent, and what was queued stays", async () => {
    const { id } = await world.queued({ n: 1 });
    const batch = store.batch.bind(store);
    store.batch = () => Promise.reject(new Error("The disk is full."));
    const made = world.call({ n: 2 });
    await world.rest();
    expect(errorOf(made.replies[0])).toBe("Not sent, and not queued: it could not be written down. The disk is full.");
    store.batch = batch;
    expect(world.sent).toHaveLength(1);
    const next = world.again();
    expect(next.desk.of("anna", 10).map((receipt) => receipt.id)).toEqual([id]);
    await next.outbox.close();
  });

  it("that fills up after the send: the agent gets the answer, and it is written down when there is room", async () => {
    const made = world.call({ n: 1 });
    await world.rest();
    const batch = store.batch.bind(store);
    store.batch = () => Promise.reject(new Error("The disk is full."));
    await world.answer(DONE);
    expect(made.replies).toEqual([DONE]);
    expect(world.records[0]?.state).toBe("sending");
    store.batch = batch;
    await world.pass(1_000);
    expect(world.records[0]?.state).toBe("done");
  });

  it("that is slow has 25 s, then the agent is told, and nothing is sent later", async () => {
    const batch = store.batch.bind(store);
    let commit = () => {};
    const late = new Promise<void>((resolve) => (commit = resolve));
    store.batch = (fn) => late.then(() => batch(fn));
    const made = world.call({});
    world.nowMs += 24_999;
    world.outbox.tick();
    expect(made.replies).toEqual([]);
    world.nowMs += 1;
    world.outbox.tick();
    expect(errorOf(made.replies[0])).toContain("did not take it within 25000 ms");
    store.batch = batch;
    commit();
    await world.rest();
    expect(world.sent).toHaveLength(0);
    expect(world.records[0]?.state).toBe("cancelled");
  });

  it("has a record of another version: it is held and shown, and never dropped", async () => {
    const strange = { v: 9, id: "r9", server: "tracker", tool: "create_issue", principal: { id: "anna" }, more: 1 };
    await store.map("outbox").put("000000000000042", strange);
    const next = world.again();
    expect(next.desk.list({ limit: 10 })).toMatchObject([{ id: "r9", state: "queued", principal: "anna" }]);
    expect(next.desk.show("r9")?.heldFor).toContain("another version");
    await expect(next.desk.retry("r9")).rejects.toThrow(/another version/);
    next.call({});
    await next.rest();
    expect(next.records).toHaveLength(2);
    expect(store.map("outbox").get("000000000000042")).toEqual(strange);
    await next.outbox.close();
  });
});

describe("clocks", () => {
  it("that jump an hour or a day, both ways, change no age while the gateway runs", async () => {
    const { id } = await world.queued({});
    for (const hours of [1, -1, 24, -24, -48]) {
      world.wallMs += hours * 3_600_000;
      await world.pass(1);
      expect(world.desk.get("anna", id)?.state).not.toBe("expired");
    }
  });

  it("count by the wall over a restart, never below 0; what expired is seen, and can be retried", async () => {
    await world.desk.hold("tracker", undefined);
    const { id } = await world.queued({});
    const state = (wallMs: number) => {
      const next = new World(store, { clock: { now: () => 5, wall: () => wallMs } });
      next.outbox.tick();
      return next.desk.get("anna", id)?.state;
    };
    expect(state(world.wallMs - 86_400_000)).toBe("queued");
    expect(state(world.wallMs + 86_399_000)).toBe("queued");
    expect(state(world.wallMs + 86_400_000)).toBe("expired");
    await world.pass(86_400_000);
    expect(world.desk.get("anna", id)?.state).toBe("expired");
    expect(await world.desk.retry(id)).toMatchObject({ id, state: "queued" });
    await world.desk.release("tracker", undefined);
    await world.rest();
    expect(world.sent).toHaveLength(1);
  });
});

describe("at delivery", () => {
  it("a tool that was quarantined holds its lane until it is accepted", async () => {
    const { id } = await world.queued({});
    world.verdict = { kind: "quarantine", why: "its definition changed" };
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.desk.show(id)).toMatchObject({ state: "queued", heldFor: "its definition changed" });
    world.verdict = undefined;
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.sent).toHaveLength(2);
  });

  it("a role that lost the tool fails the write, which can be retried; a revoked token is for a person", async () => {
    const { id } = await world.queued({});
    world.verdict = { kind: "denied", why: "no" };
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.desk.show(id)?.state).toBe("failed");
    world.verdict = { kind: "revoked", why: "its token was revoked" };
    await world.desk.retry(id);
    await world.rest();
    expect(world.desk.show(id)).toMatchObject({ state: "queued", heldFor: "its token was revoked" });
    world.verdict = undefined;
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(1);
    await world.desk.retry(id);
    await world.rest();
    expect(world.sent).toHaveLength(2);
  });

  it("a question of the server makes a dead letter", async () => {
    const { id } = await world.queued({});
    world.outbox.poke("tracker");
    await world.rest();
    const request = makeMessage({ jsonrpc: "2.0", id: 1, method: "elicitation/create" }) as RequestMessage;
    const fault = await world.sent[1]?.caller.ask(request, new AbortController().signal).catch((error: Fault) => error);
    await world.answer(faultReply(fault as unknown as Fault));
    expect(world.desk.show(id)).toMatchObject({ state: "failed" });
  });
});

describe("bounds", () => {
  it("are named by the refusal, and one principal holds half at most", async () => {
    const small = new World(store, { limits: { maxWrites: 4, maxBytes: 1e6 } });
    for (const n of [1, 2]) await small.queued({ n });
    expect(() => small.call({})).toThrow(/one principal 2 writes at most \(50 % of "outbox.maxWrites"\)/);
    await small.queued({}, { principal: "bert" });
    expect(() => small.call({}, { principal: "bert" })).toThrow(/for server "tracker" 3 writes at most/);
    small.call({}, { principal: "bert", server: "wiki" });
    expect(() => small.call({}, { principal: "carl", server: "wiki" })).toThrow(/the outbox holds 4 writes at most/);
    await small.outbox.close();
  });
});

describe("an operator", () => {
  it("holds a server over a restart, and lets it go", async () => {
    await world.desk.hold("tracker", undefined);
    const { id } = await world.queued({});
    expect(world.sent).toHaveLength(0);
    const next = world.again();
    await next.pass(60_000);
    expect(next.sent).toHaveLength(0);
    expect(next.desk.show(id)?.heldFor).toContain("an operator holds");
    await next.desk.release("tracker", undefined);
    await next.rest();
    expect(next.sent).toHaveLength(1);
    await next.outbox.close();
  });

  it("drops what waits", async () => {
    const { id } = await world.queued({});
    expect(await world.desk.drop(id)).toMatchObject({ state: "cancelled" });
    await world.desk.drop(id);
    expect(world.desk.show(id)).toBeUndefined();
    expect(world.records).toEqual([]);
  });
});

describe("the end", () => {
  it("begins with deliveries: agents that wait for others get receipts, and what is under way is waited for and written", async () => {
    const first = world.call({ n: 1 });
    const second = world.call({ n: 2 });
    await world.rest();
    world.outbox.stop();
    expect(receiptOf(second).state).toBe("queued");
    let isDrained = false;
    const drained = world.outbox.drained(60_000).then(() => (isDrained = true));
    await world.rest();
    expect(isDrained).toBe(false);
    await world.answer(DONE);
    await drained;
    expect(first.replies).toEqual([DONE]);
    await world.outbox.close();
    expect(world.records.map(({ state }) => state)).toEqual(["done", "queued"]);
    expect(world.sent).toHaveLength(1);
  });
});

describe("many", () => {
  it("writes over 64 lanes are drained, all of them and each lane in order [lane-order]", async () => {
    const writes = 5_000;
    const seen = new Map<number, number[]>();
    const many = new World(store, {
      send: (call) => {
        const { lane, n } = Object(call.message.params?.["arguments"]) as { lane: number; n: number };
        seen.set(lane, [...(seen.get(lane) ?? []), n]);
        setImmediate(() => call.reply(DONE));
      },
    });
    many.terms = { ...KEYED, lane: { by: "argument", path: ["lane"] } };
    await many.desk.hold("tracker", undefined);
    for (let n = 0; n < writes; n++) many.call({ lane: n % 64, n });
    await many.rest();
    await many.desk.release("tracker", undefined);
    while (many.desk.lanes().length > 0) await many.rest();
    const all = [...seen.values()];
    expect(all.flat()).toHaveLength(writes);
    for (const lane of all) expect(lane).toEqual([...lane].sort((a, b) => a - b));
    await many.outbox.close();
  }, 120_000);
});

describe("what an agent took back while it was on its way", () => {
  it("is not sent again by the next start either [no-double-effect]", async () => {
    const made = world.call({});
    await world.rest();
    made.call.onCancel?.("enough");
    await world.rest();
    const next = world.again();
    await next.rest();
    await next.pass(60_000);
    expect(next.sent).toEqual([]);
    expect(next.records[0]).toMatchObject({ state: "unknown", takenBack: true });
    await next.outbox.close();
  });
});

describe("a stop", () => {
  it("while it is written down that a keyless write is being sent: it was not, and goes out after the next start [unknown-is-said]", async () => {
    world.terms = KEYLESS;
    await world.queued({ n: 1 });
    const sent = world.sent.length;
    world.nowMs += 60_000;
    world.outbox.tick();
    await world.outbox.close();
    expect(world.sent).toHaveLength(sent);
    expect(world.records[0]?.state).toBe("queued");
    const next = world.again();
    await next.rest();
    expect(next.sent).toHaveLength(1);
    await next.outbox.close();
  });
});

describe("a modern server that asks its agent first", () => {
  const ASKS = resultBytes('{"resultType":"input_required","inputRequests":{},"requestState":"s"}');

  it("is heard by the agent, did nothing by that, and its answer under the same key is not taken for a repeat", async () => {
    const made = world.call({ request_id: "mine" });
    await world.rest();
    await world.answer(ASKS);
    expect(made.replies).toEqual([ASKS]);
    expect(world.records[0]).toMatchObject({ state: "failed" });
    const { call } = world.make({ request_id: "mine" });
    const params = { ...call.message.params, inputResponses: {}, requestState: "s" };
    const message = makeMessage({ jsonrpc: "2.0", id: 9, method: "tools/call", params }) as RequestMessage;
    expect(world.outbox.take({ ...call, message }, "tracker", TOOL)).toBe(false);
  });

  it("ends a write whose agent is gone: there is nobody to ask", async () => {
    const { id } = await world.queued({});
    await world.pass(1_000);
    await world.answer(ASKS);
    expect(world.desk.get("anna", id)).toMatchObject({ state: "failed" });
  });
});
