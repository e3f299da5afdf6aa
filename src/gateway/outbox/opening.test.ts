// Calls that come while the outbox is still being opened: its parts are loaded with the first of them.

import { expect, it } from "vitest";
import { DONE, eachWorld, errorOf, KEYED, TOOL, type World } from "../../../test/fixtures/outbox/world.js";
import { RECEIPT_PLACE, RECEIPT_TOOL, RECEIPT_URI, type ReceiptHandler } from "../../contracts/outbox.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Store } from "../../contracts/store.js";
import type { JsonObject } from "../../protocol/jsonrpc.js";
import { makeMessage, type RequestMessage } from "../../protocol/message.js";
import { TASKS_EXTENSION } from "../../protocol/modern.js";
import { type Reply, renderReply } from "../../protocol/reply.js";
import { GatewayOutbox } from "./outbox.js";

let world: World;
let store: Store;
eachWorld((one, on) => {
  world = one;
  store = on;
});

/** A gateway's outbox that is being opened, and the pipeline that asks it. */
function begin(sender: object) {
  const pipeline = {
    sender,
    receipts: undefined as Pick<ReceiptHandler, "handle"> | undefined,
    sessions: { ours: { updated() {} } },
    access: { decideUnderWay: () => ({ kind: "allow" }), quarantined: () => undefined },
  };
  const outbox = new GatewayOutbox({
    state: {
      store,
      tokens: { has: () => true, roleOf: () => "agent" },
      taskIds: { expose: JSON.stringify, open: JSON.parse },
    },
    log: { info() {}, warn() {}, error() {}, debug() {} },
    pipeline,
    catalog: { hasOutbox: () => true },
    servers: () => new Map([["tracker", { connections: [] }]]),
    observed: (call: unknown) => call,
    isBroker: false,
  } as unknown as ConstructorParameters<typeof GatewayOutbox>[0]);
  const limits = { maxWrites: 10, maxBytes: 1e6 };
  outbox.apply({ servers: [{ name: "tracker", outbox: new Map([[TOOL, KEYED]]) }], outbox: limits });
  return { outbox, pipeline };
}

it("a call that is taken back while the outbox is being opened is never sent, and costs no budget; the one beside it is sent [no-double-effect]", async () => {
  const sent: unknown[] = [];
  let givenBack = 0;
  const sender = {
    giveBack: () => void givenBack++,
    deliver(call: AgentCall) {
      sent.push(Object(call.message.params?.["arguments"]).n);
      call.reply(DONE);
    },
  };
  const { outbox } = begin(sender);
  outbox.start();
  const [takenBack, kept] = [world.make({ n: 1 }), world.make({ n: 2 })];
  for (const { call } of [takenBack, kept]) expect(outbox.take(call, "tracker", TOOL)).toBe(true);
  expect(outbox.operator).toBeUndefined();
  takenBack.call.onCancel?.("enough");
  await expect.poll(() => [takenBack.replies.length, kept.replies.length], { timeout: 10_000 }).toEqual([1, 1]);
  expect(errorOf(takenBack.replies[0])).toContain("It was not sent");
  expect(kept.replies[0]).toMatchObject({ kind: "bytes" });
  expect([sent, givenBack]).toEqual([[2], 1]);
  expect(world.records).toHaveLength(1);
  await outbox.close();
});

it("a question after a receipt that comes while the outbox is being opened waits for it, and is not told that there is none; what only has members of the same names goes its way [restart-unseen] [ack-is-durable]", async () => {
  const { id } = await world.queued({ n: 1 });
  const { outbox, pipeline } = begin({});
  const ask = (method: string, params: JsonObject) => {
    const replies: Reply[] = [];
    const { caller } = world.make({}).call;
    const able = { era: "modern", capabilities: { extensions: { [TASKS_EXTENSION]: {} } } };
    const call = {
      caller: { ...caller, ...able },
      message: makeMessage({ jsonrpc: "2.0", id: 1, method, params }) as RequestMessage,
      scope: undefined,
      onCancel: undefined,
      reply: (reply: Reply) => void replies.push(reply),
    } as AgentCall;
    return { call, replies, isTaken: pipeline.receipts?.handle(call) };
  };
  const task = { server: "tracker", place: RECEIPT_PLACE, own: id, principal: "anna" };
  const questions = [
    ask("tools/call", { name: RECEIPT_TOOL, arguments: { id } }),
    ask("resources/read", { uri: RECEIPT_URI + id }),
    ask("tasks/get", { taskId: JSON.stringify(task) }),
  ];
  const takenBack = ask("tools/call", { name: RECEIPT_TOOL });
  takenBack.call.onCancel?.("enough");
  const others = [
    ask("tools/call", { name: "tracker__find" }),
    ask("resources/read", { uri: "file:///a" }),
    ask("tasks/get", { taskId: JSON.stringify({ ...task, place: "s1" }) }),
    ask("tools/list", {}),
    // Members of the same names, in what asks after something else.
    ask("prompts/get", { name: RECEIPT_TOOL }),
    ask("prompts/get", { name: "greet", uri: RECEIPT_URI + id }),
    ask("resources/read", { uri: "file:///a", name: RECEIPT_TOOL }),
    ask("tools/call", { name: "tracker__find", taskId: JSON.stringify(task) }),
    ask("tasks/list", { taskId: JSON.stringify(task) }),
  ];
  expect(outbox.operator).toBeUndefined();
  expect([...questions, takenBack, ...others].map(({ isTaken }) => isTaken)).toEqual([
    ...[true, true, true, true],
    ...others.map(() => false),
  ]);
  const all = [...questions, takenBack];
  await expect.poll(() => all.map(({ replies }) => replies.length), { timeout: 10_000 }).toEqual([1, 1, 1, 1]);
  const [receipt = "", resource, said] = questions.map(({ replies }) =>
    renderReply(replies[0] as never, "1").toString(),
  );
  expect(receipt).toContain(`"structuredContent":{"receipt":"${id}","state":"queued"`);
  expect(resource).toContain(id);
  expect(said).toContain('"status":"working"');
  expect(errorOf(takenBack.replies[0])).toContain("Taken back");
  await outbox.close();
});
