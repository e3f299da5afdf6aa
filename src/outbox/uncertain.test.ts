// A write that may have happened: what goes again under its key, what is asked for, what a person has to say.

import { describe, expect, it } from "vitest";
import {
  DONE,
  eachWorld,
  errorOf,
  httpFault,
  KEYLESS,
  LOST,
  receiptOf,
  World,
} from "../../test/fixtures/outbox/world.js";
import { ownToolName } from "../contracts/names.js";
import type { Store } from "../contracts/store.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import type { DeliveryVerdict } from "./parts.js";

let world: World;
let store: Store;

eachWorld((one, on) => {
  world = one;
  store = on;
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
    expect(world.operations.of("bert", 1)[0]?.state).toBe("unknown");
    await world.pass(3_600_000);
    expect(world.sent).toHaveLength(3);
  });

  it("goes to no other server that its name means by then, and on to its own; what never left goes where the name says [no-double-effect]", async () => {
    let meant: string | undefined = "first";
    const alone = new World(store, { targetOf: () => meant });
    const lost = alone.call({ n: 1 });
    await alone.rest();
    await alone.answer(LOST);
    const left = await alone.queued({ n: 2 }, { principal: "bert" });
    meant = "second";
    await alone.pass(60_000);
    expect(alone.sent.map((_, at) => alone.args(at)["n"])).toEqual([1, 2, 2]);
    await alone.answer(DONE);
    const { id } = receiptOf(lost);
    expect(alone.operations.get("bert", left.id)?.state).toBe("done");
    expect(alone.operations.get("anna", id)).toMatchObject({
      state: "queued",
      why: expect.stringContaining("is another server in the config now"),
    });
    meant = "first";
    await alone.pass(60_000);
    expect(alone.args(-1)["n"]).toBe(1);
    await alone.answer(DONE);
    expect(alone.operations.get("anna", id)?.state).toBe("done");
    expect(alone.sent).toHaveLength(4);
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
    expect(world.operations.get("anna", receiptOf(made).id)?.state).toBe("unknown");
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
    expect(world.operations.get("anna", receiptOf(made).id)?.state).toBe("done");
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
    expect(world.operations.get("anna", receiptOf(made).id)?.state).toBe("unknown");
  });

  it.each<[string, DeliveryVerdict]>([
    ["the server refuses the repeat", undefined],
    ["the server is gone from the config", { kind: "denied", why: "It is no longer in the config." }],
  ])(
    "is unknown to an agent that still waits for it, where %s before it was told [unknown-is-said]",
    async (_what, verdict) => {
      const made = world.call({});
      await world.rest();
      world.sent.at(-1)?.reply(LOST);
      world.verdict = verdict;
      // Its entry was changed in the same moment: it goes on at once, and nobody was told that it is queued.
      world.outbox.poke("tracker");
      if (verdict === undefined) world.sent.at(1)?.reply(httpFault("protocol", 422));
      await world.rest();
      expect(world.records[0]?.state).toBe("unknown");
      expect(made.replies).toMatchObject([{ kind: "error", fault: { code: "outcome-unknown" } }]);
      expect(errorOf(made.replies[0])).toContain(verdict?.why ?? "HTTP 422");
    },
  );

  /** What a gateway answers, whose own server it was that was lost: one behind this one, or a machine at a mailbox. */
  const ofGateway = (code: Fault["code"]): [string, Reply][] => {
    const error = toRpcError(new Fault(code, "Behind it."));
    const text = `{"jsonrpc":"2.0","id":1,"error":${JSON.stringify(error)}}`;
    const at = text.indexOf("1,");
    const bytes: Reply = { kind: "bytes", bytes: Buffer.from(text), idStart: at, idEnd: at + 1 };
    return [
      [`${code}, parsed`, { kind: "error", error }],
      [code, bytes],
    ];
  };
  it.each([...ofGateway("outcome-unknown"), ...ofGateway("timeout"), ...ofGateway("protocol")])(
    "is not called failed where a gateway behind this one does not know it either (%s) [unknown-is-said]",
    async (_what, reply) => {
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
      expect(world.operations.of("bert", 1)[0]?.state).toBe("unknown");
    },
  );

  it.each([-31_001, -31_003])(
    "is failed where a server answers with such a code (%i), and does not say that it is a gateway",
    async (code) => {
      world.terms = KEYLESS;
      world.call({ n: 1 });
      await world.rest();
      await world.answer({ kind: "error", error: { code, message: "No such project." } });
      expect(world.records[0]?.state).toBe("failed");
    },
  );

  /** What it says of its own server; what it says of anything else is no proof. */
  const behind = (more: { nextTryInMs?: number }): Fault => {
    const data = { fault: "unavailable", server: "far", state: "backoff", ...more };
    return new Fault("unavailable", 'Server "far" is not available.', { data });
  };
  const refusedBy = (fault: Fault): Reply => ({ kind: "error", error: toRpcError(fault) });
  it("of which a gateway behind this one says that it was not sent is kept, and sent again [no-double-effect]", async () => {
    world.terms = KEYLESS;
    const made = world.call({ n: 1 });
    await world.rest();
    await world.answer(refusedBy(behind({ nextTryInMs: 30_001 })));
    expect(receiptOf(made).state).toBe("queued");
    await world.pass(30_000);
    expect(world.sent).toHaveLength(1);
    await world.pass(1_000);
    expect(world.args(1)).toEqual(world.args(0));
    // What says nothing of when is tried after a wait of our own.
    await world.answer(refusedBy(behind({})));
    await world.pass(60_000);
    expect(world.sent).toHaveLength(3);
    await world.answer(DONE);
    expect(world.records[0]?.state).toBe("done");
  });

  it("of which a gateway behind this one says that its budget is spent is sent when that is over [no-double-effect]", async () => {
    world.terms = KEYLESS;
    world.call({ n: 1 });
    await world.rest();
    const data = { fault: "budget", scope: "principal", resetsInMs: 40_000 };
    await world.answer(refusedBy(new Fault("limit", "Your call budget is spent. Nothing was sent.", { data })));
    await world.pass(39_000);
    expect(world.sent).toHaveLength(1);
    await world.pass(2_000);
    expect(world.sent).toHaveLength(2);
  });

  it("that was lost before is not taken for one that never left, whatever a gateway behind this one says of a repeat [unknown-is-said]", async () => {
    const made = world.call({ n: 1 });
    await world.rest();
    await world.answer(LOST);
    await world.pass(1_000);
    await world.answer(refusedBy(behind({})));
    expect(world.operations.get("anna", receiptOf(made).id)?.state).toBe("queued");
    world.verdict = { kind: "denied", why: "It is no longer in the config." };
    await world.pass(60_000);
    expect(world.operations.get("anna", receiptOf(made).id)?.state).toBe("unknown");
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
    const [, first] = world.operations.of("anna", 2);
    await world.operations.resolve(first?.id ?? "", "done");
    await world.rest();
    expect(world.sent).toHaveLength(2);
  });
});
