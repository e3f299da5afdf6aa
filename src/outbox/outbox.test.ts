// What becomes of one call of a kept tool while its agent waits: its key, its answer or receipt, cancels.

import { describe, expect, it, vi } from "vitest";
import { lentPieces } from "../../test/fixtures/lent-pieces.js";
import {
  AWAY,
  DONE,
  eachWorld,
  errorOf,
  httpFault,
  LOST,
  receiptOf,
  TOOL,
  type World,
} from "../../test/fixtures/outbox/world.js";
import type { Receipt } from "../contracts/outbox.js";
import type { Store } from "../contracts/store.js";
import { PiecedReply } from "../protocol/arrived.js";
import { Fault } from "../protocol/errors.js";
import { makeMessage, makeNotification, parseMessage, type RequestMessage } from "../protocol/message.js";
import { faultReply, resultBytes } from "../protocol/reply.js";
import { MAX_ENDED_BYTES_A_PRINCIPAL, MAX_KEPT_RESULT_BYTES } from "./lanes/limits.js";
import { receiptResult } from "./receipt-text.js";

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
    const id = world.operations.of("anna", 10)[0]?.id ?? "";
    const result = '{"content":[],"structuredContent":{"number":7}}';
    expect(world.operations.get("anna", id)).toMatchObject({ state: "done", result });
    expect(world.operations.get("bert", id)).toBeUndefined();
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
    expect(world.operations.get("anna", id)?.state).toBe("done");
    expect(made.replies).toHaveLength(1);
  });

  it("begins anew with progress, and stands still while the agent is asked", async () => {
    let answerAsk = () => {};
    const ask = () => new Promise<never>((_resolve, reject) => (answerAsk = () => reject(new Error("no"))));
    const made = world.call({}, { ask });
    await world.rest();
    await world.pass(15_000);
    world.sent[0]?.caller.notify(makeNotification("notifications/progress", {}));
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

describe("a result", () => {
  const result = (bytes: number) => resultBytes(`{"content":[{"type":"text","text":"${"x".repeat(bytes)}"}]}`);
  const receiptText = (id: string) => receiptResult(world.operations.get("anna", id) as Receipt);

  it("that is held whole on its way is kept with the receipt, and is what the same key gets again", async () => {
    const { id } = await world.queued({ request_id: "mine" });
    await world.pass(1_000);
    await world.answer(result(MAX_KEPT_RESULT_BYTES - 100));
    expect(world.operations.get("anna", id)?.result?.length).toBeGreaterThan(MAX_KEPT_RESULT_BYTES - 100);
    expect(receiptText(id)).not.toContain("not kept");
    const again = world.call({ request_id: "mine" });
    expect(Object(again.replies[0]).bytes.length).toBeGreaterThan(MAX_KEPT_RESULT_BYTES - 100);
  });

  it("that is larger is not, and the receipt says so with its size, after a restart too", async () => {
    const { id } = await world.queued({ request_id: "mine" });
    await world.pass(1_000);
    const large = result(MAX_KEPT_RESULT_BYTES);
    await world.answer(large);
    const said = `its result of ${Object(large).bytes.length} bytes is not kept`;
    expect(receiptText(id)).toContain(said);
    expect(world.operations.get("anna", id)).toMatchObject({ state: "done", result: undefined });
    world = world.again();
    await world.rest();
    expect(receiptText(id)).toContain(said);
  });

  it("that makes room for newer ones is gone from the disk, and its receipt stays and says so, after a restart too", async () => {
    const ids: string[] = [];
    // Larger than what one principal may keep.
    for (let i = 0; i < MAX_ENDED_BYTES_A_PRINCIPAL / MAX_KEPT_RESULT_BYTES + 2; i++) {
      const { id } = await world.queued({ n: i });
      await world.pass(60_000);
      await world.answer(result(MAX_KEPT_RESULT_BYTES - 1_000));
      ids.push(id);
    }
    const check = () => {
      const all = ids.map((id) => world.operations.get("anna", id));
      expect(all.map((one) => one?.state)).toEqual(ids.map(() => "done"));
      const [lost, kept] = [true, false].map((is) => all.filter((one) => (one?.result === undefined) === is));
      expect(lost).toEqual(all.slice(0, lost?.length));
      expect([lost?.length, kept?.length]).toEqual([2, ids.length - 2]);
      expect(receiptText(ids[0] ?? "")).toContain("made room for newer ones");
    };
    check();
    expect([...store.map("outbox-results").entries()]).toHaveLength(ids.length - 2);
    world = world.again();
    await world.rest();
    check();
  }, 120_000);
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

  it("of a call that waits for its server, as that one says, withdraws the write; one that left before is unknown [unknown-is-said]", async () => {
    const never = faultReply(new Fault("cancelled", "enough", { wire: { left: false } }));
    const first = world.call({ n: 1 });
    await world.rest();
    first.call.onCancel?.("enough");
    await world.answer(never);
    expect(errorOf(first.replies[0])).toBe("enough");
    expect(world.records).toMatchObject([{ state: "cancelled", attempts: 0 }]);
    const second = world.call({ n: 2 });
    await world.rest();
    await world.answer(LOST);
    const { id } = receiptOf(second);
    await world.pass(1_000);
    await world.operations.cancel("anna", id);
    await world.answer(never);
    expect(world.operations.get("anna", id)).toMatchObject({ state: "unknown", attempts: 1 });
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
    expect(await world.operations.cancel("bert", id)).toBeUndefined();
    expect(await world.operations.cancel("anna", id)).toMatchObject({ state: "cancelled" });
    world.outbox.poke("tracker");
    await world.rest();
    expect(world.sent).toHaveLength(1);
  });

  it("of a receipt is passed to the server where the write is on its way, unless another call waits for it", async () => {
    const { id } = await world.queued({ n: 1 });
    world.outbox.poke("tracker");
    await world.rest();
    const reasons: unknown[] = [];
    const takesBack = (at: number) => {
      const sent = world.sent.at(at);
      if (sent !== undefined) sent.onCancel = (reason) => void reasons.push(reason);
    };
    takesBack(-1);
    expect(await world.operations.cancel("anna", id)).toMatchObject({ state: "sending" });
    expect(reasons).toHaveLength(1);
    await world.answer(faultReply(new Fault("cancelled", "enough")));
    expect(world.operations.get("anna", id)?.state).toBe("unknown");
    world.call({ n: 2 });
    await world.pass(1_000);
    takesBack(-1);
    const waitedFor = world.operations.of("anna", 2).find(({ state }) => state === "sending")?.id ?? "";
    await world.operations.cancel("anna", waitedFor);
    expect(reasons).toHaveLength(1);
    await world.answer(DONE);
    expect(world.operations.get("anna", waitedFor)?.state).toBe("done");
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
    expect(world.operations.get("anna", id)).toMatchObject({ state: "failed" });
  });
});

it("whoever is told that a write has ended reads its result when it is asked for, and not before", async () => {
  const told: Receipt[] = [];
  world.outbox.onChange((_, receipt) => void told.push(receipt));
  const read = vi.spyOn(world.outbox.journal, "result");
  const { replies } = world.call({ n: 1 });
  await world.rest();
  await world.answer(DONE);
  expect(replies).toHaveLength(1);
  expect(told.map(({ state, result }) => [state, result])).toEqual([["done", undefined]]);
  expect(read).not.toHaveBeenCalled();
  expect(world.operations.get("anna", told[0]?.id ?? "")?.result).toContain('"number":7');
});
