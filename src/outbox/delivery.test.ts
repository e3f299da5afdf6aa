// How a write that did not arrive is delivered: its place in its lane, what it waits for, what is asked again before it goes.

import { describe, expect, it, vi } from "vitest";
import { AWAY, DONE, eachWorld, httpFault, KEYED, receiptOf, World } from "../../test/fixtures/outbox/world.js";
import type { Store } from "../contracts/store.js";
import { Budgets } from "../policy/budget.js";
import type { Fault } from "../protocol/errors.js";
import { makeMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply } from "../protocol/reply.js";

let store: Store;
let world: World;

eachWorld((one, on) => {
  world = one;
  store = on;
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
    expect(world.operations.get("anna", id)).toMatchObject({ state: "done" });
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
    expect(world.operations.lanes().map(({ heldFor }) => heldFor)).toEqual(["HTTP 401.", "HTTP 401."]);
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
    expect(world.operations.totals(2)).toMatchObject({ heldCount: 3, held: [{ heldFor: "HTTP 401." }, {}] });
    await world.pass(1_000);
    expect(world.sent).toHaveLength(4);
    await world.answer(httpFault("unauthorized", 401));
    await world.pass(2_000);
    expect(world.sent).toHaveLength(5);
    await world.answer(DONE);
    expect(world.sent).toHaveLength(7);
    expect(world.operations.totals(2).heldCount).toBe(0);
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

  it("reads no more lanes for an answer than are asked for, and says how many more there are [bounded]", async () => {
    world.terms = { ...KEYED, lane: { by: "none" } };
    for (let n = 0; n < 5; n++) world.call({ n });
    await world.rest();
    let read = 0;
    const { lanes } = world.outbox.lanes;
    world.outbox.lanes.lanes = function* (this: typeof world.outbox.lanes) {
      for (const lane of lanes.call(this)) {
        read++;
        yield lane;
      }
    };
    const first = world.operations.firstLanes(2);
    expect([first.lanes.length, first.more]).toEqual([2, 3]);
    expect(read).toBeLessThanOrEqual(3);
    expect(world.operations.firstLanes(0)).toEqual({ lanes: [], more: 5 });
  });

  it("says of a lane whether all of its server is held, which a release of the lane does not end", async () => {
    await world.queued({ n: 1 });
    const [lane] = world.operations.lanes();
    expect(lane).toMatchObject({ isServerHeld: false, isOrdered: true });
    await world.operations.hold("tracker", undefined);
    await world.operations.release("tracker", lane?.lane);
    expect(world.operations.lanes()).toMatchObject([{ isServerHeld: true }]);
    await world.operations.release("tracker", undefined);
    world.terms = { ...KEYED, lane: { by: "none" } };
    world.call({ n: 2 });
    await world.rest();
    const told = world.operations.lanes().map(({ isServerHeld, isOrdered }) => [isServerHeld, isOrdered]);
    expect(told).toEqual([
      [false, true],
      [false, false],
    ]);
  });

  it("is listed without its result, to the operator and to its principal, and that is not read for it [bounded]", async () => {
    world.call({ n: 1 });
    await world.rest();
    await world.answer(DONE);
    await world.rest();
    const read = vi.spyOn(world.outbox.journal, "result");
    const [listed] = world.operations.list({ limit: 10 });
    expect([listed?.state, listed?.result, read.mock.calls.length]).toEqual(["done", undefined, 0]);
    const [own] = world.operations.of("anna", 10);
    expect([own?.state, own?.result, read.mock.calls.length]).toEqual(["done", undefined, 0]);
    expect(world.operations.show(listed?.id ?? "")?.result).toBeDefined();
  });

  it("holds its lane where it is forbidden, until a person lets it go", async () => {
    await world.queued({ n: 1 });
    world.outbox.poke("tracker");
    await world.rest();
    await world.answer(httpFault("unauthorized", 403));
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(2);
    expect(await world.operations.release("tracker", undefined)).toBe(1);
    await world.rest();
    expect(world.sent).toHaveLength(3);
  });
});

describe("at delivery", () => {
  it("a tool that was quarantined holds its lane until it is accepted", async () => {
    const { id } = await world.queued({});
    world.verdict = { kind: "quarantine", why: "its definition changed" };
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.operations.show(id)).toMatchObject({ state: "queued", heldFor: "its definition changed" });
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
    expect(world.operations.show(id)?.state).toBe("failed");
    world.verdict = { kind: "revoked", why: "its token was revoked" };
    await world.operations.retry(id);
    await world.rest();
    expect(world.operations.show(id)).toMatchObject({ state: "queued", heldFor: "its token was revoked" });
    world.verdict = undefined;
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(1);
    await world.operations.retry(id);
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
    expect(world.operations.show(id)).toMatchObject({ state: "failed" });
  });
});

describe("an operator", () => {
  it("holds a server over a restart, and lets it go", async () => {
    await world.operations.hold("tracker", undefined);
    const { id } = await world.queued({});
    expect(world.sent).toHaveLength(0);
    const next = world.again();
    await next.pass(60_000);
    expect(next.sent).toHaveLength(0);
    expect(next.operations.show(id)?.heldFor).toContain("an operator holds");
    await next.operations.release("tracker", undefined);
    await next.rest();
    expect(next.sent).toHaveLength(1);
    await next.outbox.close();
  });

  it("drops what waits", async () => {
    const { id } = await world.queued({});
    expect(await world.operations.drop(id)).toMatchObject({ state: "cancelled" });
    await world.operations.drop(id);
    expect(world.operations.show(id)).toBeUndefined();
    expect(world.records).toEqual([]);
  });
});
