// Writes whose key is the id of the message that carries them to a machine behind a mailbox: that it stays the same, whom
// it is for, and what follows where the machine itself does not know.

import { expect, it } from "vitest";
import { AWAY, DONE, eachWorld, KEYED, LOST, receiptOf, World } from "../../test/fixtures/outbox/world.js";
import type { OutboxTerms } from "../contracts/outbox.js";
import type { Store } from "../contracts/store.js";
import { Fault, toRpcError } from "../protocol/errors.js";
import { faultReply, type Reply } from "../protocol/reply.js";
import { MESSAGE_LIFE_MS } from "./lanes/limits.js";

const BY_MESSAGE: OutboxTerms = { ...KEYED, key: { in: "message" } };
/** The machine's journal says that it was begun, and not how it ended. */
const BEGUN = faultReply(new Fault("outcome-unknown", "It was begun.", { wire: { final: true } }));

let journal: string | undefined;
let world: World;
let store: Store;

const made = () => {
  const one = new World(store, { journalOf: () => journal });
  one.terms = BY_MESSAGE;
  return one;
};

eachWorld((_unused, own) => {
  journal = "studio-1";
  store = own;
  world = made();
});

const keyAt = (at: number, of = world) => of.sent.at(at)?.messageKey;

/** The program is killed, and started again on the same disk. */
function again(): World {
  const next = made();
  next.nowMs = world.nowMs;
  return next;
}

it("a repeat has the id, the number, the digest and the journal of the first, also after a restart [no-double-effect]", async () => {
  world.call({ n: 1 });
  await world.rest();
  const first = keyAt(-1);
  expect(first).toMatchObject({ journal: "studio-1", isRepeat: false });
  expect(first?.id.endsWith(`-${first.number}`)).toBe(true);
  expect(Number.isSafeInteger(first?.number)).toBe(true);
  await world.answer(LOST);
  await world.pass(1_000);
  const { id, number, digest } = first ?? {};
  expect(keyAt(-1)).toMatchObject({ id, number, digest, journal: "studio-1", isRepeat: true });
  // Another machine is there by then: the repeat is for the one that had it.
  journal = "studio-2";
  const next = again();
  await next.pass(1_000);
  expect(keyAt(-1, next)).toMatchObject({ id, number, digest, journal: "studio-1", isRepeat: true });
  expect(next.sent.at(-1)?.message.params?.["arguments"]).toEqual({ n: 1 });
});

it.each([
  ["its own journal", BEGUN],
  // The machine goes on, and its server was taken out of its config meanwhile.
  [
    "its gateway",
    { kind: "error", error: toRpcError(new Fault("outcome-unknown", "Its server was stopped.")) } as Reply,
  ],
])(
  "what the machine cannot tell by %s is unknown at once, and is not sent again [unknown-is-said]",
  async (_by, reply) => {
    const call = world.call({});
    await world.rest();
    await world.answer(reply);
    expect(world.sent).toHaveLength(1);
    await world.pass(60_000);
    expect(world.sent).toHaveLength(1);
    const [entry] = world.operations.list({ limit: 1 });
    expect(entry?.state).toBe("unknown");
    expect(call.replies).toHaveLength(1);
  },
);

it("what the machine's gateway did not send goes again as another message: of the first, its journal would repeat that [no-double-effect]", async () => {
  world.call({});
  await world.rest();
  const data = { fault: "unavailable", server: "far", state: "backoff" };
  const away = new Fault("unavailable", "Its server does not start.", { data });
  await world.answer({ kind: "error", error: toRpcError(away) });
  await world.pass(60_000);
  expect(world.sent).toHaveLength(2);
  const [first, second] = world.sent.map(({ messageKey }) => messageKey);
  expect(second?.id).not.toBe(first?.id);
  expect(second?.isRepeat).toBe(false);
  await world.answer(DONE);
  expect(world.operations.list({ limit: 1 })[0]?.state).toBe("done");
});

it("a write that an operator sends again, knowing what became of it, is another message [no-double-effect]", async () => {
  world.call({});
  await world.rest();
  const first = keyAt(-1);
  await world.answer(BEGUN);
  const [entry] = world.operations.list({ limit: 1 });
  await world.operations.resolve(entry?.id ?? "", "again");
  await world.pass(1_000);
  expect(keyAt(-1)?.id).toBeDefined();
  expect(keyAt(-1)?.id).not.toBe(first?.id);
});

it("one that waited is for the machine that is there when it goes out first [no-double-effect]", async () => {
  const { id } = await world.queued({});
  journal = "studio-2";
  await world.pass(60_000);
  expect(keyAt(-1)).toMatchObject({ journal: "studio-2", isRepeat: false });
  await world.answer(DONE);
  expect(world.operations.get("anna", id)).toMatchObject({ state: "done" });
});

it("where no one journal is known, a lost write is unknown and not sent again [unknown-is-said] [no-double-effect]", async () => {
  journal = undefined;
  const call = world.call({});
  await world.rest();
  expect(keyAt(-1)).toBeUndefined();
  await world.answer(LOST);
  await world.pass(60_000);
  expect(world.sent).toHaveLength(1);
  expect(world.operations.list({ limit: 1 })[0]?.state).toBe("unknown");
  expect(call.replies).toHaveLength(1);
});

it("what may have happened is repeated for no longer than the machine is sure to know it [no-double-effect]", async () => {
  const call = world.call({});
  await world.rest();
  expect(keyAt(-1)?.leftMs).toBe(MESSAGE_LIFE_MS);
  await world.answer(LOST);
  const { id } = receiptOf(call);
  await world.pass(60_000);
  expect(keyAt(-1)?.leftMs).toBeLessThanOrEqual(MESSAGE_LIFE_MS - 60_000);
  await world.answer(LOST);
  await world.pass(MESSAGE_LIFE_MS);
  expect(world.operations.get("anna", id)?.state).toBe("unknown");
  expect(world.sent.length).toBe(2);
});

it("what was never sent waits for its machine as long as any other write [ack-is-durable]", async () => {
  const { id } = await world.queued({});
  await world.pass(2 * MESSAGE_LIFE_MS);
  await world.answer(AWAY);
  expect(world.operations.get("anna", id)?.state).toBe("queued");
});

it("a call that is merely given up goes on at the machine, and one that its agent took back is taken back there", async () => {
  const call = world.call({});
  await world.rest();
  expect(keyAt(-1)?.isTakenBack).toBe(false);
  call.call.onCancel?.(undefined);
  await world.rest();
  expect(keyAt(-1)?.isTakenBack).toBe(true);
});
