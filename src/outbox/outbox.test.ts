// What becomes of one call of a kept tool: its key, its answer or receipt, faults, cancels, and how it is delivered.

import { describe, expect, it, vi } from "vitest";
import { lentPieces } from "../../test/fixtures/lent-pieces.js";
import {
  AWAY,
  DONE,
  eachWorld,
  errorOf,
  httpFault,
  KEYED,
  KEYLESS,
  LOST,
  receiptOf,
  TOOL,
  World,
} from "../../test/fixtures/outbox/world.js";
import { ownToolName } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import { Budgets } from "../policy/budget.js";
import { PiecedReply } from "../protocol/arrived.js";
import { Fault } from "../protocol/errors.js";
import { makeMessage, parseMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, type Reply, resultBytes } from "../protocol/reply.js";
import type { DeliveryVerdict } from "./parts.js";

let store: Store;
let world: World;

eachWorld((one, on) => {
  world = one;
  store = on;
});

describe("a key", () => {
  it("is minted and on disk with the call before the first byte leaves [ack-is-durable] [agent-1]", async () => {
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
    expect(again.replies).toEqual([DONE]);
    expect(world.sent).toHaveLength(1);
    expect(() => world.call({ title: "b", request_id: "mine" })).toThrow(/used for another call/);
    // The repeat was not sent, and costs nothing.
    expect(world.givenBack).toBe(1);
  });

  it("of two agents does not meet at the server, and no text but the key is changed", async () => {
    const meta = { "toolway/idempotencyKey": "1", traceparent: "x" };
    world.call({ n: 1 }, { meta });
    world.call({ n: 1 }, { meta, principal: "bert" });
    await world.rest();
    expect(world.args(0)["request_id"]).not.toBe(world.args(1)["request_id"]);
    expect(world.sent[0]?.message.params?.["_meta"]).toEqual(meta);
  });

  it("is not looked for in a text in which `_meta` or its progress token stands twice: that is refused, and never kept", async () => {
    for (const params of [
      '"_meta":{"a":1},"_meta":{"progressToken":2}',
      '"_meta":{"progressToken":1,"progressToken":2}',
    ]) {
      const { call } = world.make({});
      const text = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{},${params}}}`;
      const message = parseMessage(text) as RequestMessage;
      expect(() => world.outbox.take({ ...call, message }, "tracker", TOOL)).toThrow(/Duplicate member/);
    }
    await world.rest();
    expect(world.records).toEqual([]);
  });

  it("is minted where the agent gave none, or an empty one", async () => {
    world.call({ request_id: null });
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

  it("gives a long answer to each of those who wait for it, in their own time [crossed-never]", async () => {
    const [first, second] = [world.call({ request_id: "mine" }), world.call({ request_id: "mine" })];
    await world.rest();
    const reply = new PiecedReply(lentPieces().pieces, { idStart: 22, idEnd: 23 }, undefined);
    await world.answer(reply);
    const [own, other] = [first.replies[0], second.replies[0]] as [PiecedReply, PiecedReply];
    const before = Buffer.concat(own.under("0")).toString();
    own.written();
    expect(Buffer.concat(other.under("0")).toString()).toBe(before);
  });
});

describe("a call whose server is up", () => {
  it("is nothing that the outbox logs, unless its agent was given a receipt", async () => {
    world.call({ n: 1 });
    await world.rest();
    await world.answer(DONE);
    world.call({ n: 2 });
    await world.rest();
    await world.answer(httpFault("protocol", 422));
    expect(world.logged).toEqual([]);
    world.call({ n: 3 });
    await world.rest();
    await world.pass(20_000);
    await world.answer(DONE);
    expect(world.logged).toEqual([expect.stringContaining("was delivered")]);
  });

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

  it("keeps the order of its lane, live calls included [lane-order] [agent-2]", async () => {
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

  it("waits for the login with all servers of its credential, is tried with one write of them, and another credential goes on [lane-order] [agent-5]", async () => {
    await world.outbox.close();
    world = new World(store, { credentialOf: (server) => (server === "wiki" ? "another" : "the token of all") });
    for (const server of ["tracker", "forge"]) world.call({ server }, { server });
    await world.rest();
    await world.answer(httpFault("unauthorized", 401), 0);
    await world.answer(httpFault("unauthorized", 401), 1);
    // One that was not asked before is not asked now.
    const third = world.call({ server: "board" }, { server: "board" });
    world.call({ server: "wiki" }, { server: "wiki" });
    await world.rest();
    expect(world.sent.map((_call, at) => world.args(at)["server"])).toEqual(["tracker", "forge", "wiki"]);
    expect(receiptOf(third)).toMatchObject({ state: "queued" });
    expect(world.desk.totals(2)).toMatchObject({ heldCount: 3, held: [{ heldFor: "HTTP 401." }, {}] });
    await world.pass(1_000);
    expect(world.sent).toHaveLength(4);
    await world.answer(httpFault("unauthorized", 401));
    await world.pass(2_000);
    expect(world.sent).toHaveLength(5);
    await world.answer(DONE);
    expect(world.sent).toHaveLength(7);
    expect(world.desk.totals(2).heldCount).toBe(0);
  });

  it("is paced by its server's budget, and what was charged when it was taken is not charged again", async () => {
    await world.outbox.close();
    const budget = { calls: 2, windowMs: 60_000 };
    const budgets = new Budgets({ roles: {}, servers: [{ name: "tracker", budget }] }, undefined);
    const charge = () => expect(budgets.charge({ id: "anna", role: "agent" }, "tracker", world.nowMs)).toBeUndefined();
    world = new World(store, { pace: (server, chargedMs, nowMs) => budgets.pace(server, chargedMs, nowMs) });
    charge();
    world.call({ n: 1 });
    charge();
    world.call({ n: 2 });
    await world.rest();
    await world.answer(DONE);
    expect(world.args(-1)["n"]).toBe(2);
    await world.answer(AWAY);
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.sent).toHaveLength(2);
    await world.pass(62_000);
    expect(world.sent).toHaveLength(3);
    await world.answer(AWAY);
    charge();
    await world.queued({ n: 3 });
    world.outbox.poke("tracker");
    await world.pass(1_000);
    expect(world.sent).toHaveLength(3);
    await world.pass(62_000);
    await world.answer(DONE);
    await world.answer(DONE);
    expect(world.sent).toHaveLength(5);
    expect(world.records.map(({ state }) => state)).toEqual(["done", "done", "done"]);
  });

  it("says of a lane whether all of its server is held, which a release of the lane does not end", async () => {
    await world.queued({ n: 1 });
    const [lane] = world.desk.lanes();
    expect(lane).toMatchObject({ isServerHeld: false, isOrdered: true });
    await world.desk.hold("tracker", undefined);
    await world.desk.release("tracker", lane?.lane);
    expect(world.desk.lanes()).toMatchObject([{ isServerHeld: true }]);
    await world.desk.release("tracker", undefined);
    world.terms = { ...KEYED, lane: { by: "none" } };
    world.call({ n: 2 });
    await world.rest();
    const told = world.desk.lanes().map(({ isServerHeld, isOrdered }) => [isServerHeld, isOrdered]);
    expect(told).toEqual([
      [false, true],
      [false, false],
    ]);
  });

  it("is listed without its result, which is not read for that", async () => {
    world.call({ n: 1 });
    await world.rest();
    await world.answer(DONE);
    await world.rest();
    const read = vi.spyOn(world.outbox.journal, "result");
    const [listed] = world.desk.list({ limit: 10 });
    expect([listed?.state, listed?.result, read.mock.calls.length]).toEqual(["done", undefined, 0]);
    expect(world.desk.show(listed?.id ?? "")?.result).toBeDefined();
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
  it("ends after 20 s with a receipt, the send goes on, and its reply ends the receipt [agent-6]", async () => {
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
