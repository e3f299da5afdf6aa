// Calls that come while the outbox is still being opened: its parts are loaded with the first of them.

import { expect, it } from "vitest";
import { DONE, eachWorld, errorOf, KEYED, TOOL, type World } from "../../../test/fixtures/outbox/world.js";
import type { AgentCall } from "../../contracts/service.js";
import type { Store } from "../../contracts/store.js";
import { GatewayOutbox } from "./outbox.js";

let world: World;
let store: Store;
eachWorld((one, on) => {
  world = one;
  store = on;
});

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
  const outbox = new GatewayOutbox({
    state: { store, tokens: { has: () => true, roleOf: () => "agent" } },
    log: { info() {}, warn() {}, error() {}, debug() {} },
    pipeline: {
      sender,
      sessions: { ours: { updated() {} } },
      access: { decideUnderWay: () => ({ kind: "allow" }), quarantined: () => undefined },
    },
    catalog: { hasOutbox: () => true },
    servers: () => new Map([["tracker", { connections: [] }]]),
    observed: (call: unknown) => call,
    isBroker: false,
  } as unknown as ConstructorParameters<typeof GatewayOutbox>[0]);
  const limits = { maxWrites: 10, maxBytes: 1e6 };
  outbox.apply({ servers: [{ name: "tracker", outbox: new Map([[TOOL, KEYED]]) }], outbox: limits });
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
